//! Columns under construction, in Arrow's layout.

use crate::tds::dialect::{Dialect, Endian};
use crate::tds::types::{decode_value, nanoseconds, ConvertError, TypeInfo, TypeToken, Value};

const DAY: i64 = 86_400_000_000; // microseconds
const DAYS_TO_2000: i32 = 10_957; // since 1970
const MICROS_TO_2000: i64 = DAYS_TO_2000 as i64 * DAY;
const MONEY: (u8, u8) = (19, 4);

/// Whether a number read from a text is infinite only if the text says so.
fn is_near(number: f64, text: &str) -> bool {
    number.is_finite() || !text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A column of a batch of rows: buffers as in "Arrow Columnar Format".
pub struct Made {
    /// A bit for each value, set if it is present; None: all are present.
    pub valid: Option<Vec<u8>>,
    /// For texts and binaries: the start of each value and the end of the last, in 32 bits.
    pub bounds: Option<Vec<u8>>,
    pub content: Vec<u8>,
}

pub struct Builder {
    type_info: TypeInfo,
    form: Form,
    /// Whether values on the wire have Arrow's encoding.
    is_copied: bool,
    values: Vec<u8>,
    bounds: Vec<u8>,
    /// The indexes of nulls, ascending.
    nulls: Vec<usize>,
    rows: usize,
}

/// An Arrow type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One byte each under construction.
    Bits,
    Int(usize),
    Real,
    Double,
    Decimal(u8, u8),
    /// Days since 1970.
    Date,
    /// Microseconds of a day.
    Time,
    /// Microseconds since 1970, without a zone.
    Moment,
    /// Microseconds since 1970, in UTC.
    Instant,
    /// Nanoseconds since 1970, without a zone.
    Nanoseconds,
    Text,
    Binary,
}

impl Form {
    fn of(t: &TypeInfo) -> Form {
        use TypeToken::*;
        match t.token {
            Bit | BitN => Form::Bits,
            Int1 | SInt1 | UInt1 | Int2 => Form::Int(2),
            UInt2 | Int4 => Form::Int(4),
            UInt4 | Int8 => Form::Int(8),
            UInt8 => Form::Decimal(20, 0),
            IntN | UIntN => match (t.token, t.size) {
                // a byte is unsigned
                (_, 0 | 1) | (IntN, 2) => Form::Int(2),
                (UIntN, 2) | (IntN, 3 | 4) => Form::Int(4),
                (UIntN, 3 | 4) | (IntN, _) => Form::Int(8),
                _ => Form::Decimal(20, 0),
            },
            Real => Form::Real,
            FloatN if t.size == 4 => Form::Real,
            Float | FloatN => Form::Double,
            Decimal | Numeric => Form::Decimal(t.precision.max(1), t.scale),
            SmallMoney | Money | MoneyN => Form::Decimal(MONEY.0, MONEY.1),
            SybDate | SybDateN | DateN => Form::Date,
            SybTime | SybTimeN | BigTimeN | TimeN => Form::Time,
            SmallDateTime | DateTime | DateTimeN | BigDateTimeN | DateTime2N => Form::Moment,
            DateTimeOffset => Form::Instant,
            LongBinary | BlobBinary if t.is_unichar() => Form::Text,
            Binary | VarBinary | LongBinary | BigBinary | BigVarBinary | Image | BlobBinary | Udt => {
                Form::Binary
            }
            Null | Char | VarChar | LongChar | BigChar | BigVarChar | NChar | NVarChar | Text | NText
            | UniText | BlobText | BlobUniText | Xml | Guid | Variant => Form::Text,
        }
    }

    /// Bytes of a value; None: variable.
    fn width(self) -> Option<usize> {
        match self {
            Form::Bits => Some(1),
            Form::Int(width) => Some(width),
            Form::Real | Form::Date => Some(4),
            Form::Double | Form::Time | Form::Moment | Form::Instant | Form::Nanoseconds => Some(8),
            Form::Decimal(..) => Some(16),
            Form::Text | Form::Binary => None,
        }
    }
}

