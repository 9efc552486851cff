use super::*;
use encode::pb::{Form, Payload};
use proptest::prelude::*;

/// A message of fields: number and wire type in a byte, then their bytes.
fn line(fields: &[&[u8]]) -> Vec<u8> {
    let mut escaped = Vec::new();
    for byte in fields.concat() {
        match byte {
            0x1b => escaped.extend([0x1b, 1]),
            b'\n' => escaped.extend([0x1b, 2]),
            b'\r' => escaped.extend([0x1b, 3]),
            byte => escaped.push(byte),
        }
    }
    escaped.push(b'\n');
    escaped
}

fn head(payload: u8) -> Vec<u8> {
    line(&[&[8, payload], b"\x12\x03A:B", &[24, 0xea, 0x0f], b"\x7a\x09\x0a\x03EGU\x12\x02mA"])
}

/// 2026-01-01 UTC, in nanoseconds since 1970.
const BEGIN: i64 = 1_767_225_600_000_000_000;
const ALL: (i64, i64) = (i64::MIN, i64::MAX);

struct Written(std::path::PathBuf);

impl Written {
    fn new(name: &str, lines: &[Vec<u8>]) -> Written {
        let path = std::env::temp_dir().join(format!("ringlog-{}-{name}.pb", std::process::id()));
        std::fs::write(&path, lines.concat()).unwrap();
        Written(path)
    }

