//! Inputs from which the fuzzer derives others: what clients sent, the texts of tests, and some by hand.

use super::{dialect, FIVE, SEVEN};
use bytes::BytesMut;
use ringlog_gateway::tds::packet::{Assembler, MessageKind};
use ringlog_gateway::tds::tokens;
use ringlog_gateway::tds::tokens::columns::{Column as TdsColumn, Traits};
use ringlog_gateway::tds::tokens::done::{Command, Done, Scope, Status as Ended};
use ringlog_gateway::tds::types::{encode_value, TypeInfo, TypeToken, Value};
use std::path::{Path, PathBuf};

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|at| at.join(path).is_dir())
        .expect(path)
        .join(path)
}

fn files(path: &str, extension: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder(path)).expect(path);
    let mut paths: Vec<_> = entries.map(|entry| entry.expect(path).path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect()
}

/// The captured bytes of clients, from the first one on.
pub fn connections() -> Vec<Vec<u8>> {
    files("tests/gateway/captures", "bin")
}

/// The captured messages of this type, each after every one of these first bytes.
pub fn bodies(kind: MessageKind, firsts: &[u8]) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for connection in connections() {
        let mut assembler = Assembler::new(1 << 20);
        let mut input = BytesMut::from(&connection[..]);
        while let Ok(Some(message)) = assembler.next(&mut input) {
            if message.kind != kind {
                continue;
            }
            if firsts.is_empty() {
                bodies.push(message.body.to_vec());
            }
            bodies.extend(firsts.iter().map(|first| [&[*first], &message.body[..]].concat()));
        }
    }
    bodies
}

/// The first message of a TLS 1.2 handshake, alone and in a packet.
pub fn handshakes() -> Vec<Vec<u8>> {
    let mut hello = vec![0x03, 0x03];
    hello.extend([7; 32]);
    hello.push(0);
    hello.extend([0, 6, 0xC0, 0x2F, 0xC0, 0x2B, 0x13, 0x01, 1, 0]);
    let extensions: &[&[u8]] = &[
        &[0, 10, 0, 6, 0, 4, 0, 29, 0, 23],
        &[0, 11, 0, 2, 1, 0],
        &[0, 13, 0, 8, 0, 6, 4, 3, 8, 4, 4, 1],
        &[0, 16, 0, 10, 0, 8, 7, b't', b'd', b's', b'/', b'8', b'.', b'0'],
        &[0, 23, 0, 0],
    ];
    let extensions = extensions.concat();
    hello.extend((extensions.len() as u16).to_be_bytes());
    hello.extend(extensions);
    let mut message = vec![1, 0];
    message.extend((hello.len() as u16).to_be_bytes());
    message.extend(hello);
    let mut record = vec![0x16, 3, 1];
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    let packet = [&[0x12, 1, 0, 8 + record.len() as u8, 0, 0, 0, 0], &record[..]].concat();
    vec![[&[0], &record[..]].concat(), [&[1], &packet[..]].concat(), [&[9], &packet[..]].concat()]
}

/// Answers with an int, a real and a text, one of them NULL.
pub fn rows_of_answers() -> Vec<Vec<u8>> {
    let columns = |token: TypeToken| {
        [(TypeToken::IntN, 4), (TypeToken::FloatN, 4), (TypeToken::DateTimeN, 8), (token, 40)].map(
            |(token, size)| TdsColumn {
                name: "a".into(),
                type_info: TypeInfo::new(token, size),
                traits: Traits::default(),
                table: None,
            },
        )
    };
    let values = [Value::Int(7), Value::Real(0.5), Value::Null, Value::Text("ab".into())];
    let answer = |first: u8| {
        let (dialect, _) = dialect(&[first]).expect("a byte");
        let columns = columns(if dialect.is_tds7() { TypeToken::NVarChar } else { TypeToken::VarChar });
        let mut out = BytesMut::from(&[first][..]);
        tokens::columns::put(&mut out, &columns, &dialect);
        for _ in 0..3 {
            out.extend_from_slice(&[tokens::columns::ROW]);
            for (column, value) in columns.iter().zip(&values) {
                encode_value(value, &column.type_info, &dialect, &mut out).expect("a value of its type");
            }
        }
        let done = Done::new(Scope::Statement, Ended::default(), Command::Select, None, &dialect);
        done.encode(&mut out, &dialect);
        out.to_vec()
    };
    FIVE.iter().chain(SEVEN).map(|first| answer(*first)).collect()
}

