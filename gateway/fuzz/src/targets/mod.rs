//! The targets of the fuzzer: each decoder of bytes from the network, and the parser of T-SQL. An input is
//! read or refused; a panic is a defect. The first byte of most inputs chooses the client's dialect.

mod seeds;

use bytes::{Bytes, BytesMut};
use ringlog_gateway::convert::{column_type, PgType};
use ringlog_gateway::old_server::{Answer, Described, Rows as FileRows};
use ringlog_gateway::pb::{header, Samples};
use ringlog_gateway::tds::bulk::{Column, Rows};
use ringlog_gateway::tds::call::Call;
use ringlog_gateway::tds::charset::Charset;
use ringlog_gateway::tds::dialect::{Dialect, Endian, Version};
use ringlog_gateway::tds::layout;
use ringlog_gateway::tds::login::{login5, login7, negotiate, prelogin};
use ringlog_gateway::tds::packet::{Assembler, Message, MessageKind, Status};
use ringlog_gateway::tds::request::{Request, Requests};
use ringlog_gateway::tls::{self, Tls, Transport};
use spans::Unpacker;
use std::future::Future;
use std::io;
use std::pin::{pin, Pin};
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tsql::program::Settings;

pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Inputs captured from clients, from which the fuzzer derives others.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: &[Target] = &[
    Target { name: "packets", run: packets, seeds: seeds::connections },
    Target { name: "prelogin", run: prelogin, seeds: || seeds::bodies(MessageKind::Prelogin, &[]) },
    Target { name: "login5", run: login5, seeds: || seeds::bodies(MessageKind::Login5, &[]) },
    Target { name: "login7", run: login7, seeds: || seeds::bodies(MessageKind::Login7, &[]) },
    Target { name: "password", run: password, seeds: || seeds::bodies(MessageKind::Normal, FIVE) },
    Target { name: "rpc", run: rpc, seeds: || seeds::bodies(MessageKind::Rpc, SEVEN) },
    Target { name: "batch", run: batch, seeds: || seeds::bodies(MessageKind::Batch, SEVEN) },
    Target { name: "tokens", run: tokens, seeds: || seeds::bodies(MessageKind::Normal, FIVE) },
    Target { name: "bulk7", run: bulk7, seeds: || seeds::bodies(MessageKind::BulkLoad, SEVEN) },
    Target { name: "bulk5", run: bulk5, seeds: || seeds::bodies(MessageKind::BulkLoad, FIVE) },
    Target { name: "tls", run: encryption, seeds: seeds::handshakes },
    Target { name: "answers", run: answers, seeds: seeds::rows_of_answers },
    Target { name: "bcp", run: bcp, seeds: seeds::rows_of_files },
    Target { name: "pb", run: pb, seeds: seeds::lines_of_pb_files },
    Target { name: "packed", run: packed, seeds: seeds::closed_numbers },
    Target { name: "tsql", run: text, seeds: seeds::texts },
];

/// The dialects, by number, with which a seed is tried.
const FIVE: &[u8] = &[0, 1, 2];
const SEVEN: &[u8] = &[4, 5, 6, 7];

/// The dialect chosen by the first byte, and the other bytes.
fn dialect(data: &[u8]) -> Option<(Dialect, &[u8])> {
    let (first, rest) = data.split_first()?;
    let five = Dialect::new(Version::Tds50);
    let dialect = match first % 8 {
        0 => five,
        1 => Dialect { endian: Endian::Big, ..five },
        2 => Dialect { charset: Charset::named("sjis").unwrap_or(five.charset), is_ct_library: true, ..five },
        3 | 4 => Dialect::new(Version::Tds71),
        5 => Dialect::new(Version::Tds72),
        6 => Dialect::new(Version::Tds73),
        _ => Dialect { knows_utf8: first & 8 != 0, ..Dialect::new(Version::Tds74) },
    };
    Some((dialect, rest))
}

fn packets(data: &[u8]) {
    let mut assembler = Assembler::new(1 << 20);
    let mut input = BytesMut::new();
    // in pieces, as from a socket
    for piece in data.chunks(1 + usize::from(data.first().copied().unwrap_or(0)) * 4) {
        input.extend_from_slice(piece);
        while let Ok(Some(message)) = assembler.next(&mut input) {
            match message.kind {
                MessageKind::Prelogin => prelogin(&message.body),
                MessageKind::Login5 => login5(&message.body),
                MessageKind::Login7 => login7(&message.body),
                _ => {}
            }
        }
    }
}

fn prelogin(data: &[u8]) {
    let _ = prelogin::decode(data);
}

fn login5(data: &[u8]) {
    let _ = login5::dialect_of_refusal(data);
    if let Ok(login) = login5::decode(data) {
        let _ = format!("{login:?}");
    }
}

fn login7(data: &[u8]) {
    let _ = login7::dialect_of_refusal(data);
    if let Ok(login) = login7::decode(data) {
        let _ = format!("{login:?}");
    }
}

fn password(data: &[u8]) {
    if let Some((dialect, body)) = dialect(data) {
        let _ = negotiate::decode_response(body, &dialect);
    }
}

