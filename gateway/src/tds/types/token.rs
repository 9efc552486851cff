//! The type bytes of both dialects and how their values are framed.
//!
//! Sources: MS-TDS 2.2.5.4; FreeTDS include/freetds/proto.h and misc/types.csv; SAP/go-dblib asetypes.

use super::super::dialect::Dialect;

/// How values of a type are delimited in a row or parameter list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A fixed number of bytes, not NULL (NULLTYPE, of no bytes, is always NULL).
    Fixed(u8),
    /// One length byte, 0 = NULL.
    ByteLength,
    /// Two length bytes, 0xFFFF = NULL (TDS 7.x); partially length-prefixed for (max) types.
    ShortLength,
    /// Four length bytes, 0 = NULL (TDS 5.0 long types, SQL_VARIANT).
    LongLength,
    /// TEXT, NTEXT, IMAGE: text pointer, timestamp and four length bytes,
    /// or only the length in the parameters of a TDS 7.x request.
    TextPointer,
    /// Always partially length-prefixed (XML, UDT).
    Partial,
    /// TDS 5.0's BLOB: a serialization type and a class, then chunks, of which the last is marked.
    Stream,
}

struct Row {
    token: TypeToken,
    sybase: u8,
    microsoft: u8,
    layout: Layout,
    name: &'static str,
}

macro_rules! type_tokens {
    ($($token:ident $sybase:literal $microsoft:literal $layout:expr, $name:literal;)*) => {
        /// A type of either dialect, independent of its byte there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TypeToken { $($token),* }

        // 0 stands for "not in this dialect"
        const ROWS: &[Row] = &[$(Row {
            token: TypeToken::$token, sybase: $sybase, microsoft: $microsoft, layout: $layout, name: $name,
        }),*];
    };
}

use Layout::{ByteLength, Fixed, LongLength, Partial, ShortLength, Stream, TextPointer};

type_tokens! {
    // token     5.0  7.x  layout
    Null           0x1F 0x1F Fixed(0), "NULLTYPE";
    Int1           0x30 0x30 Fixed(1), "INT1";
    SInt1          0xB0 0x00 Fixed(1), "SINT1";
    UInt1          0x40 0x00 Fixed(1), "UINT1";
    Int2           0x34 0x34 Fixed(2), "INT2";
    UInt2          0x41 0x00 Fixed(2), "UINT2";
    Int4           0x38 0x38 Fixed(4), "INT4";
    UInt4          0x42 0x00 Fixed(4), "UINT4";
    Int8           0xBF 0x7F Fixed(8), "INT8";
    UInt8          0x43 0x00 Fixed(8), "UINT8";
    IntN           0x26 0x26 ByteLength, "INTN";
    UIntN          0x44 0x00 ByteLength, "UINTN";
    Bit            0x32 0x32 Fixed(1), "BIT";
    BitN           0x68 0x68 ByteLength, "BITN";
    Real           0x3B 0x3B Fixed(4), "FLT4";
    Float          0x3E 0x3E Fixed(8), "FLT8";
    FloatN         0x6D 0x6D ByteLength, "FLTN";
    Decimal        0x6A 0x6A ByteLength, "DECIMALN";
    Numeric        0x6C 0x6C ByteLength, "NUMERICN";
    SmallMoney     0x7A 0x7A Fixed(4), "MONEY4";
    Money          0x3C 0x3C Fixed(8), "MONEY";
    MoneyN         0x6E 0x6E ByteLength, "MONEYN";
    Char           0x2F 0x2F ByteLength, "CHAR";
    VarChar        0x27 0x27 ByteLength, "VARCHAR";
    LongChar       0xAF 0x00 LongLength, "LONGCHAR";
    BigChar        0x00 0xAF ShortLength, "BIGCHAR";
    BigVarChar     0x00 0xA7 ShortLength, "BIGVARCHAR";
    NChar          0x00 0xEF ShortLength, "NCHAR";
    NVarChar       0x00 0xE7 ShortLength, "NVARCHAR";
    Text           0x23 0x23 TextPointer, "TEXT";
    NText          0x00 0x63 TextPointer, "NTEXT";
    UniText        0xAE 0x00 TextPointer, "UNITEXT";
    Xml            0x00 0xF1 Partial, "XML";
    Binary         0x2D 0x2D ByteLength, "BINARY";
    VarBinary      0x25 0x25 ByteLength, "VARBINARY";
    LongBinary     0xE1 0x00 LongLength, "LONGBINARY";
    BigBinary      0x00 0xAD ShortLength, "BIGBINARY";
    BigVarBinary   0x00 0xA5 ShortLength, "BIGVARBINARY";
    Image          0x22 0x22 TextPointer, "IMAGE";
    // one type byte; the description contains the content type
    BlobBinary     0x24 0x00 Stream, "BLOB";
    BlobText       0x00 0x00 Stream, "BLOB";
    BlobUniText    0x00 0x00 Stream, "BLOB";
    Guid           0x00 0x24 ByteLength, "UNIQUEIDENTIFIER";
    SmallDateTime  0x3A 0x3A Fixed(4), "DATETIM4";
    DateTime       0x3D 0x3D Fixed(8), "DATETIME";
    DateTimeN      0x6F 0x6F ByteLength, "DATETIMN";
    SybDate        0x31 0x00 Fixed(4), "DATE";
    SybDateN       0x7B 0x00 ByteLength, "DATEN";
    SybTime        0x33 0x00 Fixed(4), "TIME";
    SybTimeN       0x93 0x00 ByteLength, "TIMEN";
    BigDateTimeN   0xBB 0x00 ByteLength, "BIGDATETIMEN";
    BigTimeN       0xBC 0x00 ByteLength, "BIGTIMEN";
    DateN          0x00 0x28 ByteLength, "DATEN";
    TimeN          0x00 0x29 ByteLength, "TIMEN";
    DateTime2N     0x00 0x2A ByteLength, "DATETIME2N";
    DateTimeOffset 0x00 0x2B ByteLength, "DATETIMEOFFSETN";
    Variant        0x00 0x62 LongLength, "SQL_VARIANT";
    Udt            0x00 0xF0 Partial, "UDT";
}

