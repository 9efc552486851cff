//! The Python interface of a connection to an old server.

use super::connection::{Connection, Wanted};
use super::{Made, ReadError};
use crate::tds::dialect::Version;
use crate::tds::login::Password;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::Duration;

create_exception!(_core, OldServerError, PyException, "Rows of an old server cannot be read.");

/// Buffers of validity, bounds and content.
type PyMade = (Option<Py<PyBytes>>, Option<Py<PyBytes>>, Py<PyBytes>);

/// Python's lock is free while it waits and decodes. After an error it is closed.
#[pyclass(name = "OldServer")]
pub struct PyOldServer(Option<Connection>);

#[pymethods]
impl PyOldServer {
    #[new]
    #[pyo3(signature = (*, host, port, user, password, database, version, client, application, timeout))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        host: String,
        port: u16,
        user: String,
        password: String,
        database: String,
        version: &str,
        client: String,
        application: String,
        timeout: f64,
    ) -> PyResult<PyOldServer> {
        let version = match version {
            "5.0" => Version::Tds50,
            "7.0" | "7.1" => Version::Tds71,
            "7.2" => Version::Tds72,
            "7.3" => Version::Tds73,
            "7.4" => Version::Tds74,
            _ => return Err(PyValueError::new_err(format!("TDS {version}: 5.0, or 7.0 to 7.4"))),
        };
        let timeout =
            Duration::try_from_secs_f64(timeout).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let password = Password(password);
        let wanted = Wanted { host, port, user, password, database, version, client, application, timeout };
        Ok(PyOldServer(Some(py.detach(|| Connection::open(&wanted)).map_err(raised)?)))
    }

    /// Bytes of a packet that the server has agreed to.
    #[getter]
    fn packet_size(&mut self) -> PyResult<usize> {
        self.with(|connection| Ok(connection.packet_size()))
    }

    /// Sends a query, and returns its columns: names, and types as the Arrow C data interface writes them.
    fn query(&mut self, py: Python<'_>, text: &str) -> PyResult<Vec<(String, String)>> {
        py.detach(|| self.with(|connection| connection.query(text)))
    }

    /// The next rows, at most so many, and no more after so many bytes of the wire: their number and the columns.
    fn read(&mut self, py: Python<'_>, rows: usize, bytes: usize) -> PyResult<Option<(usize, Vec<PyMade>)>> {
        let found = py.detach(|| self.with(|connection| connection.read(rows, bytes)))?;
        let python = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let given = |made: Made| {
            (made.valid.as_deref().map(python), made.bounds.as_deref().map(python), python(&made.content))
        };
        Ok(found.map(|(rows, columns)| (rows, columns.into_iter().map(given).collect())))
    }

    fn close(&mut self) {
        self.0 = None;
    }
}

impl PyOldServer {
    fn with<T>(&mut self, work: impl FnOnce(&mut Connection) -> super::Result<T>) -> PyResult<T> {
        let closed = || OldServerError::new_err("the connection is closed");
        let done = work(self.0.as_mut().ok_or_else(closed)?);
        if done.is_err() {
            self.0 = None;
        }
        done.map_err(raised)
    }
}

fn raised(error: ReadError) -> PyErr {
    OldServerError::new_err(error.to_string())
}
