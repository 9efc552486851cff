//! The description of a type: TYPE_INFO of MS-TDS 2.2.5.6, or the bytes after the user type in an entry of TDS 5.0's
//! PARAMFMT and ROWFMT.

use super::super::dialect::{Dialect, Version};
use super::super::wire::{Put, Reader, Result, WireError};
use super::time_size::size;
use super::token::{Layout, TypeToken};
use bytes::{BufMut, BytesMut};

/// The size of (max) types, whose values are partially length-prefixed.
pub const MAX: u32 = u32::MAX;

// FreeTDS proto.h TDS_USER_TYPE: a LONGBINARY with one of these holds UTF-16
const USER_UNICHAR: u32 = 34;
const USER_UNIVARCHAR: u32 = 35;
const USER_UNITEXT: u32 = 36;

/// A type as described on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    pub token: TypeToken,
    /// The most bytes of a value; [`MAX`] for (max), XML and UDT.
    pub size: u32,
    /// Digits of a decimal.
    pub precision: u8,
    /// Decimals of a decimal or of a time's second.
    pub scale: u8,
    /// TDS 7.x character types; zero otherwise.
    pub collation: [u8; 5],
    /// TDS 5.0: the user type before the type byte, read and written by the caller.
    pub user_type: u32,
}

impl TypeInfo {
    /// A type of `size` bytes without further properties; for fixed types `size` is ignored.
    pub fn new(token: TypeToken, size: u32) -> TypeInfo {
        let size = match token.layout() {
            Layout::Fixed(bytes) => u32::from(bytes),
            Layout::Partial => MAX,
            _ => size,
        };
        TypeInfo { token, size, precision: 0, scale: 0, collation: [0; 5], user_type: 0 }
    }

    /// A time, datetime2 or datetimeoffset of 7.3 with this many decimals of the second, at most 7.
    pub fn of_time(token: TypeToken, digits: u8) -> TypeInfo {
        let digits = digits.min(7);
        TypeInfo::new(token, u32::from(size(token, digits))).with_scale(0, digits)
    }

    pub fn with_scale(self, precision: u8, scale: u8) -> TypeInfo {
        TypeInfo { precision, scale, ..self }
    }

    pub fn with_user_type(self, user_type: u32) -> TypeInfo {
        TypeInfo { user_type, ..self }
    }

    pub fn with_collation(self, collation: [u8; 5]) -> TypeInfo {
        TypeInfo { collation, ..self }
    }

    /// Values are partially length-prefixed.
    pub fn is_max(&self) -> bool {
        match self.token.layout() {
            Layout::Partial => true,
            Layout::ShortLength => self.size == MAX,
            _ => false,
        }
    }

    /// TDS 5.0 sends unichar and univarchar as LONGBINARY, and may send unitext as BLOB, with their user type.
    pub fn is_unichar(&self) -> bool {
        match self.token {
            TypeToken::LongBinary => matches!(self.user_type, USER_UNICHAR | USER_UNIVARCHAR),
            // jTDS's type for unitext (TdsData.java, writeTds5ParamFmt)
            TypeToken::BlobBinary => self.user_type == USER_UNITEXT,
            _ => false,
        }
    }

    /// In COLMETADATA of TDS 7.x a table name follows such a column's type (MS-TDS 2.2.7.4): from 7.2 on a number of
    /// parts and as many names, at 7.1 one name.
    pub fn has_table_name(&self) -> bool {
        self.token.layout() == Layout::TextPointer
    }

    fn has_collation(&self) -> bool {
        use TypeToken::*;
        matches!(self.token, BigChar | BigVarChar | NChar | NVarChar | Text | NText)
    }