const fn lookup(microsoft: bool) -> [Option<TypeToken>; 256] {
    let mut table = [None; 256];
    let mut i = 0;
    while i < ROWS.len() {
        let byte = if microsoft { ROWS[i].microsoft } else { ROWS[i].sybase };
        if byte != 0 {
            table[byte as usize] = Some(ROWS[i].token);
        }
        i += 1;
    }
    table
}

static SYBASE: [Option<TypeToken>; 256] = lookup(false);
static MICROSOFT: [Option<TypeToken>; 256] = lookup(true);

impl TypeToken {
    /// The type of `byte` for this client; None if the client cannot send it or the gateway does not know it.
    pub fn from_wire(byte: u8, d: &Dialect) -> Option<TypeToken> {
        let table = if d.is_tds7() { &MICROSOFT } else { &SYBASE };
        table[usize::from(byte)]
    }

    /// The type's byte for this client; None if its dialect has no such type.
    pub fn to_wire(self, d: &Dialect) -> Option<u8> {
        let row = &ROWS[self as usize];
        let byte = if d.is_tds7() { row.microsoft } else { row.sybase };
        (byte != 0).then_some(byte)
    }

    pub fn layout(self) -> Layout {
        ROWS[self as usize].layout
    }

    /// The protocol's name, for messages.
    pub fn name(self) -> &'static str {
        ROWS[self as usize].name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;

    #[test]
    fn every_type_stands_in_its_own_row() {
        for (i, row) in ROWS.iter().enumerate() {
            assert_eq!(row.token as usize, i);
        }
    }

    #[test]
    fn every_byte_leads_back_to_its_type() {
        for version in [Version::Tds50, Version::Tds74] {
            let d = Dialect::new(version);
            for row in ROWS {
                if let Some(byte) = row.token.to_wire(&d) {
                    assert_eq!(TypeToken::from_wire(byte, &d), Some(row.token), "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn the_same_byte_differs_by_dialect() {
        let (five, seven) = (Dialect::new(Version::Tds50), Dialect::new(Version::Tds74));
        assert_eq!(TypeToken::from_wire(0xAF, &five), Some(TypeToken::LongChar));
        assert_eq!(TypeToken::from_wire(0xAF, &seven), Some(TypeToken::BigChar));
        assert_eq!(TypeToken::from_wire(0x24, &five), Some(TypeToken::BlobBinary));
        assert_eq!(TypeToken::from_wire(0x24, &seven), Some(TypeToken::Guid));
    }
}
