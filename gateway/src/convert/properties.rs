//! Properties of every conversion: a value survives the round trip in its own PostgreSQL type, the described type of a
//! column can hold every value that PostgreSQL sends, and no input causes a panic.

use super::*;
use crate::tds::dialect::{Dialect, Endian, Version};
use crate::tds::types::{decode_value, encode_value, take_row_value, Decimal};
use crate::tds::wire::Reader;
use bytes::BytesMut;
use proptest::prelude::*;
use std::borrow::Cow;

const DAY: i64 = 86_400_000_000;
/// 1753-01-02 … 9999-12-30 in days since 2000-01-01: the range of DATETIME in every zone.
const DAYS: std::ops::Range<i64> = -90_213..2_921_938;

const TYPES: [PgType; 23] = [
    PgType::Bool,
    PgType::Int2,
    PgType::Int4,
    PgType::Int8,
    PgType::Oid,
    PgType::Float4,
    PgType::Float8,
    PgType::Numeric,
    PgType::Text,
    PgType::Varchar,
    PgType::Bpchar,
    PgType::Name,
    PgType::Char,
    PgType::Bytea,
    PgType::Date,
    PgType::Time,
    PgType::Timestamp,
    PgType::TimestampTz,
    PgType::Uuid,
    PgType::Json,
    PgType::Jsonb,
    PgType::Xml,
    PgType::Other(2249),
];

fn text(pg: PgType, pattern: &'static str) -> BoxedStrategy<(PgType, Value<'static>)> {
    pattern.prop_map(move |text| (pg, Value::Text(Cow::Owned(text)))).boxed()
}

/// A PostgreSQL type and a value of it that can be sent to every client.
fn own() -> impl Strategy<Value = (PgType, Value<'static>)> {
    let decimal = (any::<bool>(), 0..10u128.pow(20), 0..=18u8).prop_map(|(negative, magnitude, scale)| {
        let negative = negative && magnitude != 0;
        (PgType::Numeric, Value::Decimal(Decimal { negative, magnitude, scale }))
    });
    let numbers = prop_oneof![
        any::<bool>().prop_map(|bit| (PgType::Bool, Value::Bit(bit))),
        any::<i16>().prop_map(|n| (PgType::Int2, Value::Int(n.into()))),
        any::<i32>().prop_map(|n| (PgType::Int4, Value::Int(n.into()))),
        any::<i64>().prop_map(|n| (PgType::Int8, Value::Int(n))),
        any::<u32>().prop_map(|n| (PgType::Oid, Value::Int(n.into()))),
        any::<f32>().prop_map(|n| (PgType::Float4, Value::Real(n))),
        any::<f64>().prop_map(|n| (PgType::Float8, Value::Float(n))),
        decimal,
    ];
    let texts = prop_oneof![
        text(PgType::Text, "[ -~]{1,50}"),
        text(PgType::Varchar, "[ -~]{1,50}"),
        text(PgType::Name, "[ -~]{1,50}"),
        text(PgType::Char, "[!-~]"),
        text(PgType::Jsonb, "[ -~]{1,50}"),
        text(PgType::Xml, "[ -~]{1,50}"),
        text(PgType::Other(1186), "[ -~]{1,50}"),
        prop::collection::vec(any::<u8>(), 1..50)
            .prop_map(|bytes| (PgType::Bytea, Value::Binary(Cow::Owned(bytes)))),
        any::<[u8; 16]>().prop_map(|bytes| (PgType::Uuid, Value::Guid(bytes))),
    ];
    let micros = (DAYS, 0..DAY - 2000).prop_map(|(day, micros)| day * DAY + micros);
    let times = prop_oneof![
        DAYS.prop_map(|day| (PgType::Date, Value::Date(day as i32))),
        (0..DAY - 2000).prop_map(|n| (PgType::Time, Value::Time(n))),
        micros.clone().prop_map(|n| (PgType::Timestamp, Value::DateTime(n))),
        micros.prop_map(|n| (PgType::TimestampTz, Value::DateTime(n))),
    ];
    prop_oneof![numbers, texts, times]
}

fn any_value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        own().prop_map(|(_, value)| value),
        "\\PC{0,30}".prop_map(|text| Value::Text(Cow::Owned(text))),
        "[-+0-9.eE: TZ/]{0,30}".prop_map(|text| Value::Text(Cow::Owned(text))),
        any::<i64>().prop_map(Value::DateTime),
        (0..=DAY).prop_map(Value::Time),
        any::<i64>().prop_map(Value::Money),
        (i32::MIN + 1..i32::MAX).prop_map(Value::Date),
        (any::<i64>(), any::<i16>())
            .prop_map(|(utc, offset_minutes)| Value::DateTimeOffset { utc, offset_minutes }),
        prop::num::f64::ANY.prop_map(Value::Float),
        prop::num::f32::ANY.prop_map(Value::Real),
        (any::<bool>(), 0..10u128.pow(38), 0..=38u8)
            .prop_map(|(negative, magnitude, scale)| Value::Decimal(Decimal { negative, magnitude, scale })),
    ]
}

