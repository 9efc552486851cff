//! The address of the database: one server, or several, one of which is the primary.

use super::encryption::Encryption;
use crate::stream::ServerStream;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// The timeout with several servers, and for a node: a vanished machine must not delay the use of another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// TCP keepalive for machines that vanish: the time before the first probe, the time between probes, and the
/// number of unanswered probes. (A limit for unacknowledged data would also end connections to a server that
/// waits for a lock and reads nothing meanwhile.)
const SILENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_secs(1);
const QUESTIONS: u32 = 3;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// A name or address, or the directory of the Unix socket.
    pub name: String,
    pub port: u16,
}

impl Host {
    /// The path of the Unix socket, if it is one.
    pub fn socket(&self) -> Option<String> {
        self.name.starts_with('/').then(|| format!("{}/.s.PGSQL.{}", self.name, self.port))
    }

    pub async fn open(&self, encryption: &Encryption) -> io::Result<Box<dyn ServerStream>> {
        #[cfg(test)]
        if let Some(opened) = super::memory::connect(&self.name) {
            return opened;
        }
        if let Some(path) = self.socket() {
            return Ok(Box::new(UnixStream::connect(path).await?));
        }
        let stream = TcpStream::connect((self.name.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(AGAIN).with_retries(QUESTIONS);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        encryption.begin(stream, &self.name).await
    }
}

/// The requested role among several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Any,
    /// One that accepts changes.
    Primary,
    /// A standby; any if there is none.
    Standby,
}

/// The address of the database.
#[derive(Clone, Debug)]
pub struct Address {
    hosts: Vec<Host>,
    pub database: String,
    pub encryption: Encryption,
    pub wanted: Wanted,
    /// Connecting does not wait for a server that does not answer.
    is_node: bool,
    /// The host to try first: the last one with the requested role, or for standbys the next; shared by all copies.
    first: Arc<AtomicUsize>,
    /// For sessions that want a standby: the host that was not one when last tried; shared by all copies.
    primary: Arc<AtomicUsize>,
}

/// The index of no host.
const NONE: usize = usize::MAX;

impl Address {
    pub fn new(hosts: Vec<Host>, database: String, encryption: Encryption, wanted: Wanted) -> Address {
        let primary = Arc::new(AtomicUsize::new(NONE));
        Address { hosts, database, encryption, wanted, is_node: false, first: Arc::default(), primary }
    }

    /// The same address for sessions that only read; None: one server serves all.
    pub fn for_readers(&self) -> Option<Address> {
        (self.hosts.len() > 1).then(|| Address {
            wanted: Wanted::Standby,
            first: Arc::default(),
            primary: Arc::new(AtomicUsize::new(NONE)),
            ..self.clone()
        })
    }

    /// The same address for a node: while it is down, its writers soon get an error.
    pub fn of_a_node(self) -> Address {
        Address { is_node: true, ..self }
    }

    /// The hosts in the order to try them: first the last one with the requested role; standbys take turns, and the
    /// primary comes last, so that each standby gets the same number of sessions.
    pub fn hosts(&self) -> impl Iterator<Item = (usize, &Host)> {
        let count = self.hosts.len();
        let mut indexes: Vec<usize> = (0..count).collect();
        if self.wanted == Wanted::Standby {
            let primary = self.primary.load(Ordering::Relaxed);
            indexes.retain(|index| *index != primary);
            let turn = self.first.fetch_add(1, Ordering::Relaxed);
            let others = indexes.len().max(1);
            indexes.rotate_left(turn % others);
            indexes.extend((primary < count).then_some(primary));
        } else {
            indexes.rotate_left(self.first.load(Ordering::Relaxed) % count.max(1));
        }
        indexes.into_iter().filter_map(|index| Some((index, self.hosts.get(index)?)))
    }

    /// The time limit of opening a connection to one host, after which the next one is tried.
    pub fn patience(&self) -> Duration {
        if self.hosts.len() > 1 || self.is_node {
            CONNECT_TIMEOUT
        } else {
            Duration::MAX
        }
    }

    /// The host at this index is not a standby: the next sessions that want one try it last.
    pub fn found_primary(&self, index: usize) {
        self.primary.store(index, Ordering::Relaxed);
    }

    /// The host at this index had the requested role.
    pub fn prefer(&self, index: usize) {
        if self.wanted != Wanted::Standby {
            self.first.store(index, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_that_was_right_comes_first() {
        let host = |name: &str| Host { name: name.into(), port: 5432 };
        let hosts = vec![host("a"), host("b"), host("c")];
        let address = Address::new(hosts, "d".into(), Encryption::default(), Wanted::Primary);
        let names =
            |address: &Address| address.hosts().map(|(_, host)| host.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&address), ["a", "b", "c"]);
        let copy = address.clone();
        copy.prefer(1);
        assert_eq!(names(&address), ["b", "c", "a"]);
        let readers = address.for_readers().unwrap();
        assert_eq!(names(&readers), ["a", "b", "c"]);
        readers.prefer(0);
        assert_eq!(names(&readers), ["b", "c", "a"]);
        assert_eq!(names(&address), ["b", "c", "a"]);
        // at any index of the primary, each standby gets every second session
        readers.found_primary(1);
        let both = [names(&readers), names(&readers), names(&readers), names(&readers)];
        assert_eq!(both, [["a", "c", "b"], ["c", "a", "b"], ["a", "c", "b"], ["c", "a", "b"]]);
    }
}
