//! Messages of real clients (tests/gateway/captures, recorded by tests/gateway/record.py), unchanged and
//! damaged in every way: the decoders read or refuse them, without a panic and in memory bounded by the
//! received bytes.

use bytes::BytesMut;
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ringlog_gateway::convert::{column_type, PgType};
use ringlog_gateway::program::Settings;
use ringlog_gateway::tds::bulk::{Column, Rows};
use ringlog_gateway::tds::call;
use ringlog_gateway::tds::dialect::Dialect;
use ringlog_gateway::tds::layout;
use ringlog_gateway::tds::login::{login5, login7, negotiate, prelogin};
use ringlog_gateway::tds::packet::{Assembler, Message, MessageKind};
use ringlog_gateway::tds::request::{Request, Requests};
use std::path::PathBuf;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory that reading a connection may take for each received byte, and in total.
const FACTOR: usize = 100;
const ANYWAY: usize = 64 << 10;

fn captures() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/gateway/captures");
    let mut captures: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    captures.sort();
    captures
}

/// The decoded messages of a connection.
#[derive(Debug, Default, PartialEq)]
struct Understood {
    messages: usize,
    logins: usize,
    calls: usize,
    batches: usize,
    dynamics: usize,
    bulk_rows: usize,
    refused: usize,
}

/// Reads a connection like a session, up to its end.
fn read(bytes: &[u8]) -> Understood {
    let mut understood = Understood::default();
    let mut assembler = Assembler::new(1 << 20);
    let mut input = BytesMut::from(bytes);
    let mut dialect = None;
    loop {
        match assembler.next(&mut input) {
            Ok(Some(message)) => {
                understood.messages += 1;
                if read_message(&message, &mut dialect, &mut understood).is_none() {
                    understood.refused += 1;
                }
            }
            Ok(None) => return understood,
            Err(_) => {
                understood.refused += 1;
                return understood;
            }
        }
    }
}

/// None: refused.
fn read_message(message: &Message, known: &mut Option<Dialect>, understood: &mut Understood) -> Option<()> {
    let body = &message.body;
    let login = match message.kind {
        MessageKind::Prelogin => return prelogin::decode(body).ok().map(|_| ()),
        MessageKind::Login7 => Some(login7::decode(body)),
        MessageKind::Login5 => {
            let _ = login5::dialect_of_refusal(body);
            Some(login5::decode(body))
        }
        _ => None,
    };
    if let Some(login) = login {
        *known = Some(login.ok()?.dialect);
        understood.logins += 1;
        return Some(());
    }
    let dialect = &(*known)?;
    match message.kind {
        MessageKind::Batch | MessageKind::Rpc | MessageKind::Normal => {
            read_requests(message, dialect, understood)
        }
        MessageKind::BulkLoad => {
            let mut rows = if dialect.is_tds7() {
                Rows::described(*dialect)
            } else {
                Rows::stored(*dialect, columns(dialect))
            };
            let half = body.len() / 2;
            for (part, is_last) in [(&body[..half], false), (&body[half..], true)] {
                rows.push(part);
                while rows.next(is_last, |_, _| ()).ok()?.is_some() {
                    understood.bulk_rows += 1;
                }
            }
            Some(())
        }
        _ => Some(()),
    }
}

/// The columns of the table that record.py copies into, as described to a client of 5.0.
fn columns(dialect: &Dialect) -> Vec<Column> {
    let types = [
        (PgType::Int4, -1),
        (PgType::Varchar, 4 + 20),
        (PgType::Float4, -1),
        (PgType::Timestamp, -1),
        (PgType::Numeric, (10 << 16 | 2) + 4),
        (PgType::Text, -1),
    ];
    let column =
        |(pg_type, typmod)| Column { name: String::new(), type_info: column_type(pg_type, typmod, dialect) };
    types.map(column).into()
}

