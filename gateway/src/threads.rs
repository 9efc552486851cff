//! The gateway's threads, of two kinds. Those for calls read requests, answer procedure calls of known shape and commit
//! groups, but do no other long work. Everything else runs on threads for statements, which have a lower priority:
//! logins, TLS handshakes, text, result sets, bulk copies, reading the catalogue.

use crate::limits::memory::return_large_allocations;
use crate::scheduler::{put_ahead, put_own_session_ahead};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;
use std::future::Future;
use std::io;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinHandle};
use tracing::Instrument;

/// How much lower the priority of statements is: lowering a priority needs no right, raising one does.
const STATEMENTS_NICE: i32 = 10;
/// Shorter than the sessions' own timeouts.
const TICK: Duration = Duration::from_millis(500);

pub struct Threads {
    calls: Runtime,
    statements: Runtime,
}

impl Threads {
    /// `calls_first`: prefer the threads for calls to all others, also of other processes, as far as allowed.
    pub fn start(calls_first: bool) -> io::Result<Threads> {
        return_large_allocations();
        if calls_first {
            put_own_session_ahead();
        }
        let cores = available_parallelism().map_or(1, usize::from);
        let threads = Threads {
            // A quarter of the cores: PostgreSQL needs the others. On one thread a call costs a fifth less than on two,
            // because its tasks wake each other without the kernel.
            calls: Builder::new_multi_thread()
                .worker_threads((cores / 4).clamp(1, 4))
                .thread_name("ringlog-calls")
                .on_thread_start(move || {
                    if calls_first {
                        let _ = put_ahead(gettid());
                    }
                })
                .enable_all()
                .build()?,
            statements: Builder::new_multi_thread()
                .worker_threads(cores.clamp(2, 16))
                .thread_name("ringlog-text")
                .on_thread_start(move || {
                    if calls_first {
                        stand_back();
                    }
                })
                .enable_all()
                .build()?,
        };
        threads.calls.spawn(tick());
        threads.statements.spawn(tick());
        Ok(threads)
    }

    /// Runs `task` on the threads for calls while this thread waits.
    pub fn block_on<T>(&self, task: impl Future<Output = T>) -> T {
        self.calls.block_on(task)
    }

    pub fn calls(&self) -> Pool {
        Pool(self.calls.handle().clone())
    }

    pub fn statements(&self) -> Pool {
        Pool(self.statements.handle().clone())
    }

    pub fn shutdown(self) {
        self.calls.shutdown_background();
        self.statements.shutdown_background();
    }
}

/// A timer that is always set. A timer that becomes the earliest wakes the thread that waits for events; without this
/// one each wait for a client's next request would cost a system call and a poll.
async fn tick() {
    loop {
        tokio::time::sleep(TICK).await;
    }
}

fn stand_back() {
    let thread = Some(gettid());
    let own = getpriority_process(thread).unwrap_or(0);
    let _ = setpriority_process(thread, (own + STATEMENTS_NICE).min(19));
}

/// The threads of one kind.
#[derive(Clone, Debug)]
pub struct Pool(Handle);

impl Pool {
    /// Threads for a test.
    #[cfg(test)]
    pub fn here() -> Pool {
        Pool(Handle::current())
    }

    /// Runs `task` there. Dropping the returned future aborts the task. The future is small, because the task's memory
    /// belongs to the task.
    pub fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        let running = self.0.spawn(task.in_current_span());
        let given_up = GivenUp(running.abort_handle());
        async move {
            let _given_up = given_up;
            match running.await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // the threads are ending
                    Err(_) => std::future::pending().await,
                },
            }
        }
    }

    /// Starts `task` there, without waiting for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.0.spawn(task.in_current_span())
    }
}

struct GivenUp(AbortHandle);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::NICE;

    /// The nice of a thread for calls, and of one for statements.
    fn nices(calls_first: bool) -> (i32, i32) {
        let threads = Threads::start(calls_first).unwrap();
        let nice = || getpriority_process(Some(gettid())).unwrap();
        let statements = threads.statements();
        let found = threads.block_on(async {
            let on_calls = tokio::spawn(async move { nice() }).await.unwrap();
            (on_calls, statements.run(async move { nice() }).await)
        });
        threads.shutdown();
        found
    }

    #[test]
    fn calls_get_the_processor_before_statements() {
        let own = getpriority_process(Some(gettid())).unwrap();
        assert_eq!(nices(false), (own, own));
        let (calls, statements) = nices(true);
        // without the right to a lower nice: shorter slices
        assert!(calls == own || calls == own.min(NICE), "{calls}");
        assert_eq!(statements, (own + STATEMENTS_NICE).min(19));
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_given_up() {
        let threads = Threads::start(true).unwrap();
        let statements = threads.statements();
        let (alive, gone) = tokio::sync::oneshot::channel::<()>();
        threads.block_on(async {
            let running = statements.run(async move {
                let _alive = alive;
                std::future::pending::<()>().await
            });
            let waited = tokio::time::timeout(Duration::from_millis(10), running).await;
            assert!(waited.is_err());
            assert!(gone.await.is_err());
        });
        threads.shutdown();
    }
}