    /// Reads the type byte and the rest of the description. An unknown type is malformed: the length of its values is
    /// unknown.
    pub fn decode(r: &mut Reader, d: &Dialect) -> Result<TypeInfo> {
        let byte = r.u8("type")?;
        let token = TypeToken::from_wire(byte, d)
            .ok_or_else(|| WireError::Malformed(format!("data type 0x{byte:02X} is not supported")))?;
        let mut t = TypeInfo::new(token, 0);
        match token.layout() {
            Layout::Fixed(_) => {}
            Layout::ByteLength => t.decode_byte_length(r)?,
            Layout::ShortLength => {
                t.size = u32::from(r.u16("type size")?);
                if t.size == 0xFFFF {
                    if d.version < Version::Tds72 {
                        return Err(WireError::Malformed(format!("{}(max) needs TDS 7.2", token.name())));
                    }
                    t.size = MAX;
                }
            }
            // UDT and XML have another layout; below MAX, so that MAX keeps its meaning
            Layout::LongLength | Layout::TextPointer => t.size = r.u32("type size")?.min(MAX - 1),
            Layout::Partial => t.decode_partial(r)?,
            Layout::Stream => t.decode_blob(r)?,
        }
        if d.is_tds7() && t.has_collation() {
            t.collation = r.array("collation")?;
        }
        if !d.is_tds7() && token.layout() == Layout::TextPointer {
            let length = r.u16("table name length")?;
            r.take(usize::from(length), "table name")?;
        }
        Ok(t)
    }

    fn decode_byte_length(&mut self, r: &mut Reader) -> Result<()> {
        use TypeToken::*;
        match self.token {
            DateN => self.size = 3,
            TimeN | DateTime2N | DateTimeOffset => {
                self.scale = r.u8("time scale")?;
                if self.scale > 7 {
                    return Err(WireError::Malformed(format!("{} with a scale above 7", self.token.name())));
                }
                self.size = u32::from(size(self.token, self.scale));
            }
            Decimal | Numeric => {
                self.size = u32::from(r.u8("type size")?);
                self.precision = r.u8("precision")?;
                self.scale = r.u8("scale")?;
                if self.precision > 38 || self.scale > 38 {
                    return Err(WireError::Malformed(format!(
                        "{} of more than 38 digits",
                        self.token.name()
                    )));
                }
            }
            BigDateTimeN | BigTimeN => {
                self.size = u32::from(r.u8("type size")?);
                self.scale = r.u8("scale")?;
            }
            _ => self.size = u32::from(r.u8("type size")?),
        }
        Ok(())
    }

    /// XML_INFO and UDT_INFO_IN_RPC of MS-TDS 2.2.5.5.3 and 2.2.5.5.2, whose names are ignored.
    fn decode_partial(&mut self, r: &mut Reader) -> Result<()> {
        let skip = |r: &mut Reader, units: usize| r.take(units * 2, "type name").map(|_| ());
        if self.token == TypeToken::Xml {
            if r.u8("schema present")? != 0 {
                for _ in 0..2 {
                    let units = r.u8("schema name length")?;
                    skip(r, usize::from(units))?;
                }
                let units = r.u16("schema collection length")?;
                skip(r, usize::from(units))?;
            }
            return Ok(());
        }
        for _ in 0..3 {
            let units = r.u8("type name length")?;
            skip(r, usize::from(units))?;
        }
        Ok(())
    }

    /// The content type of a BLOB of TDS 5.0, and its class, which only Java objects have (jTDS TdsData.java,
    /// writeTds5ParamFmt; SAP/go-dblib tds/field.go, BlobType).
    fn decode_blob(&mut self, r: &mut Reader) -> Result<()> {
        let kind = r.u8("BLOB type")?;
        let class = r.u16("BLOB class")?;
        self.token = match (kind, class) {
            (3, 0) => TypeToken::BlobText,
            (4, 0) => TypeToken::BlobBinary,
            (5, 0) => TypeToken::BlobUniText,
            _ => {
                let text = format!("a BLOB of type {kind}: only text, binary and unitext are served");
                return Err(WireError::Malformed(text));
            }
        };
        self.size = MAX - 1;
        Ok(())
    }

