//! The Python interface of `encode`'s recordings and spools, for the loader.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use encode::recording::{reading, Kind, Records, Wrong};
use encode::spooled::{batch, Column, Row};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

const BUFFER: usize = 1 << 17;

fn raised(wrong: Wrong) -> PyErr {
    match wrong {
        Wrong::File(error) => PyOSError::new_err((error.raw_os_error(), error.to_string())),
        Wrong::Form(message) => PyValueError::new_err(message),
    }
}

/// The kind of a cell as Python passes it.
#[derive(FromPyObject)]
enum GivenKind {
    Whole(i64, i64),
    // before numbers, which take whole ones too
    Text(usize),
    Number(f64),
    Named(String),
}

/// The conversion of a column: the index of its cell in the file, its kind, and the function for other cells, which
/// returns JSON.
struct Conversion {
    cell: usize,
    kind: Kind,
    other: Py<PyAny>,
}

/// The rows of a CSV file: see `_core.pyi`.
#[pyclass(name = "CsvFile", module = "ringlog.gateway._core")]
pub struct PyCsvFile {
    records: Records<BufReader<File>>,
    conversions: Vec<Option<Conversion>>,
    cells: usize,
    below: Option<usize>,
    /// Converts the text of a time.
    time: Option<Py<PyAny>>,
    /// The error that is raised behind the rows before it.
    error: Option<PyErr>,
}

#[pymethods]
impl PyCsvFile {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let file = File::open(path).map_err(|error| raised(error.into()))?;
        let records =
            Records::new(BufReader::with_capacity(BUFFER, file)).map_err(|error| raised(error.into()))?;
        Ok(Self { records, conversions: Vec::new(), cells: 0, below: None, time: None, error: None })
    }

    /// Lines read so far.
    #[getter]
    fn line(&self) -> usize {
        self.records.line
    }

    fn names(&mut self) -> PyResult<Vec<String>> {
        if !self.records.advance().map_err(raised)? {
            return Ok(Vec::new());
        }
        (0..self.records.count()).map(|index| Ok(text(self.records.cell(index))?.to_owned())).collect()
    }

    fn convert(
        &mut self,
        columns: usize,
        cells: Vec<(usize, GivenKind, Py<PyAny>)>,
        below: Option<usize>,
        time: Py<PyAny>,
    ) -> PyResult<()> {
        self.conversions = (0..columns).map(|_| None).collect();
        self.cells = cells.len();
        for (cell, (index, kind, other)) in cells.into_iter().enumerate() {
            let kind = match kind {
                GivenKind::Whole(least, most) => Kind::Whole { least, most },
                GivenKind::Number(largest) => Kind::Number { largest },
                GivenKind::Text(longest) => Kind::Text { longest },
                GivenKind::Named(name) if name == "bit" => Kind::Bit,
                GivenKind::Named(_) => Kind::Other,
            };
            let column = self.conversions.get_mut(index);
            *column.ok_or_else(|| PyValueError::new_err("no such column"))? =
                Some(Conversion { cell: cell + 1, kind, other });
        }
        self.below = below;
        self.time = Some(time);
        Ok(())
    }

    fn read<'py>(
        &mut self,
        py: Python<'py>,
        rows: usize,
        size: usize,
    ) -> PyResult<Vec<(i64, Bound<'py, PyString>)>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut json = Vec::new();
        while found.len() < rows && bytes < size {
            match self.row(py, &mut json) {
                Ok(Some(time)) => found.push((time, PyString::new(py, text(&json)?))),
                Ok(None) => break,
                Err(error) if found.is_empty() => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
            bytes += json.len();
        }
        Ok(found)
    }
}

impl PyCsvFile {
    /// Writes the readings of the next row. Its time; None at the end.
    fn row(&mut self, py: Python<'_>, json: &mut Vec<u8>) -> PyResult<Option<i64>> {
        json.clear();
        let Some(convert) = self.time.as_ref() else { return Ok(None) };
        if !self.records.advance().map_err(raised)? {
            return Ok(None);
        }
        let (count, wanted) = (self.records.count(), self.cells + 1);
        if count != wanted {
            return Err(PyValueError::new_err(format!("{count} cells, the first line has {wanted}")));
        }
        let (time, below): (i64, i64) = convert.call1(py, (text(self.records.cell(0))?,))?.extract(py)?;
        for (index, column) in self.conversions.iter().enumerate() {
            json.push(if index == 0 { b'[' } else { b',' });
            let cell = column.as_ref().map_or(&[][..], |column| self.records.cell(column.cell));
            match column {
                Some(column) if !cell.is_empty() => {
                    let begin = json.len();
                    if !reading(json, column.kind, cell) {
                        json.truncate(begin);
                        let given: String = column.other.call1(py, (text(cell)?,))?.extract(py)?;
                        json.extend_from_slice(given.as_bytes());
                    }
                }
                _ if self.below == Some(index) => json.extend_from_slice(below.to_string().as_bytes()),
                _ => json.extend_from_slice(b"null"),
            }
        }
        if self.conversions.is_empty() {
            json.push(b'[');
        }
        json.push(b']');
        Ok(Some(time))
    }
}

fn text(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err("the line is not UTF-8 text"))
}

/// The columns of a spool's rows, as put_<table>_batch takes them.
#[pyclass(name = "Batch", module = "ringlog.gateway._core", frozen)]
pub struct PyBatch(Vec<Column>);

#[pymethods]
impl PyBatch {
    #[new]
    fn new(columns: Vec<(String, bool)>) -> Self {
        Self(columns.iter().map(|(name, is_real)| Column::new(name, *is_real)).collect())
    }

    fn text<'py>(
        &self,
        py: Python<'py>,
        rows: Vec<(Option<i64>, i64, Bound<'py, PyString>)>,
    ) -> PyResult<Bound<'py, PyString>> {
        let texts = rows.iter().map(|(.., readings)| readings.to_cow()).collect::<PyResult<Vec<_>>>()?;
        let given: Vec<Row<'_>> =
            rows.iter().zip(&texts).map(|(row, readings)| (row.0, row.1, readings.as_ref())).collect();
        let made = py.detach(|| batch(&self.0, &given));
        let made =
            made.ok_or_else(|| PyValueError::new_err("a row has not the readings of the table's columns"))?;
        Ok(PyString::new(py, text(&made)?))
    }
}
