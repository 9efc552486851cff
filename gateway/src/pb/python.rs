//! The Python interface of PB files.

use super::{PbFile, Wrong};
use encode::pb::Texts;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::PathBuf;

create_exception!(_core, PbError, PyException, "A PB file is damaged.");

/// A PB file for one thread. Python's lock is released while it reads and decodes.
#[pyclass(name = "PbFile")]
pub struct PyPbFile(PbFile);

/// A byte for each value that is present, bounds and content.
type PyTexts = (Py<PyBytes>, Py<PyBytes>, Py<PyBytes>);
/// Count, times, severities, statuses, bounds of waveforms, values, wanted fields, and samples with other fields.
type PySamples = (
    usize,
    Py<PyBytes>,
    Py<PyBytes>,
    Py<PyBytes>,
    Option<Py<PyBytes>>,
    PyTexts,
    Vec<PyTexts>,
    BTreeMap<String, u64>,
);

#[pymethods]
impl PyPbFile {
    #[new]
    fn new(path: PathBuf, skips: bool) -> PyResult<PyPbFile> {
        PbFile::open(&path, skips).map(PyPbFile).map_err(raised)
    }

    /// The name of the PV.
    #[getter]
    fn name(&self) -> &str {
        &self.0.header.name
    }

    #[getter]
    fn year(&self) -> i32 {
        self.0.header.year
    }

    /// The type of the values, or of the points of waveforms, in the notation of the Arrow C data interface.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.header.payload.form.format()
    }

    #[getter]
    fn is_waveform(&self) -> bool {
        self.0.header.payload.is_waveform
    }

    /// Names and values of EPICS's fields.
    #[getter]
    fn fields(&self) -> Vec<(String, String)> {
        self.0.header.fields.clone()
    }

    /// The position of the next byte, and the time of the sample before it.
    #[getter]
    fn position(&self) -> (u64, Option<i64>) {
        (self.0.at, self.0.last)
    }

    /// The number of skipped lines.
    #[getter]
    fn skipped(&self) -> u64 {
        self.0.skipped
    }

    /// Line, position and damage of the first skipped lines.
    #[getter]
    fn damages(&self) -> Vec<String> {
        self.0.damages.clone()
    }

    /// Moves to the first samples at or after this time, in nanoseconds since 1970, or somewhat before them.
    fn seek(&mut self, py: Python<'_>, since: i64) -> PyResult<()> {
        py.detach(|| self.0.seek(since)).map_err(raised)
    }

    /// Continues at an earlier `position`.
    fn resume(&mut self, position: (u64, Option<i64>)) {
        (self.0.at, self.0.last) = position;
    }

    /// The samples from `since` to before `until`, no more after `bytes` bytes of the file, and whether there may be
    /// more.
    fn read(
        &mut self,
        py: Python<'_>,
        since: i64,
        until: i64,
        bytes: usize,
        fields: Vec<String>,
    ) -> PyResult<(PySamples, bool)> {
        let (samples, is_more) = py.detach(|| self.0.read(since, until, bytes, &fields)).map_err(raised)?;
        let python = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let texts = |texts: &Texts| (python(&texts.there), python(&texts.bounds), python(&texts.content));
        let given = (
            samples.count,
            python(&samples.times),
            python(&samples.severities),
            python(&samples.statuses),
            self.0.header.payload.is_waveform.then(|| python(&samples.waveforms)),
            texts(&samples.values),
            samples.fields.iter().map(|(_, found)| texts(found)).collect(),
            samples.others,
        );
        Ok((given, is_more))
    }
}

fn raised(error: Wrong) -> PyErr {
    match error {
        Wrong::Io(error) => PyOSError::new_err(error.to_string()),
        error => PbError::new_err(error.to_string()),
    }
}
