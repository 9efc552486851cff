use super::*;
use std::slice::from_ref;

fn field(kind: &str, prefix: usize, terminator: &[u8], wanted: Option<&str>) -> Described {
    Described {
        name: "a".into(),
        kind: kind.into(),
        is_sybase: false,
        prefix,
        length: 0,
        terminator: terminator.into(),
        wanted: wanted.map(String::from),
    }
}

fn rows(fields: &[Described]) -> Rows {
    Rows::new(fields.to_vec(), &crate::tds::charset::UTF_8, 7).unwrap()
}

fn read(fields: &[Described], input: &[u8]) -> Result<(usize, Vec<Made>)> {
    let mut rows = rows(fields);
    assert_eq!(rows.read(input, true, usize::MAX)?, input.len());
    Ok(rows.take())
}

/// The error of a row.
fn refused(fields: &[Described], input: &[u8]) -> String {
    read(fields, input).err().unwrap().to_string()
}

/// The content of the only column of one row.
fn one(kind: &str, wanted: &str, value: &[u8]) -> Vec<u8> {
    let described = field(kind, 1, b"", Some(wanted));
    let input = [&[value.len() as u8][..], value].concat();
    read(&[described], &input).unwrap().1.remove(0).content
}

fn micros(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().unwrap())
}

#[test]
fn a_row_that_is_not_complete_waits() {
    let fields = [
        field("INT", 0, b"", Some("i")),
        field("FLT4", 1, b"", Some("f")),
        field("CHAR", 2, b"", None),
        field("CHAR", 2, b"\n", Some("u")),
    ];
    let mut input = vec![];
    for (number, value) in [(1i32, Some(1.5f32)), (2, None)] {
        input.extend(number.to_le_bytes());
        match value {
            Some(value) => input.extend([&[4][..], &value.to_le_bytes()].concat()),
            None => input.push(0xFF),
        }
        input.extend([1, 0, b'x', 2, 0, b'a', b'b' + number as u8, b'\n']);
    }
    let first = 17;
    for length in 0..input.len() {
        let mut rows = rows(&fields);
        let used = rows.read(&input[..length], false, usize::MAX).unwrap();
        let complete = usize::from(length >= first);
        assert_eq!((used, rows.rows()), (first * complete, complete), "{length}");
        assert_eq!(rows.take().1[0].content.len(), 4 * complete);
        // the rest arrives later
        rows.read(&input[used..], true, usize::MAX).unwrap();
        assert_eq!(rows.rows(), 2 - complete);
        if length > 0 && length != first {
            assert!(
                refused(&fields, &input[..length]).starts_with("ends in the middle of a row"),
                "{length}"
            );
        }
    }
    let (count, columns) = read(&fields, &input).unwrap();
    assert_eq!((count, columns.len()), (2, 3));
    assert_eq!(
        (columns[1].valid.as_deref(), &columns[1].content[..4]),
        (Some(&[0xFD][..]), &1.5f32.to_le_bytes()[..])
    );
    assert_eq!(columns[2].content, b"acad");
    let mut some = rows(&fields);
    assert_eq!(some.read(&input, true, 1).unwrap(), first);
    assert!(some.is_full(1));
}

#[test]
fn lengths_of_nothing() {
    let valid = |described: &Described, input: &[u8]| {
        let column = read(from_ref(described), input).unwrap().1.remove(0);
        (column.valid.is_none(), column.content)
    };
    let text = field("CHAR", 1, b"", Some("u"));
    assert_eq!(valid(&text, &[0xFF]), (false, vec![]));
    assert_eq!(valid(&text, &[0]), (true, vec![]));
    assert_eq!(valid(&Described { is_sybase: true, ..text }, &[0]), (false, vec![]));
    let number = field("INT", 1, b"", Some("i"));
    assert!(!valid(&number, &[0]).0);
    assert!(!valid(&number, &[0xFF]).0);
    let ended = field("CHAR", 0, b"||", Some("u"));
    assert_eq!(valid(&ended, b"||"), (false, vec![]));
    assert_eq!(valid(&ended, b"\0||"), (true, vec![]));
    assert_eq!(valid(&ended, b"a|b||"), (true, b"a|b".to_vec()));
    // the terminator's bytes occur at the end of one unit and the start of the next
    let wide = field("NCHAR", 0, b"\t\0", Some("u"));
    assert_eq!(valid(&wide, &[0x61, 0x09, 0x00, 0x01, 0x09, 0x00]), (true, "\u{961}\u{100}".into()));
    assert_eq!(valid(&wide, &[0, 0, 9, 0]), (true, vec![]));
}

