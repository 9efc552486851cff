//! The Python interface: of the gateway, which runs on its own threads, and of the crates `encode`, `sampling` and
//! `spans`.

mod encoding;
mod recordings;
mod sampling;
mod summaries;

use crate::callers::{Caller, LastCall};
use crate::gateway::Gateway;
use crate::listener;
use crate::log;
use crate::metrics::Metrics;
use crate::nodes::{NodeAddress, Nodes};
use crate::postgres::priority::WriterPriority;
use crate::postgres::{Address, Encryption, Host, PgError, Wanted};
use crate::program::Settings;
use crate::tds::charset::Charset;
use crate::threads::Threads;
use crate::tls::{self, Tls};
use pyo3::create_exception;
use pyo3::exceptions::{PyConnectionError, PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The time that `stop` waits for running calls.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Hosts or socket directories with their ports, whether the server must accept writes, sslmode, sslrootcert and
/// database.
type PyServers = (Vec<(String, u16)>, bool, String, Option<PathBuf>, String);
/// A node: its name, its servers, and the gateway's role and password there.
type PyNode = (String, PyServers, String, String);
type PyLastCall = (String, (String, String, String), f64, Option<(f64, i32, String)>);

#[pyclass(name = "Server")]
struct PyServer {
    threads: Option<Threads>,
    /// Ends with the last session.
    serving: Option<JoinHandle<()>>,
    stop: CancellationToken,
    metrics: Arc<Metrics>,
    nodes: Arc<Nodes>,
    tls: Option<Arc<Tls>>,
    address: (String, u16),
}

#[pymethods]
impl PyServer {
    #[new]
    #[pyo3(signature = (*, postgres, read_write, sslmode, sslrootcert, database, role, password, host, port, reserved_for = Vec::new(), nodes = Vec::new(), tls = None, postmaster = None, writers_first = true))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        // hosts or socket directories, with their ports
        postgres: Vec<(String, u16)>,
        read_write: bool,
        sslmode: String,
        sslrootcert: Option<PathBuf>,
        database: String,
        role: String,
        password: String,
        host: String,
        port: u16,
        // roles whose members have the last sessions and connections
        reserved_for: Vec<String>,
        nodes: Vec<PyNode>,
        // certificate file, key file, whether TLS is required
        tls: Option<(PathBuf, PathBuf, bool)>,
        postmaster: Option<i32>,
        writers_first: bool,
    ) -> PyResult<PyServer> {
        py.detach(|| {
            let tls =
                tls.map(|(certificate, key, required)| Tls::load(certificate, key, required).map(Arc::new));
            let tls = tls.transpose().map_err(|error| PyValueError::new_err(error.to_string()))?;
            let own_tls = tls.clone();
            let threads = Threads::start(writers_first)?;
            let stop = CancellationToken::new();
            let stopping = stop.clone();
            let address = address_of((postgres, read_write, sslmode, sslrootcert, database))?;
            let addresses = addresses_of(nodes)?;
            let (local, metrics, nodes, serving) = threads.block_on(async {
                let (calls, statements) = (threads.calls(), threads.statements());
                let listening = statements.run(listener::bind(host.clone(), port));
                let listener = listening.await.map_err(|error| {
                    PyOSError::new_err(format!("cannot listen on {host}:{port}: {error}"))
                })?;
                let local = listener.local_addr()?;
                let priority = WriterPriority::new(writers_first, postmaster);
                let start = Gateway::start(
                    address,
                    &role,
                    &password,
                    reserved_for,
                    addresses,
                    tls,
                    priority,
                    stopping,
                    calls,
                    statements.clone(),
                );
                let gateway = start.await.map_err(|error| start_error(&error))?;
                let (metrics, nodes) = (gateway.metrics.clone(), gateway.nodes.clone());
                Ok::<_, PyErr>((local, metrics, nodes, statements.spawn(listener::run(listener, gateway))))
            })?;
            let address = (local.ip().to_string(), local.port());
            Ok(PyServer {
                threads: Some(threads),
                serving: Some(serving),
                stop,
                metrics,
                nodes,
                tls: own_tls,
                address,
            })
        })
    }

    /// Host and port it listens on.
    #[getter]
    fn address(&self) -> (String, u16) {
        self.address.clone()
    }

    /// The gateway's metrics, as OpenMetrics text.
    fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// Reads the certificate and its key again. On ValueError the previous ones remain in use.
    fn reload_tls(&self) -> PyResult<()> {
        let reloaded = self.tls.as_ref().map_or(Ok(()), |tls| tls.reload());
        reloaded.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Adds new nodes, and those with a changed address.
    fn know_nodes(&self, py: Python<'_>, nodes: Vec<PyNode>) -> PyResult<()> {
        let addresses = addresses_of(nodes)?;
        if let Some(threads) = &self.threads {
            py.detach(|| threads.block_on(async { self.nodes.add(addresses) }));
        }
        Ok(())
    }

    /// The last call of each procedure that was called: its name; host, program and login of the caller; the time in
    /// seconds since 1970; and time, number and text of its last error, if any.
    fn last_calls(&self) -> Vec<PyLastCall> {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let row = |(name, call): (String, LastCall)| {
            let Caller { host, program, login } = &*call.caller;
            let error = call.error.map(|error| (seconds(error.at), error.number, error.text));
            (name, (host.clone(), program.clone(), login.clone()), seconds(call.at), error)
        };
        self.metrics.last_calls.all().into_iter().map(row).collect()
    }

    /// Ends the sessions after their running call and releases the port.
    fn stop(&mut self, py: Python<'_>) {
        if let Some(threads) = self.threads.take() {
            py.detach(|| {
                self.stop.cancel();
                if let Some(serving) = self.serving.take() {
                    let _ = threads.block_on(async { timeout(STOP_TIMEOUT, serving).await });
                }
                threads.shutdown();
            });
        }
    }
}

fn addresses_of(nodes: Vec<PyNode>) -> PyResult<Vec<NodeAddress>> {
    let address = |(name, server, role, password)| {
        Ok(NodeAddress { name, address: address_of(server)?, role, password })
    };
    nodes.into_iter().map(address).collect()
}

fn address_of((hosts, read_write, sslmode, sslrootcert, database): PyServers) -> PyResult<Address> {
    let encryption = Encryption::new(&sslmode, sslrootcert.as_deref())
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let hosts = hosts.into_iter().map(|(name, port)| Host { name, port }).collect();
    let wanted = if read_write { Wanted::Primary } else { Wanted::Any };
    Ok(Address::new(hosts, database, encryption, wanted))
}

fn start_error(error: &PgError) -> PyErr {
    PyConnectionError::new_err(format!("the gateway cannot log in to PostgreSQL: {error}"))
}

/// Makes the gateway log events of this level (error, warn, info, debug) and above to standard error.
#[pyfunction]
#[pyo3(signature = (level, *, json))]
fn start_log(level: &str, json: bool) -> PyResult<()> {
    log::start(level.parse().map_err(|_| PyValueError::new_err(format!("no level {level:?}")))?, json);
    Ok(())
}

/// A self-signed certificate for these host names and addresses, and its key, both as PEM.
#[pyfunction]
fn self_signed(names: Vec<String>, days: u32) -> PyResult<(String, String)> {
    tls::self_signed(names, days).map_err(|error| PyValueError::new_err(error.to_string()))
}

create_exception!(_core, TsqlError, PyException, "A text of T-SQL cannot be run: number, line and text.");

/// The SQL for PostgreSQL of the statements of a batch, in order, as a session runs it, with `$1`, `$2` and so on for
/// variables. Statements without SQL are omitted. Raises TsqlError.
#[pyfunction]
#[pyo3(signature = (text, *, database = String::new(), sybase = false, quoted_identifiers = None))]
fn translate(
    text: &str,
    database: String,
    sybase: bool,
    quoted_identifiers: Option<bool>,
) -> PyResult<Vec<String>> {
    let quoted_identifiers = quoted_identifiers.unwrap_or(!sybase);
    let dialect = if sybase { &tsql::ASE } else { &tsql::SQL_SERVER };
    let settings =
        Settings { database, dialect, nulls_equal: sybase, quoted_identifiers, ..Settings::default() };
    let program = tsql::compile(text, &settings)
        .map_err(|error| TsqlError::new_err((error.number, error.line, error.text)))?;
    Ok(program.sql())
}

/// The name of a character set, from Sybase's name or that of a Windows code page; None: unknown.
#[pyfunction]
fn charset_name(name: &str) -> Option<&'static str> {
    Charset::named(name).map(Charset::name)
}

