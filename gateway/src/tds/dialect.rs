//! The differences between clients' dialects of TDS, as values.

use super::charset::{self, Charset};

/// The protocol of a client's login. Ordered by age within Microsoft's line.
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

/// Byte order of integers and floats after login: little-endian at 7.x, chosen by the client at 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    Little,
    Big,
}

/// The properties of a client that the codec depends on.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    pub version: Version,
    pub endian: Endian,
    /// Encoding of single-byte character data: the login's character set at TDS 5.0, the code page of the session's
    /// collation at 7.x.
    pub charset: &'static Charset,
    /// TDS 7.4 only: the client has requested UTF-8 in single-byte columns (MS-TDS 2.2.6.4, UTF8_SUPPORT).
    pub knows_utf8: bool,
    /// TDS 5.0 only: the types that the client's capabilities allow in results.
    pub takes: Takes,
    /// TDS 5.0 only: a client of ct-library. Its programs convert texts to the types with which parameters are
    /// described, some without checking: DBD::Sybase converts 'abc' to 0 (atoi, atof).
    pub is_ct_library: bool,
    /// TDS 5.0 only: the described length of a TEXT or IMAGE column, by which clients size buffers.
    pub text_size: u32,
}

/// Types that only newer clients of TDS 5.0 accept. Other clients get an older type instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    pub int8: bool,
    pub date: bool,
    pub time: bool,
    pub big_datetime: bool,
    pub big_time: bool,
    /// LONGCHAR and LONGBINARY
    pub long: bool,
    /// ROWFMT2 instead of ROWFMT, which go-ase misreads.
    pub wide_tables: bool,
}

impl Takes {
    pub const ALL: Takes = Takes {
        int8: true,
        date: true,
        time: true,
        big_datetime: true,
        big_time: true,
        long: true,
        wide_tables: false,
    };
    pub const NONE: Takes = Takes {
        int8: false,
        date: false,
        time: false,
        big_datetime: false,
        big_time: false,
        long: false,
        wide_tables: false,
    };
}

/// ASE's @@textsize before the client sets it.
const DEFAULT_TEXT_SIZE: u32 = 32_768;

impl Dialect {
    /// A little-endian client of `version`, single-byte data in windows-1252.
    pub fn new(version: Version) -> Dialect {
        Dialect {
            version,
            endian: Endian::Little,
            charset: &charset::CP1252,
            knows_utf8: false,
            takes: Takes::ALL,
            is_ct_library: false,
            text_size: DEFAULT_TEXT_SIZE,
        }
    }

    pub fn is_tds7(&self) -> bool {
        self.version >= Version::Tds71
    }

    /// The rules of the client's T-SQL.
    pub fn of_texts(&self) -> &'static tsql::Dialect {
        if self.is_tds7() {
            &tsql::SQL_SERVER
        } else {
            &tsql::ASE
        }
    }
}
