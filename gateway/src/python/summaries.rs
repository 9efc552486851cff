//! The Python interface of the crate `spans`. Python's lock is released during the computation.

use super::encoding::{Held, Room};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spans::{Figure, Spans, Unpacker};

/// Summarises columns of `rows` doubles, one after another; `nulls` has a byte for each value, `starts` the first rows
/// of the spans, in 64 bits each. Returns the bytes of n, min, max, mean, first, last, squares, nans and nulls: a
/// number of 8 bytes for each span, column by column.
#[pyfunction]
pub fn summarise(
    py: Python<'_>,
    values: Held,
    nulls: Option<Held>,
    rows: usize,
    starts: Held,
) -> PyResult<Vec<Py<PyBytes>>> {
    let (values, nulls, starts) = (values.bytes(), nulls.as_ref().map(Held::bytes), indexes(&starts));
    given(py, py.detach(|| spans::of_columns(values, nulls, rows, &starts).map(|spans| spans.bytes())))
}

/// Combines spans of columns, one after another, each of `rows` spans: `parts` and the result have the layout of
/// `summarise`'s result, `starts` are the first spans of each longer one.
#[pyfunction]
pub fn combine(py: Python<'_>, parts: [Held; 9], rows: usize, starts: Held) -> PyResult<Vec<Py<PyBytes>>> {
    let (parts, starts) = (parts.each_ref().map(Held::bytes), indexes(&starts));
    let combined = py.detach(|| {
        let parts = Spans::of_bytes(parts)?;
        spans::combined(&parts, rows, &starts).map(|spans| spans.bytes())
    });
    given(py, combined)
}

/// The index of the first time of each bin. Times are whole numbers of 64 bits, bins have `width` and are counted from
/// 0. Returns the bytes of numbers of 64 bits.
#[pyfunction]
pub fn bin_starts(py: Python<'_>, times: Held, width: i64) -> PyResult<Py<PyBytes>> {
    if width <= 0 {
        return Err(PyValueError::new_err("bins have a width"));
    }
    let made: Vec<u8> = py.detach(|| {
        let starts = spans::bin_starts(times.bytes().as_chunks().0, width);
        starts.into_iter().flat_map(usize::to_le_bytes).collect()
    });
    Ok(PyBytes::new(py, &made).unbind())
}

/// The figure of each bin that needs all its readings, `median`, `skewness`, `kurtosis` or `loess`; NaN for a bin
/// without readings. The values are doubles without NaN, all others have 64 bits: the readings of each bin, the times of
/// the readings and of the bins' middles, in microseconds. Returns the bytes of doubles.
#[pyfunction]
pub fn whole_figures(
    py: Python<'_>,
    name: &str,
    times: Held,
    values: Held,
    counts: Held,
    middles: Held,
) -> PyResult<Py<PyBytes>> {
    let figure = Figure::named(name).ok_or_else(|| PyValueError::new_err(format!("no figure {name}")))?;
    let counts = indexes(&counts);
    let bytes = py.detach(|| {
        let values: Vec<f64> = numbers(&values, f64::from_le_bytes);
        let (times, middles) = (numbers(&times, i64::from_le_bytes), numbers(&middles, i64::from_le_bytes));
        let figures = spans::figures(figure, &times, &values, &counts, &middles)?;
        Some(figures.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<u8>>())
    });
    let bytes = bytes.ok_or_else(|| PyValueError::new_err("times, values and bins do not fit together"))?;
    Ok(PyBytes::new(py, &bytes).unbind())
}

/// Unpacks the numbers of closed blocks, one after another: each has a form, its bytes and a number of values. `room` is
/// a new buffer of so many numbers of `width` bytes. Raises ValueError for other bytes, if they can be recognised.
#[pyfunction]
pub fn unpack_numbers(
    py: Python<'_>,
    contents: Vec<(u8, Held, usize)>,
    width: usize,
    mut room: Room,
) -> PyResult<()> {
    let filled = py.detach(|| {
        let mut unpacker = Unpacker::new()?;
        let mut left = room.bytes();
        for (form, body, n) in &contents {
            let filled = n
                .checked_mul(width)
                .and_then(|size| left.split_off_mut(..size))
                .is_some_and(|out| unpacker.fill(*form, body.bytes(), width, out).is_some());
            if !filled {
                return Ok(Some((*form, *n)));
            }
        }
        Ok::<_, PyErr>(None)
    })?;
    filled.map_or(Ok(()), |(form, n)| {
        Err(PyValueError::new_err(format!("not {n} packed values of {width} bytes in form {form}")))
    })
}

fn numbers<T>(bytes: &Held, of_bytes: fn([u8; 8]) -> T) -> Vec<T> {
    let (numbers, _) = bytes.bytes().as_chunks::<8>();
    numbers.iter().copied().map(of_bytes).collect()
}

/// Indexes of 64 bits each.
fn indexes(bytes: &Held) -> Vec<usize> {
    numbers(bytes, |index| u64::from_le_bytes(index) as usize)
}

fn given(py: Python<'_>, made: Option<[Vec<u8>; 9]>) -> PyResult<Vec<Py<PyBytes>>> {
    let made =
        made.ok_or_else(|| PyValueError::new_err("values, nulls, rows and spans do not fit together"))?;
    Ok(made.iter().map(|bytes| PyBytes::new(py, bytes).unbind()).collect())
}
