//! The Python interface of the mirror, which runs on its own threads.

use super::{run, Answering, Record, Servers};
use crate::threads::Threads;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[pyclass(name = "Mirror")]
pub struct PyMirror {
    threads: Option<Threads>,
    stop: CancellationToken,
    answering: watch::Sender<Answering>,
    record: Arc<Record>,
    address: (String, u16),
}

#[pymethods]
impl PyMirror {
    #[new]
    #[pyo3(signature = (*, host, port, old, new, report))]
    fn new(
        py: Python<'_>,
        host: String,
        port: u16,
        old: String,
        new: String,
        report: PathBuf,
    ) -> PyResult<PyMirror> {
        py.detach(|| {
            let record = Record::open(&report).map_err(|error| {
                PyOSError::new_err(format!("cannot write the report {}: {error}", report.display()))
            })?;
            let record = Arc::new(record);
            let threads = Threads::start(true)?;
            let stop = CancellationToken::new();
            let (answering, heard) = watch::channel(Answering::default());
            let shadows = threads.statements();
            let local = threads.block_on(async {
                let listener = TcpListener::bind((host.as_str(), port)).await.map_err(|error| {
                    PyOSError::new_err(format!("cannot listen on {host}:{port}: {error}"))
                })?;
                let local = listener.local_addr()?;
                let servers = Servers { old, new };
                tokio::spawn(run(listener, servers, heard, record.clone(), shadows, stop.clone()));
                Ok::<_, PyErr>(local)
            })?;
            let address = (local.ip().to_string(), local.port());
            Ok(PyMirror { threads: Some(threads), stop, answering, record, address })
        })
    }

    /// Host and port it listens on.
    #[getter]
    fn address(&self) -> (String, u16) {
        self.address.clone()
    }

    /// Whether the new server answers.
    #[getter]
    fn new_answers(&self) -> bool {
        self.answering.borrow().new
    }

    /// Selects the server that answers new sessions. With `close`, open sessions end as soon as they are
    /// idle.
    fn switch(&self, new: bool, close: bool) {
        self.answering.send_modify(|answering| {
            answering.new = new;
            answering.ends += u64::from(close);
        });
    }

    /// The mirror's metrics, as OpenMetrics text.
    fn metrics(&self) -> String {
        self.record.text()
    }

    /// Ends all sessions, releases the port and completes the report.
    fn stop(&mut self, py: Python<'_>) {
        if let Some(threads) = self.threads.take() {
            py.detach(|| {
                self.stop.cancel();
                threads.shutdown();
                self.record.finish();
            });
        }
    }
}
