//! Requests to the kernel's scheduler to prefer a thread, or a process of one thread.

use rustix::process::{getpid, getpriority_process, Pid};
use std::fs;
use std::io;

/// Nine times the weight of a nice of 0 (kernel/sched/core.c, sched_prio_to_weight: 9548 and 1024).
pub const NICE: i32 = -10;
/// The shortest slice, in nanoseconds. A thread with a shorter slice preempts the running one (EEVDF, PREEMPT_SHORT:
/// Linux 6.12 and later); older kernels ignore it.
const SLICE: u64 = 100_000;

/// The means by which a thread or process is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// By a lower nice and by short slices.
    Nice,
    /// By short slices alone, which only need access to the process.
    Slices,
}

/// Prefers a thread or process as far as permitted.
pub fn put_ahead(process: Pid) -> io::Result<Ahead> {
    let own = getpriority_process(Some(process))?;
    if own <= NICE {
        return set(process, own).map(|()| Ahead::Nice);
    }
    match set(process, NICE) {
        Ok(()) => Ok(Ahead::Nice),
        Err(_) => set(process, own).map(|()| Ahead::Slices),
    }
}

/// Gives the session that a process leads the same weight among sessions. If the kernel groups processes by session,
/// the group's nice takes precedence over those of its members (sched(7)).
pub fn put_session_ahead(leader: Pid) -> io::Result<()> {
    fs::write(format!("/proc/{}/autogroup", leader.as_raw_nonzero()), NICE.to_string())
}

/// The same for this process's session, if it leads one: its share is that of calls, statements and logins together
/// (docs/explanation/decisions.md, "Writers first").
pub fn put_own_session_ahead() {
    let own = getpid();
    if own_session() == own.as_raw_nonzero().get() {
        // without such groups, or the right to a lower nice, there is nothing to do
        let _ = put_session_ahead(own);
    }
}

/// This process's session, as its leader's number: 0 if the leader is outside the container, for which rustix's getsid
/// panics (pid_namespaces(7)).
#[allow(unsafe_code)]
fn own_session() -> libc::pid_t {
    // SAFETY: getsid(2) takes a number and returns one; it touches no memory.
    unsafe { libc::getsid(0) }
}

/// sched_setattr(2), which has no safe function.
#[allow(unsafe_code)]
fn set(process: Pid, nice: i32) -> io::Result<()> {
    let size = u32::try_from(size_of::<libc::sched_attr>()).map_err(io::Error::other)?;
    let attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE,
        sched_deadline: 0,
        sched_period: 0,
    };
    let process = process.as_raw_nonzero().get();
    // SAFETY: the kernel reads `size` bytes of the structure, which lives until the call returns, and writes nothing.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, process, &raw const attributes, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_gets_ahead_as_far_as_one_may() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let nice = || getpriority_process(Some(process)).unwrap();
        let before = nice();
        for _ in 0..2 {
            match put_ahead(process).unwrap() {
                Ahead::Nice => assert_eq!(nice(), NICE),
                Ahead::Slices => assert_eq!(nice(), before),
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(put_ahead(process).is_err());
    }
}
