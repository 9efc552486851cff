//! The Python interface of the crate `sampling`, for the loader.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};
use sampling::cells::{Cells, Policy, Stamp};
use sampling::channel_access::{ChannelAccess, Event, Part, Value, Variable};
use sampling::monitors::{MonitorEvent, Monitors};
use sampling::reading::{Deadband, Reading};

/// A policy as Python passes it: whether it monitors, microseconds of a cycle and of the shortest period, seconds of
/// the longest, microseconds that a clock may be ahead, the deadband of each column (a distance, and whether it is
/// relative), the index of the nanoseconds.
type GivenPolicy = (bool, i64, Option<i64>, Option<f64>, i64, Vec<Option<(f64, bool)>>, Option<usize>);

fn policy_of(given: GivenPolicy) -> PyResult<Policy> {
    let (monitors, cycle, min_period, max_period, clock_drift, deadbands, nanoseconds) = given;
    let max_period = max_period
        .map(Duration::try_from_secs_f64)
        .transpose()
        .map_err(|error| PyValueError::new_err(format!("max_period: {error}")))?;
    let deadbands = deadbands
        .into_iter()
        .map(|deadband| deadband.map(|(distance, relative)| Deadband { distance, relative }))
        .collect::<Vec<_>>();
    if nanoseconds.is_some_and(|place| place >= deadbands.len()) {
        return Err(PyValueError::new_err("the nanoseconds have no column"));
    }
    Ok(Policy { monitors, cycle, min_period, max_period, clock_drift, deadbands, nanoseconds })
}

fn reading_of(object: &Bound<'_, PyAny>) -> PyResult<Reading> {
    Ok(if object.is_none() {
        Reading::Missing
    } else if let Ok(bit) = object.cast::<PyBool>() {
        Reading::Bit(bit.is_true())
    } else if object.is_instance_of::<PyFloat>() {
        Reading::Float(object.extract()?)
    } else if object.is_instance_of::<PyInt>() {
        Reading::Whole(object.extract()?)
    } else if let Ok(text) = object.cast::<PyString>() {
        Reading::Text(text.to_cow()?.as_ref().into())
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        Reading::Bytes(bytes.as_bytes().into())
    } else {
        return Err(PyTypeError::new_err(format!("{} is no reading", object.repr()?)));
    })
}

fn object_of<'py>(py: Python<'py>, reading: &Reading) -> Bound<'py, PyAny> {
    match reading {
        Reading::Missing => py.None().into_bound(py),
        Reading::Bit(bit) => PyBool::new(py, *bit).to_owned().into_any(),
        Reading::Whole(number) => PyInt::new(py, *number).into_any(),
        Reading::Float(number) => PyFloat::new(py, *number).into_any(),
        Reading::Text(text) => PyString::new(py, text).into_any(),
        Reading::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
    }
}

fn objects_of<'py>(py: Python<'py>, readings: &[Reading]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, readings.iter().map(|reading| object_of(py, reading)))
}

/// The readings of a table's columns.
#[pyclass(name = "Cells", frozen)]
pub struct PyCells(Arc<Mutex<Cells>>);

#[pymethods]
impl PyCells {
    #[new]
    fn new(policy: GivenPolicy) -> PyResult<Self> {
        Ok(Self(Arc::new(Mutex::new(Cells::new(policy_of(policy)?)))))
    }

    fn adopt(&self, policy: GivenPolicy) -> PyResult<()> {
        let policy = policy_of(policy)?;
        let mut cells = self.0.lock();
        if policy.deadbands.len() != cells.columns() {
            return Err(PyValueError::new_err("another policy has the same columns"));
        }
        cells.adopt(policy);
        Ok(())
    }

    fn believed(&self, stamp: i64, signal: &str) -> (i64, Option<i64>) {
        self.0.lock().believed(stamp, signal)
    }

