//! Properties of every type: values survive the round trip, and no bytes cause a panic.

use super::decimals::{bytes_at_7, bytes_of_precision};
use super::*;
use crate::tds::dialect::{Endian, Version};
use crate::tds::wire::Reader;
use clock::{DAY, FIRST_DATETIME_DAY, LAST_DAY, TO_0001};
use proptest::prelude::*;
use std::borrow::Cow;

fn dialects() -> Vec<Dialect> {
    let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
    let versions = [Version::Tds50, Version::Tds71, Version::Tds72, Version::Tds73, Version::Tds74];
    std::iter::once(big).chain(versions.map(Dialect::new)).collect()
}

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(dialects())
}

fn time(scale: u8, token: TypeToken) -> TypeInfo {
    TypeInfo::new(token, u32::from(time_size::size(token, scale))).with_scale(0, scale)
}

/// A type and a value that it holds exactly.
fn pair() -> impl Strategy<Value = (TypeInfo, Value<'static>)> {
    use TypeToken::*;
    let t = TypeInfo::new;
    prop_oneof![integer(), number(), text(), datetime(), variant(), Just((t(IntN, 4), Value::Null))]
}

/// A sql_variant of any base type, with a value.
fn variant() -> impl Strategy<Value = (TypeInfo, Value<'static>)> {
    let any = prop_oneof![integer(), number(), text(), datetime()];
    let held = any.prop_filter_map("no base type of a sql_variant", |(t, value)| {
        let is_5 = t.token.to_wire(&Dialect::new(Version::Tds73)).is_none();
        let variant = Variant::of(value, &t).filter(|_| !is_5)?;
        // only values with a length above zero have their own length
        Some((TypeInfo::new(TypeToken::Variant, LONGEST_VARIANT), Value::Variant(Box::new(variant))))
    });
    // a decimal's bytes are those of 7.x
    held.prop_map(|(t, value)| match value {
        Value::Variant(variant) => {
            let precision = variant.of.precision;
            let size = match precision {
                0 => variant.of.size,
                _ => bytes_at_7(precision).into(),
            };
            let of = TypeInfo { size, ..variant.of };
            (t, Value::Variant(Box::new(Variant { of, value: variant.value })))
        }
        value => (t, value),
    })
}

fn integer() -> impl Strategy<Value = (TypeInfo, Value<'static>)> {
    use TypeToken::*;
    let t = TypeInfo::new;
    prop_oneof![
        any::<u8>().prop_map(move |n| (t(IntN, 1), Value::Int(n.into()))),
        any::<i8>().prop_map(move |n| (t(SInt1, 1), Value::Int(n.into()))),
        any::<i16>().prop_map(move |n| (t(IntN, 2), Value::Int(n.into()))),
        any::<u16>().prop_map(move |n| (t(UIntN, 2), Value::Int(n.into()))),
        any::<i32>().prop_map(move |n| (t(Int4, 4), Value::Int(n.into()))),
        any::<u32>().prop_map(move |n| (t(UIntN, 4), Value::Int(n.into()))),
        any::<i64>().prop_map(move |n| (t(Int8, 8), Value::Int(n))),
        any::<u32>().prop_map(move |n| (t(UInt8, 8), Value::Int(n.into()))),
        any::<bool>().prop_map(move |bit| (t(BitN, 1), Value::Bit(bit))),
    ]
}

fn number() -> impl Strategy<Value = (TypeInfo, Value<'static>)> {
    use TypeToken::*;
    let t = TypeInfo::new;
    let decimal = (1..=38u8).prop_flat_map(|precision| {
        let magnitude = 0..10u128.pow(u32::from(precision));
        (Just(precision), 0..=precision, magnitude, any::<bool>())
    });
    prop_oneof![
        any::<f32>().prop_map(move |n| (t(FloatN, 4), Value::Real(n))),
        any::<f64>().prop_map(move |n| (t(Float, 8), Value::Float(n))),
        any::<i32>().prop_map(move |n| (t(SmallMoney, 4), Value::Money(n.into()))),
        any::<i64>().prop_map(move |n| (t(MoneyN, 8), Value::Money(n))),
        decimal.prop_map(move |(precision, scale, magnitude, negative)| {
            let size = bytes_of_precision(precision, &Dialect::new(Version::Tds50));
            let number = value::Decimal { negative: negative && magnitude != 0, magnitude, scale };
            (t(Numeric, size.into()).with_scale(precision, scale), Value::Decimal(number))
        }),
        any::<[u8; 16]>().prop_map(move |bytes| (t(Guid, 16), Value::Guid(bytes))),
    ]
}

fn text() -> impl Strategy<Value = (TypeInfo, Value<'static>)> {
    use TypeToken::*;
    let t = TypeInfo::new;
    let tokens = vec![
        (t(Char, 255), "[ -~]{1,100}"),
        (t(VarChar, 255), "[ -~é]{1,100}"),
        (t(LongChar, 1000), "[ -~ü]{1,200}"),
        (t(BigVarChar, 8000), "[ -~é€]{0,200}"),
        (t(NVarChar, 8000), "\\PC{0,200}"),
        (t(NVarChar, MAX), "\\PC{0,200}"),
        (t(NText, 8000), "\\PC{0,200}"),
        (t(UniText, 8000), "\\PC{1,200}"),
        (t(LongBinary, 8000).with_user_type(35), "\\PC{1,200}"),
        (t(Text, 8000), "[ -~]{1,200}"),
    ];
    let binaries = vec![t(VarBinary, 255), t(LongBinary, 255), t(BigVarBinary, 8000), t(BigVarBinary, MAX)];
    prop_oneof![
        prop::sample::select(tokens).prop_flat_map(|(t, pattern)| {
            pattern.prop_map(move |text| (t, Value::Text(Cow::Owned(text))))
        }),
        (prop::sample::select(binaries), prop::collection::vec(any::<u8>(), 1..200))
            .prop_map(|(t, bytes)| (t, Value::Binary(Cow::Owned(bytes)))),
    ]
}

