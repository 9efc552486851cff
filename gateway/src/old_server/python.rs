//! The Python interface of a connection to an old server.

use super::connection::{Connection, Wanted};
use super::file::BcpFile;
use super::{Described, Made, ReadError, Rows};
use crate::tds::charset::Charset;
use crate::tds::dialect::Version;
use crate::tds::login::Password;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::time::Duration;

create_exception!(_core, OldServerError, PyException, "Rows of an old server cannot be read.");

/// Buffers of validity, bounds and content.
type PyMade = (Option<Py<PyBytes>>, Option<Py<PyBytes>>, Py<PyBytes>);

/// A connection. Python's lock is released while it waits and decodes. An error closes it.
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

    /// The packet size agreed with the server, in bytes.
    #[getter]
    fn packet_size(&mut self) -> PyResult<usize> {
        self.with(|connection| Ok(connection.packet_size()))
    }

    /// Sends a query, and returns its columns: names, and types in the notation of the Arrow C data interface.
    fn query(&mut self, py: Python<'_>, text: &str) -> PyResult<Vec<(String, String)>> {
        py.detach(|| self.with(|connection| connection.query(text)))
    }

    /// The next rows, at most `rows`, and no more after `bytes` bytes of the wire: their number and the columns.
    fn read(&mut self, py: Python<'_>, rows: usize, bytes: usize) -> PyResult<Option<(usize, Vec<PyMade>)>> {
        let found = py.detach(|| self.with(|connection| connection.read(rows, bytes)))?;
        Ok(found.map(|rows| given(py, rows)))
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

/// A data file of bcp for one thread. Python's lock is released while it reads and decodes.
#[pyclass(name = "BcpFile")]
pub struct PyBcpFile(BcpFile);

/// A field: the column's name, the type, whether ASE wrote it, bytes of the prefix and of the value, the terminator,
/// and the wanted type.
type PyField = (String, String, bool, usize, usize, Vec<u8>, Option<String>);

#[pymethods]
impl PyBcpFile {
    #[new]
    fn new(path: PathBuf, fields: Vec<PyField>, charset: &str, scale: u8) -> PyResult<PyBcpFile> {
        let charset = Charset::named(charset)
            .ok_or_else(|| PyValueError::new_err(format!("the character set {charset} is not known")))?;
        let described = |(name, kind, is_sybase, prefix, length, terminator, wanted)| Described {
            name,
            kind,
            is_sybase,
            prefix,
            length,
            terminator,
            wanted,
        };
        let rows = Rows::new(fields.into_iter().map(described).collect(), charset, scale);
        Ok(PyBcpFile(rows.and_then(|rows| BcpFile::open(&path, rows)).map_err(raised)?))
    }

    /// The columns of the wanted fields: names, and types in the notation of the Arrow C data interface.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        self.0.columns()
    }

    /// Bytes of the file decoded so far.
    #[getter]
    fn done(&self) -> u64 {
        self.0.done()
    }

    /// The next rows, no more after `bytes` bytes of the file: their number and the columns.
    fn read(&mut self, py: Python<'_>, bytes: usize) -> PyResult<Option<(usize, Vec<PyMade>)>> {
        let found = py.detach(|| self.0.read(bytes)).map_err(raised)?;
        Ok(found.map(|rows| given(py, rows)))
    }
}

fn given(py: Python<'_>, (rows, columns): (usize, Vec<Made>)) -> (usize, Vec<PyMade>) {
    let python = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
    let buffers = |made: Made| {
        (made.valid.as_deref().map(python), made.bounds.as_deref().map(python), python(&made.content))
    };
    (rows, columns.into_iter().map(buffers).collect())
}

fn raised(error: ReadError) -> PyErr {
    OldServerError::new_err(error.to_string())
}