    fn open(&self, skips: bool) -> PbFile {
        PbFile::open(&self.0, skips).unwrap()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read(file: &mut PbFile) -> Samples {
    file.read(ALL.0, ALL.1, usize::MAX, &["EGU".into()]).unwrap().0
}

#[test]
fn a_header_has_pv_type_year_and_fields() {
    let found = header(head(6).strip_suffix(b"\n").unwrap()).unwrap();
    assert_eq!((found.name.as_str(), found.year), ("A:B", 2026));
    assert_eq!(found.payload, Payload { form: Form::Double, is_waveform: false });
    assert_eq!(found.fields, [("EGU".to_owned(), "mA".to_owned())]);
    for wrong in [head(14), head(15), line(&[&[8, 6]]), b"\n".to_vec(), b"\x0b\n".to_vec()] {
        assert!(header(wrong.strip_suffix(b"\n").unwrap()).is_err());
    }
}

/// The type's number, fields of the value, content and bounds of the column.
type Case = (u8, &'static [&'static [u8]], &'static [u8], Option<[u8; 8]>);

#[test]
fn values_of_each_type_are_decoded() {
    let cases: [Case; 9] = [
        (0, &[b"\x1a\x02a\n"], b"a\n", None),
        (1, &[b"\x18\x03"], &[0xfe, 0xff, 0xff, 0xff], None),
        (4, &[b"\x1a\x01\x80"], &[0x80, 0xff], None),
        (5, &[b"\x1d\x1b\x0a\x0d\x00"], &[0x1b, 0x0a, 0x0d, 0], None),
        (6, &[b"\x19\0\0\0\0\0\0\xe0\x3f"], &[0, 0, 0, 0, 0, 0, 0xe0, 0x3f], None),
        (7, &[b"\x1a\x01a", b"\x1a\0"], b"a", Some([0, 0, 0, 0, 2, 0, 0, 0])),
        (10, &[b"\x1a\x03\x02\x80\x01"], &[1, 0, 0, 0, 64, 0, 0, 0], Some([0, 0, 0, 0, 2, 0, 0, 0])),
        (11, &[b"\x1a\x02\x01\xff"], &[1, 0, 0xff, 0xff], Some([0, 0, 0, 0, 2, 0, 0, 0])),
        // points that are not packed, which protobuf's readers must accept
        (
            12,
            &[b"\x1d\x07\0\0\0", b"\x1d\x08\0\0\0"],
            &[7, 0, 0, 0, 8, 0, 0, 0],
            Some([0, 0, 0, 0, 2, 0, 0, 0]),
        ),
    ];
    for (payload, values, content, bounds) in cases {
        let time: &[u8] = &[8, 60, 16, 5];
        let sample = line(&[&[time][..], values, &[&[32, 3, 40, 7]]].concat());
        let written = Written::new(&format!("type{payload}"), &[head(payload), sample]);
        let samples = read(&mut written.open(false));
        assert_eq!(samples.count, 1, "{payload}");
        assert_eq!(samples.times, (BEGIN + 60_000_000_005).to_le_bytes());
        assert_eq!((samples.severities, samples.statuses), (vec![3, 0], vec![7, 0]));
        assert_eq!(samples.values.content, content, "{payload}");
        assert_eq!(samples.waveforms.get(..8), bounds.as_ref().map(|bounds| &bounds[..]), "{payload}");
        assert_eq!(samples.fields[0].1.there, [0]);
    }
}

fn sample(second: u8, more: &[u8]) -> Vec<u8> {
    line(&[&[8, second, 16, 0], &[0x18, 2 * second], more])
}

#[test]
fn fields_of_samples_are_kept_or_counted() {
    let pair = b"\x3a\x09\x0a\x03EGU\x12\x02kA\x3a\x09\x0a\x04HIHI\x12\x01\x39";
    let written = Written::new("fields", &[head(1), sample(1, pair), sample(2, b""), sample(3, pair)]);
    let samples = read(&mut written.open(false));
    let egu = &samples.fields[0].1;
    assert_eq!((&egu.there[..], &egu.content[..]), (&[1, 0, 1][..], &b"kAkA"[..]));
    assert_eq!(samples.others.into_iter().collect::<Vec<_>>(), [("HIHI".to_owned(), 2)]);
}

#[test]
fn reading_goes_on_at_the_next_time() {
    let lines: Vec<_> = std::iter::once(head(1)).chain((1..60).map(|second| sample(second, b""))).collect();
    let written = Written::new("parts", &lines);
    let mut file = written.open(false);
    let at = |second: i64| BEGIN + second * 1_000_000_000;
    let (first, is_more) = file.read(at(10), at(20), usize::MAX, &[]).unwrap();
    assert_eq!((first.count, is_more, file.last), (10, false, Some(at(19))));
    let (rest, _) = file.read(at(20), at(1000), usize::MAX, &[]).unwrap();
    assert_eq!((rest.count, &rest.times[..8]), (40, &at(20).to_le_bytes()[..]));
}

#[test]
fn a_sample_is_found_in_a_long_file() {
    let mut lines = vec![head(13)];
    let points = vec![0u8; 4000];
    let waveform = |second: i64| {
        line(&[&[8, second as u8 & 127 | 128, (second >> 7) as u8, 16, 0], b"\x1a\xa0\x1f", &points])
    };
    lines.extend((128..2000).map(waveform));
    let written = Written::new("long", &lines);
    for since in [0, 128, 700, 1999, 3000] {
        let mut file = written.open(false);
        file.seek(BEGIN + since * 1_000_000_000).unwrap();
        let (found, _) = file.read(BEGIN + since * 1_000_000_000, i64::MAX, usize::MAX, &[]).unwrap();
        assert_eq!(found.count as i64, 2000 - since.clamp(128, 2000));
    }
}

#[test]
fn damaged_lines_are_refused_or_counted() {
    let damages: [&[u8]; 6] = [
        b"\n",
        b"\x08\x05\x10\n",
        b"\x08\x05\x10\x00\x1b\x09\n",
        b"\x08\x05\x10\x00\x1d\0\0\0\0\n",
        &sample(1, b""),
        b"\x08\x05\x10\x00\x18\x02\x20\x80\x80\x04\n",
    ];
    for (number, damage) in damages.iter().enumerate() {
        let lines = [head(1), sample(2, b""), damage.to_vec(), sample(6, b"")];
        let written = Written::new(&format!("damage{number}"), &lines);
        let mut file = written.open(true);
        let samples = read(&mut file);
        assert_eq!((samples.count, file.skipped), (2, 1), "{number}");
        assert_eq!(samples.values.content, [2, 0, 0, 0, 6, 0, 0, 0]);
        let refused = written.open(false).read(ALL.0, ALL.1, usize::MAX, &[]);
        let at = (head(1).len() + sample(2, b"").len()) as u64;
        assert!(matches!(refused, Err(Wrong::Line { at: position, .. }) if position == at), "{number}");
    }
    let written = Written::new("end", &[head(1), sample(2, b""), b"\x08\x05\x10\x00\x18\x02".to_vec()]);
    let mut file = written.open(true);
    assert_eq!((read(&mut file).count, file.skipped), (1, 1));
    assert!(written.open(false).read(ALL.0, ALL.1, usize::MAX, &[]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(
        payload in 0u8..14, lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)
    ) {
        let header = header(head(payload).strip_suffix(b"\n").unwrap()).unwrap();
        let mut samples = Samples::new(&header, &["EGU".into()]);
        for bytes in lines {
            let valid = [&[8, 9, 16, 9, 0x18, 2][..], &bytes].concat();
            for line in [&bytes, &valid] {
                let before = samples.count;
                let added = samples.add(line, ALL.0, ALL.1, None);
                prop_assert_eq!(samples.count, before + usize::from(added.is_ok()));
                prop_assert_eq!(samples.times.len(), 8 * samples.count);
                prop_assert_eq!(samples.fields[0].1.there.len(), samples.count);
            }
        }
    }
}
