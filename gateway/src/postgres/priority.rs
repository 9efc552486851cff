//! Gives priority to PostgreSQL's processes that commit writers' calls, if they run on this machine and this process
//! has the right.

use super::{Connection, Host, PgError};
use crate::scheduler::{put_ahead, put_session_ahead, Ahead, NICE};
use arc_swap::ArcSwap;
use rustix::process::Pid;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tracing::warn;

/// Whether the kernel has a group for each session, as each backend is one.
const AUTOGROUPS: &str = "/proc/sys/kernel/sched_autogroup_enabled";
/// The kernel changes one group's nice per tenth of a second (kernel/sched/autogroup.c), and refuses others meanwhile.
const PAUSE: Duration = Duration::from_millis(110);
const TRIES: usize = 50;

/// The priority of writers, and the reason if it is not higher than that of others.
#[derive(Debug)]
pub struct WriterPriority {
    postmaster: Option<i32>,
    found: ArcSwap<Result<Priority, Obstacle>>,
}

impl WriterPriority {
    /// `first`: whether they get priority. `postmaster`: PostgreSQL's first process, if known to be on this machine.
    pub fn new(first: bool, postmaster: Option<i32>) -> WriterPriority {
        let obstacle = if first { Obstacle::Elsewhere } else { Obstacle::Setting };
        WriterPriority { postmaster, found: ArcSwap::from_pointee(Err(obstacle)) }
    }

    /// Determines whether the server of `connection` can be given priority, by doing it with this connection's process.
    /// The result is the connection's application name, for `ringlog status`.
    pub async fn look(&self, connection: &mut Connection) -> Result<(), PgError> {
        if **self.found.load() != Err(Obstacle::Setting) {
            let found = Priority::find(connection.host(), self.postmaster, connection.process()).await;
            if let Err(obstacle) = found {
                warn!("writers have the same priority as others: {obstacle}");
            }
            self.found.store(Arc::new(found));
        }
        let priority = match **self.found.load() {
            Ok(Priority { ahead: Ahead::Nice, .. }) => format!("writers first, at nice {NICE}"),
            Ok(Priority { ahead: Ahead::Slices, .. }) => "writers first, by short slices alone".into(),
            Err(obstacle) => format!("writers as others: {obstacle}"),
        };
        connection.query_text(&format!("set application_name = 'ringlog catalogue, {priority}'")).await?;
        Ok(())
    }

    /// Gives priority to the process of a connection, until its end.
    pub fn put_ahead(&self, backend: i32) {
        if let Ok(priority) = **self.found.load() {
            priority.put_ahead(backend);
        }
    }
}

/// PostgreSQL on this machine, whose processes may be given priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Priority {
    postmaster: Pid,
    has_groups: bool,
    ahead: Ahead,
}

/// The reasons why writers have no priority. An application name has 63 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Obstacle {
    #[error("it is set so")]
    Setting,
    #[error("PostgreSQL is elsewhere")]
    Elsewhere,
    #[error("no right to its processes")]
    Right,
}

impl Priority {
    /// Determines what is possible at `host`, where `backend` serves one of our connections. `postmaster`: PostgreSQL's
    /// first process, if known; a Unix socket reports it.
    async fn find(host: &Host, postmaster: Option<i32>, backend: i32) -> Result<Priority, Obstacle> {
        let postmaster = match postmaster {
            Some(postmaster) => Some(postmaster),
            None => listener(host).await,
        };
        let postmaster = postmaster.and_then(Pid::from_raw).ok_or(Obstacle::Elsewhere)?;
        let backend = child_of(postmaster, backend).ok_or(Obstacle::Elsewhere)?;
        let ahead = put_ahead(backend).map_err(|_| Obstacle::Right)?;
        let has_groups = fs::read_to_string(AUTOGROUPS).is_ok_and(|enabled| enabled.trim() == "1");
        Ok(Priority { postmaster, has_groups, ahead })
    }

    fn put_ahead(self, backend: i32) {
        let Some(process) = child_of(self.postmaster, backend) else { return };
        let found = put_ahead(process);
        if !self.has_groups || !matches!(found, Ok(Ahead::Nice)) {
            return;
        }
        if is_busy(&put_session_ahead(process)) {
            tokio::spawn(async move {
                for _ in 0..TRIES {
                    tokio::time::sleep(PAUSE).await;
                    if child_of(self.postmaster, backend).is_none() || !is_busy(&put_session_ahead(process)) {
                        return;
                    }
                }
            });
        }
    }
}

/// A process started by PostgreSQL's first process. A pooler's process id is not a process.
fn child_of(postmaster: Pid, process: i32) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    let parent = parent.trim().parse().ok().and_then(Pid::from_raw)?;
    Pid::from_raw(process).filter(|_| parent == postmaster)
}

/// The process that listens on a Unix socket.
async fn listener(host: &Host) -> Option<i32> {
    UnixStream::connect(host.socket()?).await.ok()?.peer_cred().ok()?.pid()
}

fn is_busy(written: &io::Result<()>) -> bool {
    written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_of_the_first_process_is_known_and_no_other() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        assert_eq!(child_of(rustix::process::getpid(), number), Pid::from_raw(number));
        assert_eq!(child_of(rustix::process::getppid().unwrap(), number), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(child_of(rustix::process::getpid(), number), None);
    }
}
