//! A PostgreSQL server implemented by a test (PostgreSQL: "Message Formats").

use super::{Address, Connection, Encryption, Host, Wanted};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::sync::atomic::{AtomicI32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Replaces the protocol's version in a request to cancel a process's statement.
const CANCEL: i32 = 80_877_102;

pub struct Fake {
    listener: TcpListener,
    processes: AtomicI32,
}

/// A connection from the server's side.
pub struct Peer {
    pub stream: TcpStream,
    pub process: i32,
    /// The login.
    pub user: String,
}

/// The purpose of a client's connection.
pub enum Arrived {
    Peer(Peer),
    /// To cancel this process's statement.
    Cancel(i32),
}

impl Fake {
    pub async fn new() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Fake { listener, processes: AtomicI32::new(0) }
    }

    pub fn address(&self) -> Address {
        let address = self.listener.local_addr().unwrap();
        let host = Host { name: address.ip().to_string(), port: address.port() };
        Address::new(vec![host], String::from("fake"), Encryption::default(), Wanted::Any)
    }

    /// The next connection, once it has logged in.
    pub async fn accept(&self) -> Peer {
        match self.arrived().await {
            Arrived::Peer(peer) => peer,
            Arrived::Cancel(process) => panic!("a request to cancel process {process}"),
        }
    }

    pub async fn arrived(&self) -> Arrived {
        let mut stream = self.listener.accept().await.unwrap().0;
        // a message is sent before the previous one is acknowledged
        stream.set_nodelay(true).unwrap();
        let length = stream.read_u32().await.unwrap();
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        stream.read_exact(&mut body).await.unwrap();
        let mut body = Bytes::from(body);
        if body.get_i32() == CANCEL {
            return Arrived::Cancel(body.get_i32());
        }
        let words: Vec<_> = body.split(|byte| *byte == 0).collect();
        let user = words.chunks_exact(2).find(|pair| pair[0] == b"user").map_or(&b""[..], |pair| pair[1]);
        let user = String::from_utf8(user.to_vec()).unwrap();
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        let mut peer = Peer { stream, process, user };
        // AuthenticationCleartextPassword
        peer.put(b'R', &3i32.to_be_bytes()).await;
        assert_eq!(peer.message().await.0, b'p');
        peer.put(b'R', &0i32.to_be_bytes()).await;
        let key = [process.to_be_bytes(), [0; 4]].concat();
        peer.put(b'K', &key).await;
        peer.ready(b'I').await;
        Arrived::Peer(peer)
    }

    /// Both ends of a connection.
    pub async fn connect(&self) -> (Connection, Peer) {
        let address = self.address();
        let connecting = Connection::open(&address, "user", "password", "test");
        let (connection, peer) = tokio::join!(connecting, self.accept());
        (connection.unwrap(), peer)
    }
}

impl Peer {
    pub async fn put(&mut self, kind: u8, body: &[u8]) {
        let mut message = BytesMut::new();
        message.put_u8(kind);
        message.put_u32(u32::try_from(body.len()).unwrap() + 4);
        message.put_slice(body);
        self.stream.write_all(&message).await.unwrap();
    }

    /// `status`: I outside of a transaction, T in one, E in a failed one.
    pub async fn ready(&mut self, status: u8) {
        self.put(b'Z', &[status]).await;
    }

    /// A notice, or an error; a FATAL one ends the connection.
    pub async fn say(&mut self, kind: u8, severity: &str, sqlstate: &str, text: &str) {
        let body = format!("V{severity}\0C{sqlstate}\0M{text}\0\0");
        self.put(kind, body.as_bytes()).await;
    }

    pub async fn notify(&mut self, channel: &str, payload: &str) {
        let process = "\0\0\0\0";
        self.put(b'A', format!("{process}{channel}\0{payload}\0").as_bytes()).await;
    }

    pub async fn message(&mut self) -> (u8, Bytes) {
        self.next_message().await.unwrap()
    }

    /// None: the connection was closed.
    pub async fn next_message(&mut self) -> Option<(u8, Bytes)> {
        let kind = self.stream.read_u8().await.ok()?;
        let length = self.stream.read_u32().await.ok()?;
        let mut body = vec![0; usize::try_from(length).ok()? - 4];
        self.stream.read_exact(&mut body).await.ok()?;
        Some((kind, body.into()))
    }

    /// The text of the next statement by the simple protocol.
    pub async fn statement(&mut self) -> String {
        let (kind, mut body) = self.message().await;
        assert_eq!(kind, b'Q');
        take_text(&mut body)
    }

    /// Answers a statement without rows.
    pub async fn answer(&mut self) {
        self.put(b'C', b"SELECT 0\0").await;
        self.ready(b'I').await;
    }
}

/// Removes the text at the beginning of the rest of a message.
pub fn take_text(body: &mut Bytes) -> String {
    let end = body.iter().position(|byte| *byte == 0).unwrap();
    let text = body.split_to(end);
    body.advance(1);
    String::from_utf8(text.to_vec()).unwrap()
}
