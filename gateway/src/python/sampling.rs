//! The Python interface of the crate `sampling`, for the loader.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pyo3::exceptions::{PyException, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};
use sampling::cells::{Cells, Policy, Stamp};
use sampling::channel_access::{self, ChannelAccess, Columns, Wanted};
use sampling::reading::{moved, Deadband, Reading};
use sampling::signals::{Alarm, Event, Signals, Unfit, Variable};
use sampling::value::{Part, Property, Value};

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
    let deadbands = deadbands_of(deadbands);
    if nanoseconds.is_some_and(|column| column >= deadbands.len()) {
        return Err(PyValueError::new_err("the nanoseconds have no column"));
    }
    Ok(Policy { monitors, cycle, min_period, max_period, clock_drift, deadbands, nanoseconds })
}

fn deadbands_of(given: Vec<Option<(f64, bool)>>) -> Vec<Option<Deadband>> {
    let deadband = |(distance, relative)| Deadband { distance, relative };
    given.into_iter().map(|given| given.map(deadband)).collect()
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
            .map(|(column, object)| Ok((column, reading_of(&object)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let mut cells = self.0.lock();
        if readings.iter().any(|(column, _)| *column >= cells.columns()) {
            return Err(PyValueError::new_err("a reading has no column"));
        }
        for (column, reading) in readings {
            cells.set(column, reading, Stamp { microseconds: stamp, nanoseconds }, came);
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

/// Whether one of some readings counts as changed, each with its deadband; one of them may be excluded.
#[pyfunction]
#[pyo3(name = "moved", signature = (deadbands, before, after, excluded=None))]
pub fn py_moved(
    deadbands: Vec<Option<(f64, bool)>>,
    before: Vec<Bound<'_, PyAny>>,
    after: Vec<Bound<'_, PyAny>>,
    excluded: Option<usize>,
) -> PyResult<bool> {
    if deadbands.len() != before.len() || before.len() != after.len() {
        return Err(PyValueError::new_err("the numbers of readings and deadbands differ"));
    }
    for (index, deadband) in deadbands_of(deadbands).into_iter().enumerate() {
        if excluded != Some(index)
            && moved(deadband, &reading_of(&before[index])?, &reading_of(&after[index])?)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Process variables whose readings set the columns of a table.
#[pyclass(name = "Signals", frozen)]
pub struct PySignals(Arc<Signals<Value>>);

#[pymethods]
impl PySignals {
    #[new]
    fn new(cells: &PyCells, variables: Vec<(String, Vec<usize>)>) -> PyResult<Self> {
        let columns = cells.0.lock().columns();
        if variables.iter().any(|(_, indexes)| indexes.iter().any(|index| *index >= columns)) {
            return Err(PyValueError::new_err("a signal has no column"));
        }
        let variable = |(name, columns)| Variable { name, columns };
        Ok(Self(Arc::new(Signals::new(variables.into_iter().map(variable).collect(), &cells.0))))
    }

    /// An exception is the reason why a column cannot hold a value.
    fn read(
        &self,
        number: usize,
        readings: Vec<(usize, Bound<'_, PyAny>)>,
        severity: u16,
        status: u16,
        seconds: i64,
        nanoseconds: i64,
    ) -> PyResult<()> {
        self.check(number)?;
        let seconds = seconds.saturating_add(nanoseconds.div_euclid(1_000_000_000));
        // below 10^9
        let nanoseconds = nanoseconds.rem_euclid(1_000_000_000) as u32;
        let columns = self.0.columns(number);
        let reading = |(index, object): (usize, Bound<'_, PyAny>)| {
            if !columns.contains(&index) {
                return Err(PyValueError::new_err("a reading has no column"));
            }
            let is_unfit = object.is_instance_of::<PyException>();
            let reason = || Ok::<_, PyErr>(Unfit::Reason(object.str()?.to_string()));
            Ok((index, if is_unfit { Err(reason()?) } else { Ok(reading_of(&object)?) }))
        };
        let readings = readings.into_iter().map(reading).collect::<PyResult<_>>()?;
        self.0.read(number, readings, Alarm { severity, status, seconds, nanoseconds });
        Ok(())
    }

    fn lose(&self, number: usize) -> PyResult<()> {
        self.check(number)?;
        self.0.lose(number);
        Ok(())
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
        let patience = patience_of(seconds)?;
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
                    Event::Undefined => ("clock", none(), none()),
                    Event::Unfit(Unfit::Reason(reason)) => {
                        ("unfit", none(), PyString::new(py, &reason).into_any())
                    }
                    Event::Unfit(Unfit::Value { index, value }) => {
                        ("unfit", whole(index as i64), value_of(py, value)?)
                    }
                };
                Ok((variable, moment, kind, first, second))
            })
            .collect()
    }
}

impl PySignals {
    fn check(&self, number: usize) -> PyResult<()> {
        if number < self.0.len() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("there is no signal {number}")))
    }
}

/// An event as Python receives it: the signal's number, nanoseconds since 1970 (None: it is lost), value, severity,
/// status.
type GivenEvent<'py> = (u32, Option<i64>, Bound<'py, PyAny>, u16, u16);
/// A property: the signal's number, the kind of the property or the name of a field, and its content.
type GivenProperty<'py> = (u32, &'static str, Bound<'py, PyAny>);

/// Monitors of Channel Access.
#[pyclass(name = "ChannelAccess", frozen)]
pub struct PyChannelAccess(ChannelAccess);

#[pymethods]
impl PyChannelAccess {
    #[new]
    fn new(libca: PathBuf) -> PyResult<Self> {
        ChannelAccess::new(&libca).map(Self).map_err(PyOSError::new_err)
    }

    #[pyo3(signature = (
        number, name, *, is_text=false, is_array=false, is_log=false, has_properties=false, signals=None,
        parts=Vec::new()
    ))]
    #[allow(clippy::too_many_arguments)]
    fn add(
        &self,
        number: u32,
        name: String,
        is_text: bool,
        is_array: bool,
        is_log: bool,
        has_properties: bool,
        signals: Option<&PySignals>,
        parts: Vec<(usize, String)>,
    ) -> PyResult<()> {
        let columns = match signals {
            None => None,
            Some(signals) => {
                let own = number as usize;
                signals.check(own)?;
                let part = |(index, part): (usize, String)| match part_of(&part) {
                    Some(known) if signals.0.columns(own).contains(&index) => Ok((index, known)),
                    _ => Err(PyValueError::new_err(format!("{name}: no column {index} of {part}"))),
                };
                let parts = parts.into_iter().map(part).collect::<PyResult<_>>()?;
                Some(Columns { signals: Arc::clone(&signals.0), number: own, parts })
            }
        };
        self.0.add(Wanted { number, name, is_text, is_array, is_log, has_properties }, columns);
        Ok(())
    }

    fn remove(&self, number: u32) {
        self.0.remove(number);
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn read_fields(&self) {
        self.0.read_fields();
    }

    fn end(&self, py: Python<'_>) {
        py.detach(|| self.0.end());
    }

    /// Waits for events without Python's lock.
    fn events<'py>(
        &self,
        py: Python<'py>,
        seconds: f64,
    ) -> PyResult<(Vec<GivenEvent<'py>>, Vec<GivenProperty<'py>>)> {
        let patience = patience_of(seconds)?;
        let (mut events, mut properties) = (Vec::new(), Vec::new());
        for (number, event) in py.detach(|| self.0.events(patience)) {
            match event {
                channel_access::Event::Update(value, alarm) => {
                    let time = alarm.seconds * 1_000_000_000 + i64::from(alarm.nanoseconds);
                    events.push((number, Some(time), value_of(py, value)?, alarm.severity, alarm.status));
                }
                channel_access::Event::Lost => {
                    events.push((number, None, py.None().into_bound(py), 0, 0));
                }
                channel_access::Event::Property(property) => {
                    let (kind, content) = match property {
                        Property::States(names) => ("states", names.into_pyobject(py)?),
                        Property::Numbers { decimals, unit, limits } => {
                            ("numbers", (decimals, unit, limits).into_pyobject(py)?.into_any())
                        }
                        Property::Field(name, text) => (name, PyString::new(py, &text).into_any()),
                    };
                    properties.push((number, kind, content));
                }
            }
        }
        Ok((events, properties))
    }
}

fn patience_of(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A value; points are a numpy array.
fn value_of(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Missing => py.None().into_bound(py),
        Value::Whole(number) => PyInt::new(py, number).into_any(),
        Value::Float(number) => PyFloat::new(py, number).into_any(),
        Value::Text(text) => PyString::new(py, &text).into_any(),
        Value::Texts(texts) => texts.into_pyobject(py)?,
        Value::Points(code, points) => {
            py.import("numpy")?.getattr("frombuffer")?.call1((PyBytes::new(py, &points), code))?
        }
    })
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