/// Two rows of a native file and of one in characters.
pub fn rows_of_files() -> Vec<Vec<u8>> {
    let seven = 7 << 5;
    let native = b"\x01\0\0\0\x04\0\0\0\x3f\x01\x01\x08\0\0\0\0\x01\0\0\0\x08\x01\0\0\0\0\0\0\0\x02\0\0\0a\0";
    let character = b"\x01\0\0\x000.5\t1\t2026-03-02 00:00:00||\ta\0\t\0";
    let of = |first: u8, row: &[u8]| [&[first], row, row].concat();
    vec![of(seven, native), of(1, character)]
}

/// A sample of each type with severity, status and a field, an escaped byte in its time.
pub fn lines_of_pb_files() -> Vec<Vec<u8>> {
    let values: [&[u8]; 14] = [
        b"\x1a\x01a",
        b"\x18\x03",
        b"\x1d\0\0\0\x3f",
        b"\x18\x04",
        b"\x1a\x01\x80",
        b"\x1d\x01\0\0\0",
        b"\x19\0\0\0\0\0\0\xe0\x3f",
        b"\x1a\x01a\x1a\0",
        b"\x1a\x03\x02\x80\x01",
        b"\x1a\x04\0\0\0\x3f",
        b"\x1a\x02\x02\x04",
        b"\x1a\x02\x01\xff",
        b"\x1d\x07\0\0\0\x1a\x04\x01\0\0\0",
        b"\x1a\x08\0\0\0\0\0\0\xe0\x3f",
    ];
    let line = |value: &[u8]| {
        let alarm = b"\x20\x03\x28\x07\x3a\x08\x1b\x02\x03EGU\x12\x01A\n";
        [&b"\x08\x1b\x02\x10\x05"[..], value, &alarm[..]].concat()
    };
    let lines = values.iter().enumerate();
    lines.map(|(first, value)| [&[first as u8][..], &line(value), &line(value)].concat()).collect()
}

/// Four numbers in each form: width, form and bytes, as history/packing.py makes them.
pub fn closed_numbers() -> Vec<Vec<u8>> {
    let times = |form: &[u8]| [&[8, 4, 1][..], &[1; 16], form].concat();
    let few = b"\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00\x00\x01\x00\x01";
    vec![
        [&[4, 0][..], &[7; 16]].concat(),
        vec![8, 1, 1, 2, 3, 4, 5, 6, 7, 8],
        [&[2, 2, 1, 1, 0, 2, 0][..], few].concat(),
        [&[1, 3][..], few].concat(),
        // eight literals
        [&[2, 3, 0x80][..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat(),
        times(&[0, 1, 2, 3]),
        times(&[1, 9]),
    ]
}

/// The texts of the tests of T-SQL.
pub fn texts() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for (number, file) in ["gateway/tsql/tests/cases", "gateway/tsql/tests/translations"]
        .iter()
        .flat_map(|path| files(path, "txt"))
        .enumerate()
    {
        let file = String::from_utf8_lossy(&file).into_owned();
        for (index, case) in file.split("====\n").enumerate() {
            let text = case.split("\n----\n").next().unwrap_or(case);
            let first = (number * 37 + index * 11) as u8;
            texts.push([&[first], text.as_bytes()].concat());
        }
    }
    texts
}