fn rpc(data: &[u8]) {
    requests(data, MessageKind::Rpc);
}

fn batch(data: &[u8]) {
    requests(data, MessageKind::Batch);
    requests(data, MessageKind::Transaction);
}

/// Calls, dynamic statements, cursors, options and text of 5.0.
fn tokens(data: &[u8]) {
    requests(data, MessageKind::Normal);
}

fn requests(data: &[u8], kind: MessageKind) {
    let Some((dialect, body)) = dialect(data) else { return };
    let message = Message { kind, status: Status::LAST, body: Bytes::copy_from_slice(body) };
    let Ok(mut requests) = Requests::of(&message, &dialect) else { return };
    if kind != MessageKind::Batch {
        shape(requests.body(), &dialect);
    }
    while let Ok(Some(request)) = requests.next_request() {
        match request {
            Request::Rpc(call) | Request::Dbrpc(call) => values(&call, &dialect),
            Request::Dynamic(dynamic) => {
                let _ =
                    dynamic.params.iter().map(|param| param.value(&dialect)).filter(Result::is_ok).count();
                let _ = dialect.charset.decode(dynamic.text);
            }
            Request::Language { text, params } => {
                let _ = params.iter().map(|param| param.value(&dialect)).filter(Result::is_ok).count();
                let _ = dialect.charset.decode(text);
            }
            Request::Logout => return,
            other => {
                let _ = format!("{other:?}");
            }
        }
    }
}

fn values(call: &Call<'_>, dialect: &Dialect) {
    for param in &call.params {
        let _ = (param.value(dialect), param.name(dialect), param.type_of(), param.declared_type());
        if let Some(table) = param.table() {
            assert!(table.rows(dialect).all(|row| row.is_ok()));
        }
    }
}

/// Decodes the call as one of known shape.
fn shape(body: &[u8], dialect: &Dialect) {
    let Ok(Some(shape)) = layout::Layout::of(body, dialect) else { return };
    let Some(mut values) = shape.read(body, dialect) else { return };
    while !values.is_at_end() && values.value().is_some() {}
}

fn bulk7(data: &[u8]) {
    if let Some((dialect, body)) = dialect(data).filter(|(dialect, _)| dialect.is_tds7()) {
        rows(Rows::described(dialect), body);
    }
}

fn bulk5(data: &[u8]) {
    let Some((dialect, body)) = dialect(data).filter(|(dialect, _)| !dialect.is_tds7()) else { return };
    // the columns of the table into which tests/gateway/record.py copies, and the other forms of a stored column
    let columns = [
        (PgType::Int4, -1),
        (PgType::Varchar, 4 + 20),
        (PgType::Float4, -1),
        (PgType::Timestamp, -1),
        (PgType::Numeric, (10 << 16 | 2) + 4),
        (PgType::Text, -1),
    ];
    let others = [
        (PgType::Bool, -1),
        (PgType::Int2, -1),
        (PgType::Int8, -1),
        (PgType::Float8, -1),
        (PgType::Bytea, -1),
        (PgType::Text, -1),
    ];
    for columns in [columns, others] {
        let column = |(pg_type, typmod)| Column {
            name: String::new(),
            type_info: column_type(pg_type, typmod, &dialect),
        };
        rows(Rows::stored(dialect, columns.map(column).into()), body);
    }
}

fn rows(mut rows: Rows, body: &[u8]) {
    let (first, second) = body.split_at(body.len() / 2);
    for (part, is_last) in [(first, false), (second, true)] {
        rows.push(part);
        while let Ok(Some(())) = rows.next(is_last, |_, _| ()) {}
    }
}

/// An old server's answer, which is split in two and read two rows at a time.
fn answers(data: &[u8]) {
    let Some((dialect, body)) = dialect(data) else { return };
    let mut answer = Answer::new(dialect);
    let mut at = 0;
    for (end, is_all) in [(body.len() / 2, false), (body.len(), true)] {
        while let Ok(used) = answer.read(&body[at..end], is_all, 2, 1 << 20) {
            at += used;
            let names = answer.columns().len();
            let (rows, columns) = answer.take();
            assert!(rows <= 2 && columns.len() == names);
            if used == 0 {
                break;
            }
        }
    }
}