fn read_requests(message: &Message, dialect: &Dialect, understood: &mut Understood) -> Option<()> {
    let mut requests = Requests::of(message, dialect).ok()?;
    if message.kind == MessageKind::Normal && negotiate::decode_response(requests.body(), dialect).is_ok() {
        // the encrypted password, which still belongs to the login
        return Some(());
    }
    if message.kind != MessageKind::Batch {
        read_shape(requests.body(), dialect)?;
    }
    while let Some(request) = requests.next_request().ok()? {
        match request {
            Request::Batch(text) => read_text(&text, understood)?,
            Request::Language { text, .. } => {
                let text = dialect.charset.decode(text)?;
                read_text(&text, understood)?;
            }
            Request::Rpc(found) | Request::Dbrpc(found) => read_call(&found, dialect, understood)?,
            Request::Dynamic(found) => {
                understood.dynamics += 1;
                for param in &found.params {
                    let _ = param.value(dialect);
                }
                if let Some(text) = dialect.charset.decode(found.text) {
                    let _ = read_text(&text, understood);
                }
            }
            Request::Logout => return Some(()),
            _ => {}
        }
    }
    Some(())
}

fn read_text(text: &str, understood: &mut Understood) -> Option<()> {
    understood.batches += 1;
    for placeholders in [false, true] {
        let variables = [(String::from("@p1"), tsql::facts::types::INT)].into();
        let quoted_identifiers = placeholders;
        let settings = Settings { quoted_identifiers, placeholders, variables, ..Settings::default() };
        let _ = tsql::compile(text, &settings);
    }
    Some(())
}

fn read_call(found: &call::Call<'_>, dialect: &Dialect, understood: &mut Understood) -> Option<()> {
    understood.calls += 1;
    for param in &found.params {
        let _ = (param.value(dialect), param.name(dialect));
    }
    Some(())
}

/// The shape of the call, and the values of the call by it.
fn read_shape(body: &[u8], dialect: &Dialect) -> Option<()> {
    if let Ok(Some(shape)) = layout::Layout::of(body, dialect) {
        let mut values = shape.read(body, dialect)?;
        while !values.is_at_end() {
            values.value()?;
        }
    }
    Some(())
}

#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
    Drop(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let at = any::<prop::sample::Index>;
    let special = prop::sample::select(vec![
        vec![0xFF; 4],
        vec![0; 4],
        vec![0xFF, 0xFF, 0xFF, 0x7F],
        vec![0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        vec![0xFF; 8],
    ]);
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 1..4), special];
    let damage = prop_oneof![
        6 => (at(), bytes).prop_map(|(at, bytes)| Damage::Set(at, bytes)),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), 1usize..40).prop_map(|(at, count)| Damage::Drop(at, count)),
        1 => (at(), 1usize..400).prop_map(|(at, count)| Damage::Repeat(at, count)),
    ];
    prop::collection::vec(damage, 1..6)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        match damage {
            Damage::Set(at, with) => {
                let at = at.index(bytes.len());
                for (target, byte) in bytes[at..].iter_mut().zip(with) {
                    *target = *byte;
                }
            }
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Drop(at, count) => {
                let at = at.index(bytes.len());
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Damage::Repeat(at, count) => {
                let at = at.index(bytes.len());
                let part = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

/// One test for all, so that nothing else allocates memory meanwhile.
#[test]
fn whatever_comes_is_read_or_refused() {
    let captures = captures();
    assert!(captures.len() >= 15, "{} captures", captures.len());
    let mut whole = Understood::default();
    for (name, bytes) in &captures {
        let understood = read(bytes);
        assert_eq!((understood.logins, understood.refused), (1, 0), "{name}: {understood:?}");
        whole.calls += understood.calls;
        whole.batches += understood.batches;
        whole.dynamics += understood.dynamics;
        whole.bulk_rows += understood.bulk_rows;
    }
    assert!(
        whole.calls > 20 && whole.batches > 20 && whole.dynamics > 4 && whole.bulk_rows > 40,
        "{whole:?}"
    );

    let mut runner = TestRunner::new(Config { cases: 10_000, ..Config::default() });
    let strategy = (0..captures.len(), damages());
    runner
        .run(&strategy, |(which, damages)| {
            let (name, bytes) = &captures[which];
            let bytes = damaged(bytes.clone(), &damages);
            let before = MEMORY.current_usage();
            MEMORY.reset_peak_usage();
            read(&bytes);
            let taken = MEMORY.peak_usage().saturating_sub(before);
            prop_assert!(taken <= ANYWAY + FACTOR * bytes.len(), "{name}: {taken} bytes for {}", bytes.len());
            Ok(())
        })
        .unwrap();
}