impl Builder {
    pub fn new(type_info: TypeInfo, dialect: &Dialect) -> Builder {
        use TypeToken::{Float, FloatN, Int2, Int4, Int8, IntN, Real};
        let form = Form::of(&type_info);
        let is_copied = dialect.endian == Endian::Little
            && matches!(type_info.token, Real | Float | FloatN | Int2 | Int4 | Int8 | IntN);
        let mut builder = Builder {
            type_info,
            form,
            is_copied,
            values: Vec::new(),
            bounds: Vec::new(),
            nulls: Vec::new(),
            rows: 0,
        };
        builder.finish();
        builder
    }

    /// A column whose times keep all seven digits.
    pub fn exact(type_info: TypeInfo, dialect: &Dialect) -> Builder {
        let mut builder = Builder::new(type_info, dialect);
        if type_info.token == TypeToken::DateTime2N && type_info.scale == 7 {
            builder.form = Form::Nanoseconds;
        }
        builder
    }

    /// A column of numbers that are [written](Self::push_written) as texts, for a type in the notation of the Arrow C
    /// data interface; None: it is not a number.
    pub fn of_written(format: &str, dialect: &Dialect) -> Option<Builder> {
        let token = match format {
            "b" => TypeToken::Bit,
            "s" => TypeToken::Int2,
            "i" => TypeToken::Int4,
            "l" => TypeToken::Int8,
            "f" => TypeToken::Real,
            "g" => TypeToken::Float,
            _ => return None,
        };
        Some(Builder::new(TypeInfo::new(token, 0), dialect))
    }

    pub fn type_info(&self) -> &TypeInfo {
        &self.type_info
    }

    /// The type in the notation of the Arrow C data interface.
    pub fn format(&self) -> String {
        match self.form {
            Form::Bits => "b".into(),
            Form::Int(2) => "s".into(),
            Form::Int(4) => "i".into(),
            Form::Int(_) => "l".into(),
            Form::Real => "f".into(),
            Form::Double => "g".into(),
            Form::Decimal(digits, scale) => format!("d:{digits},{scale}"),
            Form::Date => "tdD".into(),
            Form::Time => "ttu".into(),
            Form::Moment => "tsu:".into(),
            Form::Instant => "tsu:UTC".into(),
            Form::Nanoseconds => "tsn:".into(),
            Form::Text => "u".into(),
            Form::Binary => "z".into(),
        }
    }