/// Decodes bytes of a character set, as the gateway decodes clients' texts; None: invalid bytes, or an unknown set.
#[pyfunction]
fn decode_text(charset: &str, bytes: &[u8]) -> Option<String> {
    Some(Charset::named(charset)?.decode(bytes)?.into_owned())
}

/// A script of schema tsql with the facts about T-SQL that it names.
#[pyfunction]
fn fill_facts(script: &str) -> String {
    tsql::facts::filled(script)
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::charset_name;
    #[pymodule_export]
    use super::decode_text;
    #[pymodule_export]
    use super::encoding::{encode_events, encode_header, encode_lines, encode_rows};
    #[pymodule_export]
    use super::fill_facts;
    #[pymodule_export]
    use super::recordings::{PyBatch, PyCsvFile};
    #[pymodule_export]
    use super::sampling::{py_moved, PyCells, PyChannelAccess, PySignals};
    #[pymodule_export]
    use super::self_signed;
    #[pymodule_export]
    use super::start_log;
    #[pymodule_export]
    use super::summaries::{bin_starts, combine, summarise, unpack_numbers, whole_figures};
    #[pymodule_export]
    use super::translate;
    #[pymodule_export]
    use super::PyServer;
    #[pymodule_export]
    use super::TsqlError;
    use crate::limits::admission;
    #[pymodule_export]
    use crate::mirror::PyMirror;
    #[pymodule_export]
    use crate::old_server::{OldServerError, PyBcpFile, PyOldServer};
    #[pymodule_export]
    use crate::pb::{PbError, PyPbFile};
    #[pymodule_export]
    const FIRST_TIME: i64 = sampling::signals::FIRST_TIME;
    // the limits of wrong passwords, which hold over HTTP too; times in seconds
    #[pymodule_export]
    const FREE_FAILURES: u32 = admission::FREE_FAILURES;
    #[pymodule_export]
    const REFUSAL_PAUSE: f64 = admission::REFUSAL_PAUSE.as_secs_f64();
    #[pymodule_export]
    const TURN: f64 = admission::TURN.as_secs_f64();
    #[pymodule_export]
    const LONGEST_WAIT: f64 = admission::LONGEST_WAIT.as_secs_f64();
    #[pymodule_export]
    const FORGOTTEN: f64 = admission::FORGOTTEN.as_secs_f64();
    #[pymodule_export]
    const MOST_REMEMBERED: usize = admission::MOST_REMEMBERED;
}
