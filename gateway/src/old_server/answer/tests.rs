use super::*;
use crate::tds::dialect::{Endian, Version};
use crate::tds::tokens::columns::Traits;
use crate::tds::tokens::done::{Command, Scope};
use crate::tds::types::{self, encode_value, TypeInfo, TypeToken, Value};
use bytes::{BufMut, BytesMut};

const ALL: usize = usize::MAX;

fn dialects() -> impl Iterator<Item = Dialect> {
    let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
    let versions = [Version::Tds50, Version::Tds71, Version::Tds72, Version::Tds73, Version::Tds74];
    std::iter::once(big).chain(versions.map(Dialect::new))
}

/// A column of each kind of length, with a value.
fn columns(dialect: &Dialect) -> Vec<(TypeInfo, Value<'static>)> {
    use TypeToken::*;
    let t = TypeInfo::new;
    let number = types::Decimal { negative: true, magnitude: 12_345, scale: 2 };
    let text = if dialect.is_tds7() { t(NVarChar, 80) } else { t(VarChar, 80) };
    let mut columns = vec![
        (t(IntN, 4), Value::Int(-5)),
        (t(IntN, 8), Value::Int(i64::MAX)),
        (t(BitN, 1), Value::Bit(true)),
        (t(FloatN, 4), Value::Real(0.1)),
        (t(FloatN, 8), Value::Float(f64::NAN)),
        (t(Numeric, if dialect.is_tds7() { 9 } else { 5 }).with_scale(10, 2), Value::Decimal(number)),
        (t(MoneyN, 8), Value::Money(-1)),
        (t(DateTimeN, 8), Value::DateTime(3000)),
        (text, Value::Text("größe".into())),
        (
            if dialect.is_tds7() { t(BigVarBinary, 9) } else { t(VarBinary, 9) },
            Value::Binary(vec![0, 0xFF].into()),
        ),
    ];
    if dialect.is_tds7() && dialect.version >= Version::Tds72 {
        columns.push((t(NVarChar, types::MAX), Value::Text("x".repeat(300).into())));
    }
    columns
}

fn done(out: &mut BytesMut, dialect: &Dialect) {
    Done::new(Scope::Statement, Status::default(), Command::Select, Some(3), dialect).encode(out, dialect);
}

/// A message, three rows, the second of them NULL, and the end.
fn answer(dialect: &Dialect) -> Vec<u8> {
    let mut out = BytesMut::new();
    message::put(&mut out, &ServerMessage::info(5701, "changed"), dialect);
    let columns = columns(dialect);
    let described: Vec<_> = columns
        .iter()
        .map(|(type_info, _)| Column {
            name: type_info.token.name().into(),
            type_info: *type_info,
            traits: Traits::default(),
            table: None,
        })
        .collect();
    columns::put(&mut out, &described, dialect);
    for row in 0..3 {
        out.put_u8(columns::ROW);
        for (type_info, value) in &columns {
            encode_value(if row == 1 { &Value::Null } else { value }, type_info, dialect, &mut out).unwrap();
        }
    }
    done(&mut out, dialect);
    out.to_vec()
}

/// Validity, bounds and values of a column.
type Buffers = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<u8>);

fn content(made: &[Made]) -> Vec<Buffers> {
    made.iter().map(|made| (made.valid.clone(), made.bounds.clone(), made.content.clone())).collect()
}

#[test]
fn rows_become_columns() {
    for dialect in dialects() {
        let bytes = answer(&dialect);
        let mut answer = Answer::new(dialect);
        assert_eq!(answer.read(&bytes, true, ALL, ALL).unwrap(), bytes.len(), "{:?}", dialect.version);
        assert!(answer.is_over);
        let formats: Vec<_> = answer.columns().into_iter().map(|(_, format)| format).collect();
        assert_eq!(formats[..10], ["i", "l", "b", "f", "g", "d:10,2", "d:19,4", "tsu:", "u", "z"]);
        let (rows, made) = answer.take();
        assert_eq!(rows, 3);
        assert!(made.iter().all(|made| made.valid.as_deref() == Some(&[0b1111_1101][..])));
        assert_eq!(made[0].content, [(-5i32).to_le_bytes(), [0; 4], (-5i32).to_le_bytes()].concat());
        assert_eq!(made[2].content, [0b101]);
        assert_eq!(made[5].content[..16], (-12_345i128).to_le_bytes());
        assert_eq!(made[7].content[..8], (946_684_800_003_000i64).to_le_bytes());
        assert_eq!(made[8].content, "größegröße".as_bytes());
        let bounds = [0, 7, 7, 14].map(i32::to_le_bytes).concat();
        assert_eq!(made[8].bounds.as_deref(), Some(&bounds[..]));
        assert_eq!(made[9].content, [0, 0xFF, 0, 0xFF]);
    }
}

