//! The Python interface of the crate `spans`. Python's lock is free while it counts.

use crate::encoding::Held;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Summarises columns of `rows` doubles, one after another; `nulls` has a byte for each value, `starts` the first rows of the
/// spans. Returns the bytes of n, min, max, mean, first, last, squares, nans and nulls: a number of 8 bytes for each span,
/// column by column.
#[pyfunction]
pub fn summarise(
    py: Python<'_>,
    values: Held,
    nulls: Option<Held>,
    rows: usize,
    starts: Vec<usize>,
) -> PyResult<Vec<Py<PyBytes>>> {
    let (values, nulls) = (values.bytes(), nulls.as_ref().map(Held::bytes));
    let made = py.detach(|| spans::of_columns(values, nulls, rows, &starts).map(|spans| spans.bytes()));
    let made =
        made.ok_or_else(|| PyValueError::new_err("values, nulls, rows and spans do not fit together"))?;
    Ok(made.iter().map(|bytes| PyBytes::new(py, bytes).unbind()).collect())
}
