//! The edge to Python: a gateway that runs in its own threads.

use crate::gateway::Gateway;
use crate::metrics::Metrics;
use crate::postgres::{Address, PgError};
use crate::server;
use crate::tls::{self, Tls};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long `stop` waits for running calls.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a thread's stack: the compiler of T-SQL calls itself for every nesting of a text, as deep as Python
/// allows.
const STACK: usize = 16 << 20;

#[pyclass(name = "Server")]
struct PyServer {
    runtime: Option<Runtime>,
    /// Ends with the last session.
    serving: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    metrics: Arc<Metrics>,
    address: (String, u16),
}

#[pymethods]
impl PyServer {
    #[new]
    #[pyo3(signature = (*, postgres_host, postgres_port, database, role, password, host, port, tls = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        postgres_host: String,
        postgres_port: u16,
        database: String,
        role: String,
        password: String,
        host: String,
        port: u16,
        // certificate file, key file, whether everyone must
        tls: Option<(PathBuf, PathBuf, bool)>,
    ) -> PyResult<PyServer> {
        py.detach(|| {
            let tls = tls.map(|(certificate, key, required)| Tls::load(&certificate, &key, required));
            let tls = tls.transpose().map_err(|error| PyValueError::new_err(error.to_string()))?;
            let runtime = Builder::new_multi_thread()
                .worker_threads(threads())
                .thread_name("ringlog-gateway")
                .thread_stack_size(STACK)
                .enable_all()
                .build()?;
            let (stop, stopping) = watch::channel(false);
            let address = Address { host: postgres_host, port: postgres_port, database };
            let (local, metrics, serving) = runtime.block_on(async {
                let listener = TcpListener::bind((host.as_str(), port)).await.map_err(|error| {
                    PyOSError::new_err(format!("cannot listen on {host}:{port}: {error}"))
                })?;
                let local = listener.local_addr()?;
                let gateway = Gateway::start(address, &role, &password, tls, stopping)
                    .await
                    .map_err(|error| start_error(&error))?;
                let metrics = gateway.metrics.clone();
                Ok::<_, PyErr>((local, metrics, tokio::spawn(server::run(listener, gateway))))
            })?;
            let address = (local.ip().to_string(), local.port());
            Ok(PyServer { runtime: Some(runtime), serving: Some(serving), stop, metrics, address })
        })
    }

    /// Host and port it listens on.
    #[getter]
    fn address(&self) -> (String, u16) {
        self.address.clone()
    }

    /// What the gateway counts, as OpenMetrics text.
    fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// Ends the sessions after their running call and releases the port.
    fn stop(&mut self, py: Python<'_>) {
        if let Some(runtime) = self.runtime.take() {
            py.detach(|| {
                let _ = self.stop.send(true);
                if let Some(serving) = self.serving.take() {
                    let _ = runtime.block_on(async { timeout(STOP_TIMEOUT, serving).await });
                }
                runtime.shutdown_background();
            });
        }
    }
}

/// A quarter of the cores: PostgreSQL needs the others. On one thread a call costs a fifth less than on two,
/// because its tasks wake each other without the kernel.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() / 4).clamp(1, 4)
}

fn start_error(error: &PgError) -> PyErr {
    PyConnectionError::new_err(format!("the gateway cannot log in to PostgreSQL: {error}"))
}

/// A certificate for these host names and addresses, signed by its own key, and the key: both as PEM.
#[pyfunction]
fn self_signed(names: Vec<String>, days: u32) -> PyResult<(String, String)> {
    tls::self_signed(names, days).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::self_signed;
    #[pymodule_export]
    use super::PyServer;
}
