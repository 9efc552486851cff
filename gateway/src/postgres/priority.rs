//! PostgreSQL's processes that serve readers stand back behind those that write, where they run on this machine and
//! this process has the right.

use super::{Connection, Host, PgError};
use arc_swap::ArcSwap;
use rustix::process::{getpriority_process, setpriority_process, Pid};
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tracing::warn;

/// A nice of 10 is a tenth of the processor's time where both want all of it (kernel/sched/core.c,
/// sched_prio_to_weight: 110 of 1024).
pub const NICE: i32 = 10;
/// Where the kernel has a group for each session, which every backend is, the group's own nice counts (sched(7)).
const AUTOGROUPS: &str = "/proc/sys/kernel/sched_autogroup_enabled";
/// The kernel changes one group's nice in a tenth of a second (kernel/sched/autogroup.c), and refuses others meanwhile.
const PAUSE: Duration = Duration::from_millis(110);
const TRIES: usize = 50;

/// The priority of readers, and why it is not lower than that of writers.
#[derive(Debug)]
pub struct ReaderPriority {
    postmaster: Option<i32>,
    found: ArcSwap<Result<Priority, Obstacle>>,
}

impl ReaderPriority {
    /// `lower`: they are to stand back. `postmaster`: PostgreSQL's first process, where it is known to be here.
    pub fn new(lower: bool, postmaster: Option<i32>) -> ReaderPriority {
        let obstacle = if lower { Obstacle::Elsewhere } else { Obstacle::Setting };
        ReaderPriority { postmaster, found: ArcSwap::from_pointee(Err(obstacle)) }
    }

    /// Finds out what can be done where `connection` leads to. The connection's application name says it, for
    /// `ringlog status`.
    pub async fn look(&self, connection: &mut Connection) -> Result<(), PgError> {
        if **self.found.load() != Err(Obstacle::Setting) {
            let found = Priority::find(connection.host(), self.postmaster, connection.process()).await;
            if let Err(obstacle) = found {
                warn!("readers have the same priority as writers: {obstacle}");
            }
            self.found.store(Arc::new(found));
        }
        let told = match **self.found.load() {
            Ok(_) => format!("readers at nice {NICE}"),
            Err(obstacle) => format!("readers as writers: {obstacle}"),
        };
        connection.query_text(&format!("set application_name = 'ringlog catalogue, {told}'")).await?;
        Ok(())
    }

    /// Lets the process of a connection stand back, which it does to its end.
    pub fn stand_back(&self, backend: i32) {
        if let Ok(priority) = **self.found.load() {
            priority.stand_back(backend);
        }
    }
}

/// PostgreSQL on this machine, whose processes may be told to stand back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Priority {
    postmaster: Pid,
    has_groups: bool,
}

/// Why readers have the priority of writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Obstacle {
    #[error("it is set so")]
    Setting,
    #[error("PostgreSQL is not known to be here")]
    Elsewhere,
    #[error("no right to its processes")]
    Right,
}

impl Priority {
    /// What can be done at `host`, where `backend` is a process that serves a connection of ours. `postmaster` is
    /// PostgreSQL's first process where it is known; a Unix socket tells it.
    async fn find(host: &Host, postmaster: Option<i32>, backend: i32) -> Result<Priority, Obstacle> {
        let postmaster = match postmaster {
            Some(postmaster) => Some(postmaster),
            None => listener(host).await,
        };
        let postmaster = postmaster.and_then(Pid::from_raw).ok_or(Obstacle::Elsewhere)?;
        let has_groups = fs::read_to_string(AUTOGROUPS).is_ok_and(|enabled| enabled.trim() == "1");
        let priority = Priority { postmaster, has_groups };
        let backend = priority.child(backend).ok_or(Obstacle::Elsewhere)?;
        // setting what is set asks for the same right as setting another
        let same =
            getpriority_process(Some(backend)).and_then(|nice| setpriority_process(Some(backend), nice));
        same.map_err(|_| Obstacle::Right)?;
        Ok(priority)
    }

    fn stand_back(self, backend: i32) {
        let Some(process) = self.child(backend) else { return };
        let first = getpriority_process(Some(self.postmaster)).unwrap_or(0);
        let _ = setpriority_process(Some(process), (first + NICE).min(19));
        if self.has_groups && is_busy(&set_group(backend)) {
            tokio::spawn(async move {
                for _ in 0..TRIES {
                    tokio::time::sleep(PAUSE).await;
                    if self.child(backend).is_none() || !is_busy(&set_group(backend)) {
                        return;
                    }
                }
            });
        }
    }

    /// A process that PostgreSQL's first process has started. What a pooler in between calls a process is none.
    fn child(self, process: i32) -> Option<Pid> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        let parent = parent.trim().parse().ok().and_then(Pid::from_raw)?;
        Pid::from_raw(process).filter(|_| parent == self.postmaster)
    }
}

/// The process that listens on a Unix socket.
async fn listener(host: &Host) -> Option<i32> {
    UnixStream::connect(host.socket()?).await.ok()?.peer_cred().ok()?.pid()
}

fn set_group(process: i32) -> io::Result<()> {
    fs::write(format!("/proc/{process}/autogroup"), NICE.to_string())
}

fn is_busy(written: &io::Result<()>) -> bool {
    written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn nice_of(process: i32) -> i32 {
        getpriority_process(Pid::from_raw(process)).unwrap()
    }

    #[test]
    fn a_child_of_the_first_process_stands_back_and_no_other() {
        // not the group: that of a test is its caller's too
        let own = Priority { postmaster: rustix::process::getpid(), has_groups: false };
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        let before = nice_of(number);
        let of_another = Priority { postmaster: rustix::process::getppid().unwrap(), has_groups: false };
        of_another.stand_back(number);
        assert_eq!(nice_of(number), before);
        for _ in 0..2 {
            own.stand_back(number);
            assert_eq!(nice_of(number), (before + NICE).min(19));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        own.stand_back(number);
    }
}