/// Rows of a data file of bcp: native, in characters, or of ASE, with a character set and a scale.
fn bcp(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let field = |kind: &str, prefix: usize, terminator: &[u8], wanted: &str| Described {
        name: kind.into(),
        kind: kind.into(),
        is_sybase: first & 4 != 0,
        prefix,
        length: 3,
        terminator: terminator.into(),
        wanted: (first & 8 == 0).then(|| wanted.into()),
    };
    let ended = first & 1 == 1;
    let prefix = |bytes| if ended { 0 } else { bytes };
    let end = |terminator: &'static [u8]| if ended { terminator } else { b"" };
    let text = |kind: &'static str| if ended { "CHAR" } else { kind };
    let mut fields = vec![
        field("INT", 0, b"", "i"),
        field(text("FLT4"), prefix(1), end(b"\t"), "f"),
        field(text("BIT"), prefix(1), end(b"\t"), "b"),
        field(text("DATETIME"), prefix(1), end(b"||"), "tsu:UTC"),
        field(text("DATETIME2"), prefix(1), end(b"\t"), "tsu:UTC"),
        field("NCHAR", prefix(4), end(b"\t\0"), "u"),
    ];
    if first & 2 != 0 {
        fields.push(field("CHAR", prefix(2), end(b"\r\n"), "u"));
        fields.push(field("MONEY", 8, b"", "g"));
        fields.push(field("BINARY", 0, b"", "z"));
    }
    let charset = Charset::named(if first & 16 == 0 { "utf8" } else { "sjis" }).expect("known");
    let Ok(mut rows) = FileRows::new(fields, charset, first >> 5) else { return };
    let mut at = 0;
    for (end, is_all) in [(body.len() / 2, false), (body.len(), true)] {
        while let Ok(used) = rows.read(&body[at..end], is_all, 40) {
            at += used;
            let names = rows.columns().len();
            assert_eq!(rows.take().1.len(), names);
            if used == 0 {
                break;
            }
        }
    }
}

/// Numbers of a closed block: their width, the form and their bytes.
fn packed(data: &[u8]) {
    let [width, form, body @ ..] = data else { return };
    let mut unpacker = Unpacker::new().expect("memory for zstd");
    for n in [4, 4096] {
        let mut out = vec![0; n * usize::from(*width)];
        let _ = unpacker.fill(*form, body, usize::from(*width), &mut out);
    }
}

/// Lines of a PB file. The first byte is the type of its values.
fn pb(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let _ = header(body);
    let head = [&[8, first % 14], &b"\x12\x01a\x18\xea\x0f"[..]].concat();
    let head = header(&head).expect("a header");
    let mut samples = Samples::new(&head, &["EGU".into()]);
    for line in body.split(|byte| *byte == b'\n') {
        let count = samples.count;
        let added = samples.add(line, i64::MIN, i64::MAX, None).is_ok();
        assert_eq!(samples.count, count + usize::from(added));
        assert_eq!(samples.times.len(), 8 * samples.count);
        assert_eq!(samples.waveforms.len() / 4, 1 + if first % 14 < 7 { 0 } else { samples.count });
        assert_eq!(samples.fields[0].1.there.len(), samples.count);
    }
}

/// The records of a handshake: of a connection that is TLS from its first byte, or inside PRELOGIN packets.
fn encryption(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mut transport = Transport::Plain(Sent(rest));
    let input = BytesMut::from(rest.get(..usize::from(*first >> 1)).unwrap_or(&[]));
    let handshake = pin!(transport.encrypt(tls(), input, first & 1 == 1));
    // all bytes are available: nothing waits
    let polled = handshake.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready(), "the handshake waits for more than the client has sent");
}

/// A client that has sent these bytes, accepts every answer, and has disconnected.
struct Sent<'a>(&'a [u8]);

impl AsyncRead for Sent<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let (taken, rest) = this.0.split_at(this.0.len().min(buffer.remaining()));
        buffer.put_slice(taken);
        this.0 = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Sent<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn tls() -> &'static Tls {
    static TLS: OnceLock<Tls> = OnceLock::new();
    TLS.get_or_init(|| {
        let (certificate, key) = tls::self_signed(vec!["localhost".into()], 1).expect("a certificate");
        let folder = std::env::temp_dir().join(format!("ringlog-fuzz-{}", std::process::id()));
        let files = [("certificate.pem", certificate), ("key.pem", key)].map(|(name, text)| {
            let file = folder.join(name);
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text)).expect("a folder");
            file
        });
        let [certificate, key] = files;
        let loaded = Tls::load(certificate, key, false);
        std::fs::remove_dir_all(folder).expect("the folder");
        loaded.expect("the certificate")
    })
}

fn text(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let flag = |bit: u8| first >> bit & 1 == 1;
    let settings = Settings {
        database: String::from(if flag(0) { "log" } else { "" }),
        dialect: if flag(1) { &tsql::ASE } else { &tsql::SQL_SERVER },
        quoted_identifiers: flag(2),
        nulls_equal: flag(3),
        limits_rows: flag(4),
        placeholders: flag(5),
        procedure: flag(6),
        variables: [(String::from("@p1"), tsql::facts::types::INT)].into(),
        ..Settings::default()
    };
    let unknown: std::sync::Arc<dyn tsql::schema::Schema> = std::sync::Arc::new(tsql::schema::Unknown);
    if let Ok(reading) = tsql::Reading::new(&text, &settings) {
        let _ = reading.skeleton();
        if let Ok(program) = reading.compile(&settings, flag(7), &unknown) {
            assert!(
                !flag(7) || reading.values(&program.lifted, settings.dialect).is_some(),
                "a lifted literal is lost"
            );
        }
    }
    let _ = tsql::keyed(&text, &settings);
    let _ = tsql::declarations(&text, settings.dialect, &tsql::schema::Unknown);
    let _ = tsql::undeclared(&text, &settings, &unknown);
}