#[test]
fn rows_with_a_bitmap_of_nulls() {
    let dialect = Dialect::new(Version::Tds74);
    let mut bytes = answer(&dialect);
    bytes.truncate(bytes.len() - Done::length(&dialect));
    let mut out = BytesMut::from(&bytes[..]);
    out.put_slice(&[NBCROW, 0xFE, 0xFF]);
    encode_value(&Value::Int(7), &TypeInfo::new(TypeToken::IntN, 4), &dialect, &mut out).unwrap();
    done(&mut out, &dialect);
    let mut answer = Answer::new(dialect);
    answer.read(&out, true, ALL, ALL).unwrap();
    let (rows, made) = answer.take();
    assert_eq!((rows, &made[0].content[12..]), (4, &7i32.to_le_bytes()[..]));
    assert_eq!(made[8].valid.as_deref(), Some(&[0b1111_0101][..]));
}

#[test]
fn an_answer_in_two_pieces_is_the_same() {
    for dialect in dialects() {
        let bytes = answer(&dialect);
        let mut whole = Answer::new(dialect);
        whole.read(&bytes, true, ALL, ALL).unwrap();
        let expected = content(&whole.take().1);
        for cut in 0..bytes.len() {
            let mut answer = Answer::new(dialect);
            let used = answer.read(&bytes[..cut], false, ALL, ALL).unwrap();
            assert!(used <= cut && !answer.is_over);
            assert_eq!(answer.read(&bytes[used..], true, ALL, ALL).unwrap(), bytes.len() - used, "{cut}");
            assert_eq!(content(&answer.take().1), expected, "{cut}");
            // an answer cut here is an error, or lacks its DONE
            let mut answer = Answer::new(dialect);
            assert!(answer.read(&bytes[..cut], true, ALL, ALL).is_err() || !answer.is_over, "{cut}");
        }
    }
}

#[test]
fn rows_are_taken_in_parts() {
    let dialect = Dialect::new(Version::Tds74);
    let bytes = answer(&dialect);
    let mut answer = Answer::new(dialect);
    let mut used = 0;
    let mut parts = vec![];
    while !answer.is_over {
        used += answer.read(&bytes[used..], true, 2, ALL).unwrap();
        parts.push(answer.take().0);
    }
    assert_eq!((parts, used), (vec![2, 1], bytes.len()));
}

#[test]
fn changed_bytes_are_read_or_refused() {
    for dialect in dialects() {
        let bytes = answer(&dialect);
        for offset in 0..bytes.len() {
            for changed in [0, 1, 0x7F, 0x80, 0xD1, 0xFD, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[offset] = changed;
                let mut answer = Answer::new(dialect);
                if answer.read(&bytes, true, ALL, ALL).is_ok() {
                    let names = answer.columns().len();
                    let (rows, columns) = answer.take();
                    assert!(rows <= bytes.len() && columns.len() == names);
                }
            }
        }
    }
}

#[test]
fn the_first_error_is_named() {
    for dialect in dialects() {
        let mut out = BytesMut::new();
        message::put(&mut out, &ServerMessage::error(208, 16, "nowhere"), &dialect);
        message::put(&mut out, &ServerMessage::error(3, 16, "later"), &dialect);
        done(&mut out, &dialect);
        let mut answer = Answer::new(dialect);
        answer.read(&out, true, ALL, ALL).unwrap();
        assert_eq!(answer.demand_no_error().unwrap_err().to_string(), "message 208: nowhere");
    }
}
