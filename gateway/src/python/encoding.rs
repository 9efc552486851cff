//! The Python interface of the crate `encode`, for retrieval: converts Arrow's columns, passed as buffers, to lines of
//! bytes. Python's lock is released meanwhile.

use encode::column::Column;
use encode::events::{self, Events, Payload};
use encode::lines::{self, Piece, Style};
use encode::rows::{self, Kind};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A column as Python passes it: Arrow's format string, length, offset, the buffers of validity, bounds and content,
/// and for lists the column of their points.
#[derive(FromPyObject)]
pub struct Given {
    format: String,
    length: usize,
    offset: usize,
    valid: Option<Held>,
    bounds: Option<Held>,
    content: Option<Held>,
    points: Vec<Given>,
}

/// The bytes of an object, which stay in place while this exists.
pub struct Held(PyUntypedBuffer);

impl<'py> FromPyObject<'_, 'py> for Held {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(&object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyTypeError::new_err("a buffer of a column is not contiguous"));
        }
        Ok(Self(buffer))
    }
}

impl Held {
    /// The object's bytes must not change meanwhile; Arrow's buffers are immutable.
    #[allow(unsafe_code)]
    pub fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: Python keeps these bytes in place until the buffer is released when `self` is dropped
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

/// A writable buffer that no one else has yet.
pub struct Room(PyUntypedBuffer);

impl<'py> FromPyObject<'_, 'py> for Room {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(&object)?;
        if buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(PyTypeError::new_err("a buffer to fill is not writable, or not contiguous"));
        }
        Ok(Self(buffer))
    }
}

impl Room {
    /// No one else may use the object's bytes meanwhile.
    #[allow(unsafe_code)]
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: Python keeps these bytes in place until the buffer is released when `self` is dropped
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl Given {
    fn column(&self) -> PyResult<Column<'_>> {
        let [valid, bounds, content] =
            [&self.valid, &self.bounds, &self.content].map(|held| held.as_ref().map(Held::bytes));
        let points = self.points.first().map(Given::column).transpose()?;
        let Self { format, length, offset, .. } = self;
        let (bounds, content) = (bounds.unwrap_or_default(), content.unwrap_or_default());
        Column::new(format, *length, *offset, valid, bounds, content, points).ok_or_else(|| {
            PyValueError::new_err(format!("a column of type {format:?} has too few bytes, or is no samples'"))
        })
    }
}

/// Lines of these pieces, one for each value of the columns: a piece is bytes, or a style and a column.
#[pyfunction]
pub fn encode_lines<'py>(py: Python<'py>, pieces: Vec<GivenPiece>) -> PyResult<Bound<'py, PyBytes>> {
    let pieces = pieces.iter().map(GivenPiece::piece).collect::<PyResult<Vec<_>>>()?;
    let mut lengths = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(_) => None,
        Piece::Value(_, column) => Some(column.length),
    });
    let count = lengths.next().ok_or_else(|| PyValueError::new_err("lines need a column"))?;
    if lengths.any(|length| length != count) {
        return Err(PyValueError::new_err("the columns of lines have different lengths"));
    }
    let made = py.detach(|| lines::lines(&pieces, count));
    Ok(PyBytes::new(py, &made))
}

/// PostgreSQL's messages of the rows of these columns, of which some are times in microseconds, and the begin of each
/// message, with the end of the last: whole numbers of 64 bits.
#[pyfunction]
pub fn encode_rows<'py>(
    py: Python<'py>,
    columns: Vec<(bool, Given)>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let columns = columns
        .iter()
        .map(|(is_time, given)| Ok((if *is_time { Kind::Time } else { Kind::Plain }, given.column()?)))
        .collect::<PyResult<Vec<_>>>()?;
    let count = columns.first().map_or(0, |(_, column)| column.length);
    if columns.iter().any(|(_, column)| column.length != count) {
        return Err(PyValueError::new_err("the columns of rows have different lengths"));
    }
    let (messages, begins) = py
        .detach(|| rows::rows(&columns, count))
        .ok_or_else(|| PyValueError::new_err("a row is too long for PostgreSQL's protocol"))?;
    let begins: Vec<u8> = begins.iter().flat_map(|begin| begin.to_ne_bytes()).collect();
    Ok((PyBytes::new(py, &messages), PyBytes::new(py, &begins)))
}

#[derive(FromPyObject)]
pub enum GivenPiece {
    Text(Vec<u8>),
    Value(String, Given),
    OrElse(String, Given, Vec<u8>),
}

impl GivenPiece {
    fn piece(&self) -> PyResult<Piece<'_>> {
        let (style, given, missing) = match self {
            Self::Text(text) => return Ok(Piece::Text(text)),
            Self::Value(style, given) => (style, given, &[][..]),
            Self::OrElse(style, given, missing) => (style, given, &missing[..]),
        };
        let style = match style.as_str() {
            "json" => Style::Json,
            "json_bits" => Style::JsonBits,
            "reading" => Style::Reading,
            "raw" => Style::Raw,
            "csv" => Style::Csv(missing),
            "seconds" => Style::Seconds,
            "below_second" => Style::BelowSecond,
            "milliseconds" => Style::Milliseconds,
            "human" => Style::Human,
            "thousandths" => Style::Thousandths,
            "iso" => Style::Iso,
            _ => return Err(PyValueError::new_err(format!("no style {style:?}"))),
        };
        Ok(Piece::Value(style, given.column()?))
    }
}

/// Lines of PB/HTTP: events of the year that begins at the second `begin`.
#[pyfunction]
#[pyo3(signature = (payload, begin, nanoseconds, values, severity, status, fields))]
#[allow(clippy::too_many_arguments)]
pub fn encode_events<'py>(
    py: Python<'py>,
    payload: u8,
    begin: i64,
    nanoseconds: Given,
    values: Given,
    severity: Option<Given>,
    status: Option<Given>,
    fields: Vec<(String, Given)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let payload =
        Payload::of(payload).ok_or_else(|| PyValueError::new_err(format!("no payload {payload}")))?;
    let alarms = severity.as_ref().zip(status.as_ref());
    let events = Events {
        nanoseconds: nanoseconds.column()?,
        values: values.column()?,
        alarms: alarms
            .map(|(severity, status)| Ok::<_, PyErr>((severity.column()?, status.column()?)))
            .transpose()?,
        fields: fields
            .iter()
            .map(|(name, texts)| Ok((name.as_bytes(), texts.column()?)))
            .collect::<PyResult<_>>()?,
    };
    if !events.fit() {
        return Err(PyValueError::new_err("the columns of events have different lengths"));
    }
    let made = py.detach(|| events::lines(payload, begin, &events));
    Ok(PyBytes::new(py, &made))
}

/// The line before the events of a year.
#[pyfunction]
pub fn encode_header<'py>(
    py: Python<'py>,
    payload: u8,
    name: &str,
    year: i32,
    points: u32,
    pairs: Vec<(String, String)>,
) -> Bound<'py, PyBytes> {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    PyBytes::new(py, &events::header(payload, name.as_bytes(), year, points, &pairs))
}
