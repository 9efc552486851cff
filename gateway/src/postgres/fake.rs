//! PostgreSQL as a test plays it (PostgreSQL: "Message Formats").

use super::{Address, Connection, Encryption, Host, Wanted};
use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Fake(TcpListener);

/// A connection from the server's side.
pub struct Peer(pub TcpStream);

impl Fake {
    pub async fn new() -> Fake {
        Fake(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn address(&self) -> Address {
        let address = self.0.local_addr().unwrap();
        let host = Host { name: address.ip().to_string(), port: address.port() };
        Address::new(vec![host], String::from("fake"), Encryption::default(), Wanted::Any)
    }

    /// The next connection, once it has logged in.
    pub async fn accept(&self) -> Peer {
        let mut peer = Peer(self.0.accept().await.unwrap().0);
        let length = peer.0.read_i32().await.unwrap();
        peer.0.read_exact(&mut vec![0; usize::try_from(length).unwrap() - 4]).await.unwrap();
        // a password in the clear, please
        peer.put(b'R', &3i32.to_be_bytes()).await;
        assert_eq!(peer.message().await.0, b'p');
        peer.put(b'R', &0i32.to_be_bytes()).await;
        peer.put(b'K', &[0; 8]).await;
        peer.ready().await;
        peer
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
        self.0.write_all(&message).await.unwrap();
    }

    pub async fn ready(&mut self) {
        self.put(b'Z', b"I").await;
    }

    /// A notice, or an error that ends the connection.
    pub async fn say(&mut self, kind: u8, severity: &str, sqlstate: &str, text: &str) {
        let body = format!("V{severity}\0C{sqlstate}\0M{text}\0\0");
        self.put(kind, body.as_bytes()).await;
    }

    pub async fn message(&mut self) -> (u8, Vec<u8>) {
        let kind = self.0.read_u8().await.unwrap();
        let length = self.0.read_u32().await.unwrap();
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        self.0.read_exact(&mut body).await.unwrap();
        (kind, body)
    }

    /// The text of the next statement by the simple protocol.
    pub async fn statement(&mut self) -> String {
        let (kind, body) = self.message().await;
        assert_eq!(kind, b'Q');
        String::from_utf8(body).unwrap().trim_end_matches('\0').to_owned()
    }

    /// Answers a statement without rows.
    pub async fn answer(&mut self) {
        self.put(b'C', b"SELECT 0\0").await;
        self.ready().await;
    }
}