fn datetime() -> impl Strategy<Value = (TypeInfo, Value<'static>)> {
    use TypeToken::*;
    let t = TypeInfo::new;
    let micros = -TO_0001 * DAY..(LAST_DAY + 1) * DAY;
    let ticks = (FIRST_DATETIME_DAY..=LAST_DAY, 0..clock::TICKS_PER_DAY);
    prop_oneof![
        ticks.prop_map(move |(day, ticks)| {
            (t(DateTimeN, 8), Value::DateTime(day * DAY + clock::micros_of_ticks(ticks)))
        }),
        (-36_524i64..29_011, 0..1440i64).prop_map(move |(day, minute)| {
            (t(SmallDateTime, 4), Value::DateTime(day * DAY + minute * 60_000_000))
        }),
        (0..clock::TICKS_PER_DAY).prop_map(move |n| (t(SybTime, 4), Value::Time(clock::micros_of_ticks(n)))),
        (-TO_0001..=LAST_DAY).prop_map(move |day| (t(SybDateN, 4), Value::Date(day as i32))),
        (-TO_0001..=LAST_DAY).prop_map(move |day| (t(DateN, 3), Value::Date(day as i32))),
        (0..DAY).prop_map(move |n| (t(BigTimeN, 8), Value::Time(n))),
        micros.clone().prop_map(move |n| (t(BigDateTimeN, 8), Value::DateTime(n))),
        (0..DAY, 6..=7u8).prop_map(|(n, scale)| (time(scale, TimeN), Value::Time(n))),
        (micros.clone(), 0..=7u8).prop_map(|(n, scale)| {
            let step = 10i64.pow(6 - u32::from(scale.min(6)));
            (time(scale, DateTime2N), Value::DateTime(n.div_euclid(step) * step))
        }),
        (micros, -840..=840i16).prop_map(|(utc, offset_minutes)| {
            (time(7, DateTimeOffset), Value::DateTimeOffset { utc, offset_minutes })
        }),
    ]
}

proptest! {
    #[test]
    fn values_survive_the_round_trip((t, value) in pair(), d in dialect()) {
        prop_assume!(t.token.to_wire(&d).is_some());
        prop_assume!(!t.is_max() || d.version >= Version::Tds72);
        // before 7.3 dates and times in a sql_variant are texts
        prop_assume!(!matches!(value, Value::Variant(_)) || d.version >= Version::Tds73);
        let mut out = BytesMut::new();
        t.encode(&mut out, &d);
        encode_value(&value, &t, &d, &mut out).unwrap();
        let mut r = Reader::new(&out, d.endian);
        let announced = TypeInfo::decode(&mut r, &d).unwrap();
        prop_assert_eq!(announced.with_user_type(t.user_type), t);
        let raw = take_row_value(&mut r, &t, &d).unwrap();
        prop_assert!(r.is_empty());
        let read = decode_value(raw.as_deref(), &t, &d).unwrap();
        // NaN is not equal to itself
        prop_assert_eq!(format!("{read:?}"), format!("{value:?}"));
    }

    #[test]
    fn nulls_survive_the_round_trip((t, _) in pair(), d in dialect()) {
        prop_assume!(t.token.to_wire(&d).is_some());
        let mut out = BytesMut::new();
        if encode_value(&Value::Null, &t, &d, &mut out).is_ok() {
            let mut r = Reader::new(&out, d.endian);
            prop_assert_eq!(take_row_value(&mut r, &t, &d).unwrap(), None);
            prop_assert!(r.is_empty());
        } else {
            prop_assert!(matches!(t.token.layout(), Layout::Fixed(_)));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), d in dialect()) {
        let mut r = Reader::new(&bytes, d.endian);
        while let Ok(t) = TypeInfo::decode(&mut r, &d) {
            let Ok(raw) = take_value(&mut r, &t, &d) else { break };
            prop_assert!(raw.as_deref().is_none_or(|raw| raw.len() <= bytes.len()));
            let _ = decode_value(raw.as_deref(), &t, &d);
        }
    }

    #[test]
    fn any_bytes_of_a_known_type_are_read_or_refused(
        (t, _) in pair(),
        d in dialect(),
        raw in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        if let Ok(value) = decode_value(Some(&raw), &t, &d) {
            // a decoded value can be sent back, or is refused by its type's limits
            let mut out = BytesMut::new();
            let _ = encode_value(&value, &t, &d, &mut out);
            let _ = value.to_text("text");
        }
    }

    #[test]
    fn a_refused_value_leaves_no_trace((t, _) in pair(), (_, value) in pair(), d in dialect()) {
        prop_assume!(t.token.to_wire(&d).is_some());
        let mut out = BytesMut::from(&b"before"[..]);
        if encode_value(&value, &t, &d, &mut out).is_err() {
            prop_assert_eq!(&out[..], b"before");
        }
    }

    #[test]
    fn floats_read_back_from_their_text(float in any::<f64>(), real in any::<f32>()) {
        let text = Value::Float(float).to_text("text").unwrap().into_owned();
        prop_assert_eq!(text.parse::<f64>().unwrap(), float);
        let text = Value::Real(real).to_text("text").unwrap().into_owned();
        prop_assert_eq!(text.parse::<f32>().unwrap(), real);
    }
}
