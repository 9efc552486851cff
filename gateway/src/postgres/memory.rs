//! Hosts inside the process, for simulations: a connection is a pair of buffers.

use crate::stream::ServerStream;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use tokio::io::{duplex, DuplexStream};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

/// The end of its name.
const IN_MEMORY: &str = ".memory";

struct Listener {
    buffer: usize,
    arrivals: UnboundedSender<DuplexStream>,
}

thread_local! {
    static HOSTS: RefCell<HashMap<String, Listener>> = RefCell::default();
}

impl ServerStream for DuplexStream {
    /// Always false: no bytes wait in a kernel.
    fn has_arrived(&self) -> bool {
        false
    }
}

/// Begins to listen on this thread. `buffer`: the bytes that a connection holds in each direction. Returns the host's
/// name.
pub fn listen(name: &str, buffer: usize) -> (String, UnboundedReceiver<DuplexStream>) {
    let name = format!("{name}{IN_MEMORY}");
    let (arrivals, arriving) = unbounded_channel();
    HOSTS.with_borrow_mut(|hosts| hosts.insert(name.clone(), Listener { buffer, arrivals }));
    (name, arriving)
}

/// A connection to a host of this thread; None if the name means another.
pub fn connect(name: &str) -> Option<io::Result<Box<dyn ServerStream>>> {
    name.ends_with(IN_MEMORY).then(|| {
        HOSTS.with_borrow(|hosts| {
            let listener = hosts.get(name).ok_or(io::ErrorKind::ConnectionRefused)?;
            let (theirs, ours) = duplex(listener.buffer);
            listener.arrivals.send(theirs).map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(ours) as Box<dyn ServerStream>)
        })
    })
}
