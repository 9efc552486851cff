//! What differs between the clients, as values.

use encoding_rs::Encoding;

/// The protocol a client logged in with. Ordered by age within Microsoft's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Sybase TDS 5.0
    Tds50,
    /// SQL Server 2000
    Tds71,
    /// SQL Server 2005: (max) types, wider DONE counts
    Tds72,
    /// SQL Server 2008: date, time, datetime2, datetimeoffset
    Tds73,
    /// SQL Server 2012 and later
    Tds74,
}

/// Byte order of integers and floats after login: TDS 7.x is little, a TDS 5.0 client chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    Little,
    Big,
}

/// Everything the codec must know about the client it talks to.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    pub version: Version,
    pub endian: Endian,
    /// Encoding of single-byte character data: the login's character set at TDS 5.0,
    /// the announced collation's code page at 7.x.
    pub charset: &'static Encoding,
    /// TDS 5.0 only: the client's capabilities allow bigdatetime / bigtime results.
    pub big_datetime: bool,
    /// TDS 5.0 only: bytes that a TEXT or IMAGE column is announced with, by which clients size buffers.
    pub text_size: u32,
}

/// ASE's @@textsize before the client sets it.
const DEFAULT_TEXT_SIZE: u32 = 32_768;

impl Dialect {
    /// A little-endian client of `version`, single-byte data in windows-1252.
    pub fn new(version: Version) -> Dialect {
        Dialect {
            version,
            endian: Endian::Little,
            charset: encoding_rs::WINDOWS_1252,
            big_datetime: true,
            text_size: DEFAULT_TEXT_SIZE,
        }
    }

    pub fn is_tds7(&self) -> bool {
        self.version >= Version::Tds71
    }
}