    fn set(&self, readings: Vec<(usize, Bound<'_, PyAny>)>, stamp: i64, nanoseconds: u16) -> PyResult<()> {
        let came = Instant::now();
        let readings = readings
            .into_iter()
            .map(|(place, object)| Ok((place, reading_of(&object)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let mut cells = self.0.lock();
        if readings.iter().any(|(place, _)| *place >= cells.columns()) {
            return Err(PyValueError::new_err("a reading has no column"));
        }
        for (place, reading) in readings {
            cells.set(place, reading, Stamp { microseconds: stamp, nanoseconds }, came);
        }
        Ok(())
    }

    fn take_dropped(&self) -> u64 {
        self.0.lock().take_dropped()
    }

    fn scan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let readings = self.0.lock().scan();
        objects_of(py, &readings)
    }

    fn due<'py>(&self, py: Python<'py>) -> PyResult<Vec<(i64, Bound<'py, PyTuple>)>> {
        let rows = self.0.lock().due();
        rows.into_iter().map(|row| Ok((row.time, objects_of(py, &row.values)?))).collect()
    }
}

/// Channel Access: subscriptions that set the readings of a table.
#[pyclass(name = "ChannelAccess", frozen)]
pub struct PyChannelAccess(ChannelAccess);

#[pymethods]
impl PyChannelAccess {
    #[new]
    fn new(
        py: Python<'_>,
        libca: PathBuf,
        variables: Vec<(String, Vec<(usize, String)>)>,
        cells: &PyCells,
    ) -> PyResult<Self> {
        let columns = cells.0.lock().columns();
        let variables = variables
            .into_iter()
            .map(|(name, places)| {
                let places = places.into_iter().map(|(place, part)| match part_of(&part) {
                    Some(part) if place < columns => Ok((place, part)),
                    _ => Err(PyValueError::new_err(format!("{name}: no column {place} of {part}"))),
                });
                Ok(Variable { columns: places.collect::<PyResult<_>>()?, name: name.clone() })
            })
            .collect::<PyResult<_>>()?;
        let cells = Arc::clone(&cells.0);
        py.detach(|| ChannelAccess::new(&libca, variables, &cells)).map(Self).map_err(PyOSError::new_err)
    }

    fn miss(&self) {
        self.0.miss();
    }

    /// Waits for events without Python's lock.
    #[allow(clippy::type_complexity)]
    fn events<'py>(
        &self,
        py: Python<'py>,
        seconds: f64,
    ) -> PyResult<Vec<(usize, i64, &'static str, Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let patience =
            Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let events = py.detach(|| self.0.events(patience));
        let whole = |number: i64| PyInt::new(py, number).into_any();
        let none = || py.None().into_bound(py);
        events
            .into_iter()
            .map(|(variable, moment, event)| {
                let (kind, first, second) = match event {
                    Event::Connected => ("connected", none(), none()),
                    Event::Disconnected => ("disconnected", none(), none()),
                    Event::Alarm { severity, status } => {
                        ("alarm", whole(severity.into()), whole(status.into()))
                    }
                    Event::Ahead { seconds } => ("clock", whole(seconds), none()),
                    Event::Unfit { place, value } => ("unfit", whole(place as i64), unfit_object(py, value)),
                };
                Ok((variable, moment, kind, first, second))
            })
            .collect()
    }
}

/// An event as Python receives it: the signal's number, nanoseconds since 1970 (None: it is lost), value, severity,
/// status.
type GivenEvent<'py> = (u32, Option<i64>, Bound<'py, PyAny>, u16, u16);

/// Events of monitors of EPICS's libca created by Python, with the object that represents any array.
#[pyclass(name = "Monitors", frozen)]
pub struct PyMonitors {
    monitors: Monitors,
    array: Py<PyAny>,
}

#[pymethods]
impl PyMonitors {
    #[new]
    fn new(array: Py<PyAny>) -> Self {
        Self { monitors: Monitors::default(), array }
    }

    #[staticmethod]
    fn callback() -> usize {
        Monitors::callback()
    }

    fn subscriber(&self, number: u32) -> usize {
        self.monitors.subscriber(number)
    }

    fn take<'py>(&self, py: Python<'py>) -> Vec<GivenEvent<'py>> {
        let given = |(number, update): MonitorEvent| {
            let Some(update) = update else { return (number, None, py.None().into_bound(py), 0, 0) };
            let value = match update.value {
                Value::Whole(whole) => PyInt::new(py, whole).into_any(),
                Value::Float(float) => PyFloat::new(py, float).into_any(),
                Value::Text | Value::Array => self.array.bind(py).clone(),
            };
            let time = update.seconds * 1_000_000_000 + i64::from(update.nanoseconds);
            (number, Some(time), value, update.severity, update.status)
        };
        self.monitors.take().into_iter().map(given).collect()
    }
}

/// A text represents any text, a tuple any array.
fn unfit_object<'py>(py: Python<'py>, value: Value) -> Bound<'py, PyAny> {
    match value {
        Value::Whole(number) => PyInt::new(py, number).into_any(),
        Value::Float(number) => PyFloat::new(py, number).into_any(),
        Value::Text => PyString::new(py, "").into_any(),
        Value::Array => PyTuple::empty(py).into_any(),
    }
}

/// A part by its name: a column's type, or the field of an alarm or a time stamp.
fn part_of(name: &str) -> Option<Part> {
    Some(match name {
        "double" => Part::Double,
        "real" => Part::Real,
        "smallint" => Part::Whole(16),
        "int" => Part::Whole(32),
        "bigint" => Part::Whole(64),
        "bit" => Part::Bit,
        ".SEVR" => Part::Severity,
        ".STAT" => Part::Status,
        ".TIME" => Part::Time,
        _ => return None,
    })
}