    /// Writes the type byte and the rest of the description, the counterpart of [`TypeInfo::decode`]. A type that the
    /// dialect lacks is written as NULLTYPE; [`crate::convert::column_type`] returns none.
    pub fn encode(&self, out: &mut BytesMut, d: &Dialect) {
        use TypeToken::*;
        let token = if matches!(self.token, BlobText | BlobUniText) { BlobBinary } else { self.token };
        let Some(byte) = token.to_wire(d) else {
            debug_assert!(false, "{} in {:?}", self.token.name(), d.version);
            out.put_u8(0x1F);
            return;
        };
        out.put_u8(byte);
        let byte_size = u8::try_from(self.size).unwrap_or(u8::MAX);
        match self.token.layout() {
            Layout::Fixed(_) => {}
            Layout::ByteLength => match self.token {
                DateN => {}
                TimeN | DateTime2N | DateTimeOffset => out.put_u8(self.scale),
                Decimal | Numeric => out.put_slice(&[byte_size, self.precision, self.scale]),
                BigDateTimeN | BigTimeN => out.put_slice(&[byte_size, self.scale]),
                _ => out.put_u8(byte_size),
            },
            Layout::ShortLength => out.put_u16_as(u16::try_from(self.size).unwrap_or(0xFFFF), d.endian),
            Layout::LongLength | Layout::TextPointer => out.put_u32_as(self.size, d.endian),
            Layout::Partial => out.put_slice(if self.token == Xml { &[0] } else { &[0; 3] }),
            Layout::Stream => {
                let kind = match self.token {
                    BlobText => 3,
                    BlobUniText => 5,
                    _ => 4,
                };
                out.put_slice(&[kind, 0, 0]);
            }
        }
        if d.is_tds7() && self.has_collation() {
            out.put_slice(&self.collation);
        }
        if !d.is_tds7() && self.token.layout() == Layout::TextPointer {
            out.put_u16_as(0, d.endian);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Endian;

    fn decoded(wire: &[u8], d: &Dialect) -> Result<TypeInfo> {
        let mut r = Reader::new(wire, d.endian);
        let t = TypeInfo::decode(&mut r, d)?;
        assert!(r.is_empty(), "{} bytes left", r.remaining());
        Ok(t)
    }

    #[test]
    fn microsofts_announcements() {
        let d = Dialect::new(Version::Tds74);
        // MS-TDS 4.6, RPC client request: NVARCHAR(4000) with its collation
        let nvarchar = decoded(&[0xE7, 0x40, 0x1F, 0x09, 0x04, 0xD0, 0x00, 0x34], &d).unwrap();
        assert_eq!((nvarchar.token, nvarchar.size), (TypeToken::NVarChar, 8000));
        assert_eq!(nvarchar.collation, [0x09, 0x04, 0xD0, 0x00, 0x34]);
        assert!(decoded(&[0xE7, 0xFF, 0xFF, 0, 0, 0, 0, 0], &d).unwrap().is_max());
        let decimal = decoded(&[0x6A, 17, 33, 5], &d).unwrap();
        assert_eq!((decimal.precision, decimal.scale), (33, 5));
        assert_eq!(decoded(&[0x2A, 7], &d).unwrap().size, 8);
        assert_eq!(decoded(&[0x28], &d).unwrap().size, 3);
        assert!(decoded(&[0xF1, 0], &d).unwrap().is_max());
    }

    #[test]
    fn sybases_announcements() {
        let d = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        let text = decoded(&[0x23, 0x7F, 0xFF, 0xFF, 0xFF, 0, 2, b't', b'1'], &d).unwrap();
        assert_eq!((text.token, text.size), (TypeToken::Text, i32::MAX as u32));
        assert_eq!(decoded(&[0xAF, 0, 0, 1, 0], &d).unwrap().size, 256);
        assert_eq!(decoded(&[0xBB, 8, 6], &d).unwrap().scale, 6);
        assert_eq!(decoded(&[0xBF], &d).unwrap().token, TypeToken::Int8);
        // as jTDS declares a text and an image
        assert_eq!(decoded(&[0x24, 3, 0, 0], &d).unwrap().token, TypeToken::BlobText);
        assert_eq!(decoded(&[0x24, 4, 0, 0], &d).unwrap().token, TypeToken::BlobBinary);
    }

    #[test]
    fn what_cannot_be_is_malformed() {
        let (five, seven) = (Dialect::new(Version::Tds50), Dialect::new(Version::Tds71));
        for (wire, d) in [
            // a Java object and a locator at 5.0, (max) before 7.2, a decimal of 39 digits,
            // a time of scale 8
            (&[0x24, 1, 0, 0][..], &five),
            (&[0x24, 7, 0, 0], &five),
            (&[0xE7, 0xFF, 0xFF], &seven),
            (&[0x6C, 17, 39, 0], &seven),
            (&[0x29, 8], &seven),
        ] {
            assert!(matches!(decoded(wire, d), Err(WireError::Malformed(_))), "{wire:?}");
        }
        assert!(matches!(decoded(&[0x26], &seven), Err(WireError::Truncated(_))));
    }
}