fn zone() -> impl Strategy<Value = Zone> {
    prop::sample::select(vec![
        Zone::UTC,
        Zone::new("Asia/Tokyo").unwrap(),
        Zone::new("Europe/Berlin").unwrap(),
    ])
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let five = Dialect::new(Version::Tds50);
    let versions = [Version::Tds71, Version::Tds72, Version::Tds73, Version::Tds74];
    let mut all: Vec<Dialect> = versions.map(Dialect::new).to_vec();
    all.extend([
        five,
        Dialect {
            endian: Endian::Big,
            takes: crate::tds::dialect::Takes::NONE,
            charset: &crate::tds::charset::UTF_8,
            ..five
        },
    ]);
    prop::sample::select(all)
}

proptest! {
    #[test]
    fn values_come_back_from_their_own_type((pg, value) in own()) {
        let mut out = BytesMut::new();
        to_pg(&value, pg, &Zone::UTC, &mut out).unwrap();
        prop_assert_eq!(from_pg(pg, &out, &Zone::UTC).unwrap(), value);
    }

    #[test]
    fn announced_columns_carry_their_values((pg, value) in own(), d in dialect()) {
        let mut body = BytesMut::new();
        to_pg(&value, pg, &Zone::UTC, &mut body).unwrap();
        let value = from_pg(pg, &body, &Zone::UTC).unwrap();
        for t in [column_type(pg, -1, &d), output_type(pg, -1, &d)] {
            let mut out = BytesMut::new();
            encode_value(&value, &t, &d, &mut out).unwrap();
            let mut r = Reader::new(&out, d.endian);
            let raw = take_row_value(&mut r, &t, &d).unwrap();
            prop_assert!(r.is_empty());
            let sent = decode_value(raw.as_deref(), &t, &d).unwrap();
            // a client may send the value back as a parameter: it is the same value if exact
            let mut again = BytesMut::new();
            to_pg(&sent, pg, &Zone::UTC, &mut again).unwrap();
            let again = from_pg(pg, &again, &Zone::UTC).unwrap();
            match (&again, &value) {
                (Value::DateTime(again), Value::DateTime(value)) | (Value::Time(again), Value::Time(value)) => {
                    prop_assert!((again - value).abs() <= 2000, "{} {}", again, value);
                }
                (Value::Decimal(again), Value::Decimal(value)) => {
                    let same_scale = again.scale.max(value.scale);
                    prop_assert_eq!(again.rescaled(same_scale), value.rescaled(same_scale));
                }
                _ => prop_assert_eq!(&again, &value),
            }
        }
    }

    #[test]
    fn any_value_converts_or_is_refused_without_a_trace(value in any_value(), zone in zone()) {
        for pg in TYPES {
            let mut out = BytesMut::from(&b"before"[..]);
            match to_pg(&value, pg, &zone, &mut out) {
                Ok(()) => prop_assert!(from_pg(pg, &out[6..], &zone).is_ok() || pg == PgType::Numeric),
                Err(refused) => {
                    prop_assert_eq!(&out[..], b"before");
                    prop_assert!(!refused.text.is_empty());
                }
            }
        }
    }

    #[test]
    fn any_bytes_of_postgresql_are_read_or_refused(raw in prop::collection::vec(any::<u8>(), 0..40), d in dialect()) {
        for pg in TYPES {
            if let Ok(value) = from_pg(pg, &raw, &Zone::UTC) {
                let _ = encode_value(&value, &column_type(pg, -1, &d), &d, &mut BytesMut::new());
            }
        }
    }

    #[test]
    fn any_typmod_is_announced(typmod in any::<i32>(), d in dialect()) {
        for pg in TYPES {
            let mut out = BytesMut::new();
            column_type(pg, typmod, &d).encode(&mut out, &d);
            let mut r = Reader::new(&out, d.endian);
            prop_assert!(crate::tds::types::TypeInfo::decode(&mut r, &d).is_ok());
        }
    }

    #[test]
    fn times_are_read_back_from_their_text(micros in DAYS.start * DAY..DAYS.end * DAY) {
        let text = Value::DateTime(micros).short_text("text").unwrap();
        prop_assert_eq!(calendar::read(text.as_str()), Some(Value::DateTime(micros)));
    }

    #[test]
    fn local_times_come_back_from_their_instant(local in DAYS.start * DAY..DAYS.end * DAY, zone in zone()) {
        let instant = zone.to_utc(local);
        // except during a change of clocks
        let back = zone.to_local(instant);
        prop_assert!(back == local || (back - local).abs() == 3_600_000_000);
    }
}
