//! Borrowed columns in Arrow's layout, of the types that samples have.
//!
//! Values have the machine's byte order, which is little-endian on all supported machines; a buffer need not be
//! aligned.

/// A column from `offset` on.
pub struct Column<'a> {
    pub length: usize,
    offset: usize,
    /// Validity: a bit for each value, set if it is present; None: all are present.
    valid: Option<&'a [u8]>,
    values: Values<'a>,
}

enum Values<'a> {
    Float(&'a [u8]),
    Double(&'a [u8]),
    /// Integers of this many bytes.
    Whole(&'a [u8], usize),
    Bits(&'a [u8]),
    Texts(Bounds<'a>, &'a [u8]),
    Lists(Bounds<'a>, Box<Column<'a>>),
}

/// The begin of each item, and the end of the last one: 32 bits each.
struct Bounds<'a>(&'a [u8]);

impl Bounds<'_> {
    fn of(&self, index: usize) -> (usize, usize) {
        let bound = |index| i32::from_le_bytes(fixed(self.0, index)) as usize;
        (bound(index), bound(index + 1))
    }
}

/// One value of a column.
pub enum Value<'a> {
    Missing,
    Float(f32),
    Double(f64),
    Whole(i64),
    Bit(bool),
    Text(&'a [u8]),
    List(Points<'a>),
}

/// The values of a list.
#[derive(Clone, Copy)]
pub struct Points<'a> {
    column: &'a Column<'a>,
    begin: usize,
    pub length: usize,
}

impl<'a> Points<'a> {
    pub fn iter(self) -> impl Iterator<Item = Value<'a>> {
        (self.begin..self.begin + self.length).map(|index| self.column.get(index))
    }

    /// The bytes of the values, if these are doubles (8), floats (4) or integers of this width and none is missing.
    pub fn bytes(self, width: usize, floating: bool) -> Option<&'a [u8]> {
        let bytes = match self.column.values {
            Values::Double(bytes) if floating && width == 8 => bytes,
            Values::Float(bytes) if floating && width == 4 => bytes,
            Values::Whole(bytes, found) if !floating && found == width => bytes,
            _ => return None,
        };
        let begin = (self.column.offset + self.begin) * width;
        self.column.valid.is_none().then(|| &bytes[begin..begin + self.length * width])
    }
}

impl<'a> Column<'a> {
    /// A column of the type of Arrow's format string ("Data Types" of the Arrow C data interface), without
    /// float16 (e). Texts and lists have `bounds`, lists `points`. None for another type, or too few bytes.
    pub fn new(
        format: &str,
        length: usize,
        offset: usize,
        valid: Option<&'a [u8]>,
        bounds: &'a [u8],
        content: &'a [u8],
        points: Option<Column<'a>>,
    ) -> Option<Self> {
        let end = offset.checked_add(length)?;
        let of_width = |width: usize| end.checked_mul(width).is_some_and(|bytes| bytes <= content.len());
        let of_bounds = || length == 0 || (end + 1).checked_mul(4).is_some_and(|bytes| bytes <= bounds.len());
        let (values, fits) = match format {
            "f" => (Values::Float(content), of_width(4)),
            "g" => (Values::Double(content), of_width(8)),
            "c" => (Values::Whole(content, 1), of_width(1)),
            "s" => (Values::Whole(content, 2), of_width(2)),
            "i" => (Values::Whole(content, 4), of_width(4)),
            "l" => (Values::Whole(content, 8), of_width(8)),
            "b" => (Values::Bits(content), end.div_ceil(8) <= content.len()),
            "u" => (Values::Texts(Bounds(bounds), content), of_bounds()),
            "+l" => (Values::Lists(Bounds(bounds), Box::new(points?)), of_bounds()),
            _ => return None,
        };
        let fits = fits && valid.is_none_or(|bits| end.div_ceil(8) <= bits.len());
        fits.then_some(Self { length, offset, valid, values })
    }

    pub fn get(&'a self, index: usize) -> Value<'a> {
        let index = self.offset + index;
        if self.valid.is_some_and(|bits| !bit(bits, index)) {
            return Value::Missing;
        }
        match &self.values {
            Values::Float(bytes) => Value::Float(f32::from_le_bytes(fixed(bytes, index))),
            Values::Double(bytes) => Value::Double(f64::from_le_bytes(fixed(bytes, index))),
            Values::Whole(bytes, 8) => Value::Whole(i64::from_le_bytes(fixed(bytes, index))),
            Values::Whole(bytes, 4) => Value::Whole(i32::from_le_bytes(fixed(bytes, index)).into()),
            Values::Whole(bytes, 2) => Value::Whole(i16::from_le_bytes(fixed(bytes, index)).into()),
            Values::Whole(bytes, _) => Value::Whole(i8::from_le_bytes(fixed(bytes, index)).into()),
            Values::Bits(bytes) => Value::Bit(bit(bytes, index)),
            Values::Texts(bounds, bytes) => {
                let (begin, end) = bounds.of(index);
                Value::Text(&bytes[begin..end])
            }
            Values::Lists(bounds, column) => {
                let (begin, end) = bounds.of(index);
                Value::List(Points { column, begin, length: end - begin })
            }
        }
    }

    /// An integer; 0 for other values.
    pub fn whole(&'a self, index: usize) -> i64 {
        match self.get(index) {
            Value::Whole(number) => number,
            _ => 0,
        }
    }
}

fn fixed<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    bytes[index * N..index * N + N].try_into().unwrap_or([0; N])
}

fn bit(bits: &[u8], index: usize) -> bool {
    bits[index / 8] >> (index % 8) & 1 == 1
}
