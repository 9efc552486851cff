use super::*;
use crate::tds::tokens::done::{Command, Done, Scope, Status as Ended};
use std::net::TcpListener;

const VERSION: Version = Version::Tds74;

fn done(out: &mut BytesMut) {
    let dialect = Dialect::new(VERSION);
    Done::new(Scope::Statement, Ended::default(), Command::Select, None, &dialect).encode(out, &dialect);
}

/// A server without encryption, which answers a query with an int column of `rows` rows. Its packets have bodies of
/// `body` bytes and are written `write` bytes at a time; the last `end` bytes of the last answer are missing.
fn serve(rows: i32, body: usize, write: usize, end: usize) -> Wanted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.set_nodelay(true).unwrap();
        let mut reply = |answer: &[u8], left_out: usize| {
            let last = answer.len().div_ceil(body) - 1;
            let mut wire = vec![];
            for (number, part) in answer.chunks(body).enumerate() {
                wire.extend([4, u8::from(number == last)]);
                wire.extend((part.len() as u16 + 8).to_be_bytes());
                wire.extend([0, 1, number as u8, 0]);
                wire.extend(part);
            }
            let mut head = [0; 8];
            client.read_exact(&mut head).unwrap();
            let mut request = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
            client.read_exact(&mut request).unwrap();
            wire[..wire.len() - left_out].chunks(write).for_each(|part| client.write_all(part).unwrap());
        };
        // encryption is not supported
        reply(&[1, 0, 6, 0, 1, 0xFF, 2], 0);
        let mut login = BytesMut::from(&b"\xAD\x0B\0\x01\x74\0\0\x04\x01x\0\0\0\0\0"[..]);
        login[1] = (login.len() - 3) as u8;
        done(&mut login);
        reply(&login, 0);
        let mut answer = BytesMut::from(&b"\x81\x01\0\0\0\0\0\x01\0\x26\x04\x01a\0"[..]);
        for row in 0..rows {
            answer.put_slice(&[0xD1, 4]);
            answer.put_i32_le(row);
        }
        done(&mut answer);
        reply(&answer, end);
    });
    Wanted {
        host: "127.0.0.1".into(),
        port,
        user: "me".into(),
        password: Password("secret".into()),
        database: String::new(),
        version: VERSION,
        client: "here".into(),
        application: "test".into(),
        timeout: Duration::from_secs(30),
    }
}

fn numbers(wanted: &Wanted) -> Result<Vec<i32>> {
    let mut connection = Connection::open(wanted)?;
    assert_eq!(connection.query("select a")?, [("a".to_owned(), "i".to_owned())]);
    let mut found = vec![];
    while let Some((count, columns)) = connection.read(7, usize::MAX)? {
        assert!(count <= 7);
        found.extend(columns[0].content.chunks(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())));
    }
    Ok(found)
}

#[test]
fn packets_of_any_size_are_one_answer() {
    for body in [1, 2, 5, 6, 13, 100, 4000] {
        for write in [1, 3, 8, 9, 50_000] {
            assert_eq!(
                numbers(&serve(20, body, write, 0)).unwrap(),
                (0..20).collect::<Vec<_>>(),
                "{body} {write}"
            );
        }
    }
}

#[test]
fn a_connection_that_ends_early_is_an_error() {
    for end in 1..60 {
        let error = numbers(&serve(5, 10, 50_000, end)).unwrap_err().to_string();
        assert!(error.contains("closed") || error.contains("reset"), "{end}: {error}");
    }
}