    /// Adds a value of the wire; None is NULL. After an error the column must be [cut](Self::cut).
    #[inline]
    pub fn push(&mut self, raw: Option<&[u8]>, dialect: &Dialect) -> Result<(), ConvertError> {
        match raw {
            Some(raw) if self.is_copied && Some(raw.len()) == self.form.width() => {
                self.values.extend_from_slice(raw);
            }
            Some(raw) if self.form == Form::Nanoseconds => {
                let since_2000 = nanoseconds(raw, &self.type_info)?;
                let since_1970 = since_2000.checked_add(MICROS_TO_2000 * 1000);
                let found = since_1970.ok_or_else(|| self.wrong("a time after the year 2262"))?;
                self.values.extend_from_slice(&found.to_le_bytes());
            }
            _ => match decode_value(raw, &self.type_info, dialect)? {
                Value::Null => {
                    self.nulls.push(self.rows);
                    let end = self.values.len() + self.form.width().unwrap_or(0);
                    self.values.resize(end, 0);
                }
                value => self.put(&value)?,
            },
        }
        if self.form.width().is_none() {
            self.put_bound()?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds a number given as text, as the nearest number of the column's type.
    #[inline]
    pub fn push_written(&mut self, raw: &[u8]) -> Result<(), ConvertError> {
        let text = raw.trim_ascii();
        let value = std::str::from_utf8(text).ok().and_then(|text| match self.form {
            Form::Bits => matches!(text, "0" | "1").then_some(Value::Bit(text == "1")),
            Form::Int(_) => text.parse().ok().map(Value::Int),
            Form::Real => text.parse().ok().filter(|n: &f32| is_near((*n).into(), text)).map(Value::Real),
            _ => text.parse().ok().filter(|number| is_near(*number, text)).map(Value::Float),
        });
        let Some(value) = value else {
            return Err(ConvertError::conversion(
                "a text that is no such number",
                self.type_info.token.name(),
            ));
        };
        self.put(&value)?;
        self.rows += 1;
        Ok(())
    }

    fn put_bound(&mut self) -> Result<(), ConvertError> {
        let end = i32::try_from(self.values.len()).map_err(|_| self.wrong("more than 2 GB of texts"))?;
        self.bounds.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    fn wrong(&self, what: &str) -> ConvertError {
        ConvertError::overflow(what, self.type_info.token.name())
    }

    fn put(&mut self, value: &Value<'_>) -> Result<(), ConvertError> {
        let name = self.type_info.token.name();
        let values = &mut self.values;
        match (self.form, value) {
            (Form::Bits, Value::Bit(bit)) => values.push(u8::from(*bit)),
            (Form::Int(width), Value::Int(number)) => {
                let unused = 64 - 8 * width as u32;
                if number << unused >> unused != *number {
                    return Err(self.wrong("a whole number"));
                }
                values.extend_from_slice(&number.to_le_bytes()[..width]);
            }
            (Form::Real, Value::Real(number)) => values.extend_from_slice(&number.to_le_bytes()),
            (Form::Double, Value::Float(number)) => values.extend_from_slice(&number.to_le_bytes()),
            (Form::Decimal(_, scale), Value::Money(amount)) if scale == MONEY.1 => {
                values.extend_from_slice(&i128::from(*amount).to_le_bytes());
            }
            (Form::Decimal(_, 0), Value::Int(number)) => {
                values.extend_from_slice(&i128::from(*number).to_le_bytes());
            }
            (Form::Decimal(digits, scale), Value::Decimal(number)) if number.scale == scale => {
                let magnitude = i128::try_from(number.magnitude).ok();
                let fits = |magnitude: &i128| *magnitude < 10i128.pow(u32::from(digits.min(38)));
                let Some(magnitude) = magnitude.filter(fits) else {
                    return Err(self.wrong("a number of more digits"));
                };
                let signed = if number.negative { -magnitude } else { magnitude };
                values.extend_from_slice(&signed.to_le_bytes());
            }
            (Form::Date, Value::Date(days)) => {
                values.extend_from_slice(&days.saturating_add(DAYS_TO_2000).to_le_bytes());
            }
            (Form::Time, Value::Time(micros)) if (0..DAY).contains(micros) => {
                values.extend_from_slice(&micros.to_le_bytes());
            }
            (Form::Moment, Value::DateTime(micros))
            | (Form::Instant, Value::DateTimeOffset { utc: micros, .. }) => {
                values.extend_from_slice(&micros.saturating_add(MICROS_TO_2000).to_le_bytes());
            }
            (Form::Binary, Value::Binary(bytes)) => values.extend_from_slice(bytes),
            (Form::Text, value) => values.extend_from_slice(value.to_text("text")?.as_bytes()),
            (_, value) => {
                return Err(ConvertError::conversion(&format!("a value of type {}", value.kind()), name))
            }
        }
        Ok(())
    }

    /// Truncates the column to this many rows.
    pub fn cut(&mut self, rows: usize) {
        match self.form.width() {
            Some(width) => self.values.truncate(rows * width),
            None => {
                self.bounds.truncate(4 * (rows + 1));
                let last = self.bounds.last_chunk().map_or(0, |end| i32::from_le_bytes(*end));
                self.values.truncate(last as usize);
            }
        }
        while self.nulls.last().is_some_and(|last| *last >= rows) {
            self.nulls.pop();
        }
        self.rows = rows;
    }

    /// Removes and returns the rows.
    pub fn finish(&mut self) -> Made {
        let rows = std::mem::take(&mut self.rows);
        let nulls = std::mem::take(&mut self.nulls);
        let valid = (!nulls.is_empty()).then(|| {
            let mut bits = vec![0xFF; rows.div_ceil(8)];
            for row in nulls {
                bits[row / 8] &= !(1 << (row % 8));
            }
            bits
        });
        let room = self.values.len();
        let mut content = std::mem::replace(&mut self.values, Vec::with_capacity(room));
        if self.form == Form::Bits {
            let of_eight = |bits: &[u8]| bits.iter().rev().fold(0u8, |byte, bit| byte << 1 | bit);
            content = content.chunks(8).map(of_eight).collect();
        }
        let begin = if self.form.width().is_none() { vec![0; 4] } else { Vec::new() };
        let bounds = std::mem::replace(&mut self.bounds, begin);
        Made { valid, bounds: (!bounds.is_empty()).then_some(bounds), content }
    }
}