/// Values from the documentation of the types (MS-TDS 2.2.5.5.1.2, 2.2.5.5.1.7 and 2.2.5.5.1.8).
#[test]
fn native_values() {
    let day = 25_567i32.to_le_bytes();
    for (ticks, expected) in [(1i32, 3000), (2, 7000), (3, 10_000)] {
        assert_eq!(micros(&one("DATETIME", "tsu:UTC", &[day, ticks.to_le_bytes()].concat())), expected);
    }
    assert_eq!(micros(&one("DATETIM4", "tsu:UTC", &[0xDF, 0x63, 1, 0])), 60_000_000);
    let date = &719_162u32.to_le_bytes()[..3];
    let seven = [&12_345_678u64.to_le_bytes()[..5], date].concat();
    assert_eq!(micros(&one("DATETIME2", "tsu:UTC", &seven)), 1_234_567_800);
    let three = Rows::new(vec![field("DATETIME2", 0, b"", Some("tsu:UTC"))], &crate::tds::charset::UTF_8, 3);
    let mut three = three.unwrap();
    three.read(&[&1234u64.to_le_bytes()[..4], date].concat(), true, usize::MAX).unwrap();
    assert_eq!(micros(&three.take().1[0].content), 1_234_000);
    assert_eq!(one("DATE", "tdD", date), 0i32.to_le_bytes());
    let big = 719_528u64 * 86_400_000_000 + 5;
    assert_eq!(micros(&one("BIGDATETIME", "tsu:UTC", &big.to_le_bytes())), 5);
    assert_eq!(one("MONEY", "g", &[0xFF; 8]), (-1i128).to_le_bytes());
    assert_eq!(one("TINYINT", "s", &[200]), 200i16.to_le_bytes());
    assert_eq!(one("BIT", "b", &[1]), [1]);
}

#[test]
fn numbers_in_characters_are_the_nearest() {
    let of = |format: &str, text: &str| one("CHAR", format, text.as_bytes());
    assert_eq!(of("f", "0.1"), 0.1f32.to_le_bytes());
    assert_eq!(of("f", " -3.4028235e38 "), f32::MIN.to_le_bytes());
    assert_eq!(of("g", "1e-320"), 1e-320f64.to_le_bytes());
    assert_eq!(of("g", "-0.0"), (-0.0f64).to_le_bytes());
    assert_eq!(of("f", "inf"), f32::INFINITY.to_le_bytes());
    assert_eq!(of("l", "-9223372036854775808"), i64::MIN.to_le_bytes());
    assert_eq!((of("b", "1"), of("b", "0")), (vec![1], vec![0]));
    let wrong = [
        ("f", "1e39"),
        ("g", "1e309"),
        ("f", "1,5"),
        ("f", ""),
        ("i", "2147483648"),
        ("s", "1.0"),
        ("b", "2"),
    ];
    for (format, text) in wrong {
        let input = [&[text.len() as u8][..], text.as_bytes()].concat();
        let error = refused(&[field("CHAR", 1, b"", Some(format))], &input);
        assert!(error.starts_with("row 1, column a: "), "{format} {text}: {error}");
    }
}

#[test]
fn another_format_is_an_error() {
    let real = field("FLT4", 1, b"", Some("f"));
    assert!(refused(from_ref(&real), &[7, 0, 0, 0, 0, 0, 0, 0])
        .contains("row 1, column a has a length of 7 bytes, not 4"));
    let ended = Described { terminator: b"\n".to_vec(), ..real };
    assert!(refused(from_ref(&ended), &[4, 0, 0, 0, 0, b'!']).contains("has no terminator after it"));
    // the previous row remains
    let mut some = rows(&[ended]);
    let error = some.read(&[4, 0, 0, 0, 0, b'\n', 3], true, usize::MAX).err().unwrap();
    assert!(error.to_string().starts_with("row 2, column a"), "{error}");
    assert_eq!(some.take().0, 1);
    for wrong in [field("UDT", 1, b"", None), field("CHAR", 0, b"", None), field("CHAR", 3, b"", None)] {
        assert!(Rows::new(vec![wrong], &crate::tds::charset::UTF_8, 7).is_err());
    }
    assert!(Rows::new(vec![], &crate::tds::charset::UTF_8, 7).is_err());
}

/// 123.45 from ODBC's documentation of SQL_NUMERIC_STRUCT, and -123.45 as ASE's numeric(5, 2).
#[test]
fn numerics_have_their_own_scale() {
    let microsoft = |sign: u8, precision: u8| [&[precision, 2, sign, 0x39, 0x30][..], &[0; 14]].concat();
    assert_eq!(one("NUMERIC", "u", &microsoft(1, 5)), b"123.45");
    assert_eq!(one("DECIMAL", "u", &microsoft(0, 38)), b"-123.45");
    let described = |is_sybase| Described { is_sybase, ..field("NUMERIC", 1, b"", Some("u")) };
    let sybase = [&[35, 5, 2, 1, 0, 0x30, 0x39][..], &[0xAA; 29], &[0]].concat();
    let (count, columns) = read(&[described(true)], &sybase).unwrap();
    assert_eq!((count, &columns[0].content[..]), (2, &b"-123.45"[..]));
    assert_eq!(columns[0].valid.as_deref(), Some(&[0b1111_1101][..]));
    for wrong in [&microsoft(1, 4)[..], &microsoft(1, 1), &[19; 19]] {
        let input = [&[19][..], wrong].concat();
        assert!(refused(&[described(false)], &input).contains("row 1, column a: "), "{wrong:?}");
    }
    assert!(refused(&[described(false)], &[18; 19]).contains("has a length of 18 bytes, not 19"));
}
