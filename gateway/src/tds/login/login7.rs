//! LOGIN7, the login record of TDS 7.x. MS-TDS 2.2.6.4.

use super::{Login, Password, Request};
use crate::tds::dialect::{Dialect, Endian, Version};
use crate::tds::wire::{utf16_text, Put, Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

/// Values longer than this are not names or passwords (MS-TDS: 128 characters).
const LONGEST: usize = 128;
/// TypeFlags, fReadOnlyIntent.
const READS_ONLY: u8 = 0x20;
/// OptionFlags3, fExtension: features follow.
const HAS_EXTENSION: u8 = 0x10;

/// The dialect of the refusal to a client whose record cannot be read: 7.0 accepts 7.1's format, and from 7.2 on an
/// error's line has four bytes (MS-TDS 2.2.7.10).
pub fn dialect_of_refusal(message: &[u8]) -> Dialect {
    let is_older = matches!(message.get(7), Some(0x07 | 0x70 | 0x71));
    Dialect::new(if is_older { Version::Tds71 } else { Version::Tds74 })
}

/// The version of a version number (MS-TDS 2.2.7.14); None: not supported.
pub fn version_of(number: u32) -> Option<Version> {
    match number {
        0x0701_0000 | 0x7100_0000 | 0x7100_0001 => Some(Version::Tds71),
        0x7209_0000..=0x7209_FFFF => Some(Version::Tds72),
        0x730A_0000..=0x730B_FFFF => Some(Version::Tds73),
        // TDS 8.0 is 7.4 inside TLS (mssql-jdbc encrypt=strict)
        0x7400_0000..=0x74FF_FFFF | 0x0800_0000 => Some(Version::Tds74),
        _ => None,
    }
}

/// Features follow each other as number, length and data; the last is this byte.
const UTF8_SUPPORT: u8 = 0x0A;
const END_OF_FEATURES: u8 = 0xFF;

/// The record in FreeTDS's layout: 94 fixed bytes, then the texts; at 7.4 with the feature UTF-8, without which a server
/// refuses characters outside its code page.
pub fn encode(login: &Request<'_>, version: Version) -> Result<BytesMut> {
    const FIXED: usize = 94;
    /// The server changes to the database or refuses the login; the session's settings are those of ODBC.
    const FLAGS: [u8; 4] = [0xE0, 0x03, 0, 0];
    let has_features = version == Version::Tds74;
    let version: u32 = match version {
        Version::Tds50 | Version::Tds71 => 0x7100_0001,
        Version::Tds72 => 0x7209_0002,
        Version::Tds73 => 0x730B_0003,
        Version::Tds74 => 0x7400_0004,
    };
    let Request { user, password, host, application, server, database, .. } = login;
    let texts = [host, user, &password.0.as_str(), application, server, &"", &"ringlog", &"", database];
    let (mut record, mut tail) = (BytesMut::new(), BytesMut::new());
    record.put_u32_le(0);
    record.put_u32_le(version);
    record.put_u32_le(login.packet_size as u32);
    record.put_bytes(0, 12);
    record.put_slice(&FLAGS[..3]);
    record.put_u8(FLAGS[3] | if has_features { HAS_EXTENSION } else { 0 });
    record.put_bytes(0, 8);
    let mut extension = 0;
    for (index, text) in texts.into_iter().enumerate() {
        let at = tail.len();
        if index == EXTENSION && has_features {
            // the position of the features, behind all texts, is known at the end
            extension = FIXED + at;
            tail.put_u32_le(0);
            record.put_u16_le(extension as u16);
            record.put_u16_le(4);
            continue;
        }
        let units = tail.put_utf16(text);
        if units > LONGEST {
            return Err(WireError::Malformed(format!(
                "'{}' is longer than {LONGEST} characters",
                WHAT[index]
            )));
        }
        if index == PASSWORD {
            tail[at..].iter_mut().for_each(|byte| *byte = byte.rotate_left(4) ^ 0xA5);
        }
        record.put_u16_le((FIXED + at) as u16);
        record.put_u16_le(units as u16);
    }
    record.resize(FIXED, 0);
    record.extend_from_slice(&tail);
    if has_features {
        let features = (record.len() as u32).to_le_bytes();
        record[extension..extension + 4].copy_from_slice(&features);
        record.put_u8(UTF8_SUPPORT);
        record.put_u32_le(1);
        record.put_slice(&[1, END_OF_FEATURES]);
    }
    let length = (record.len() as u32).to_le_bytes();
    record[..4].copy_from_slice(&length);
    Ok(record)
}

/// The texts of a record in their order.
const WHAT: [&str; 9] =
    ["host", "user", "password", "application", "server", "extension", "library", "language", "database"];
const PASSWORD: usize = 2;
const EXTENSION: usize = 5;

pub fn decode(message: &[u8]) -> Result<Login> {
    let mut reader = Reader::new(message, Endian::Little);
    let length = reader.u32("LOGIN7 length")? as usize;
    if length > message.len() {
        return Err(WireError::Truncated("LOGIN7"));
    }
    let version = reader.u32("LOGIN7 version")?;
    let packet_size = reader.u32("LOGIN7 packet size")? as usize;
    reader.take(12, "LOGIN7 client version, process and connection")?;
    let flags1 = reader.u8("LOGIN7 flags")?;
    let flags2 = reader.u8("LOGIN7 flags")?;
    let type_flags = reader.u8("LOGIN7 type flags")?;
    let flags3 = reader.u8("LOGIN7 flags")?;
    reader.take(8, "LOGIN7 time zone and locale")?;
    // OptionFlags1: all clients send byte order x86, ASCII and IEEE 754
    if flags1 & 0x0F != 0 {
        return Err(WireError::Malformed(
            "LOGIN7 asks for a byte order or float format of no living client".into(),
        ));
    }
    let host = field(message, &mut reader, "host name")?;
    let user = field(message, &mut reader, "user name")?;
    let password = password(message, &mut reader)?;
    let application = field(message, &mut reader, "application name")?;
    field(message, &mut reader, "server name")?;
    let extension = usize::from(reader.u16("LOGIN7 extension")?);
    let has_extension = reader.u16("LOGIN7 extension")? != 0 && flags3 & HAS_EXTENSION != 0;
    field(message, &mut reader, "library name")?;
    let language = field(message, &mut reader, "language")?;
    let database = field(message, &mut reader, "database")?;
    if flags2 & 0x80 != 0 {
        return Err(WireError::Malformed(
            "integrated security is not served: log in with a user name and a password".into(),
        ));
    }
    let knows_utf8 = has_extension && asks_for_utf8(message, extension)?;
    let known = version_of(version).ok_or_else(|| {
        WireError::Malformed(format!("TDS version 0x{version:08x} is not served: use 7.1 to 7.4"))
    })?;
    Ok(Login {
        dialect: Dialect { knows_utf8: knows_utf8 && known >= Version::Tds74, ..Dialect::new(known) },
        user,
        password,
        password_encryption: None,
        host,
        application,
        database,
        language,
        is_odbc: flags2 & 0x02 != 0,
        reads_only: type_flags & READS_ONLY != 0,
        packet_size: (packet_size != 0).then_some(packet_size),
        version: version.to_be_bytes(),
        charset: String::new(),
        capabilities: Vec::new(),
    })
}

/// Whether the client requests the feature UTF-8. `at`: the position of the offset of its features.
fn asks_for_utf8(message: &[u8], at: usize) -> Result<bool> {
    let truncated = || WireError::Truncated("LOGIN7 features");
    let mut offset = Reader::new(message.get(at..).ok_or_else(truncated)?, Endian::Little);
    let features = offset.u32("LOGIN7 features")? as usize;
    let mut features = Reader::new(message.get(features..).ok_or_else(truncated)?, Endian::Little);
    loop {
        let feature = features.u8("LOGIN7 feature")?;
        if feature == END_OF_FEATURES {
            return Ok(false);
        }
        let length = features.u32("LOGIN7 feature")? as usize;
        let data = features.take(length, "LOGIN7 feature")?;
        if feature == UTF8_SUPPORT {
            return Ok(data.first() == Some(&1));
        }
    }
}

fn field_bytes<'a>(message: &'a [u8], reader: &mut Reader<'a>, what: &'static str) -> Result<&'a [u8]> {
    let offset = usize::from(reader.u16(what)?);
    let units = usize::from(reader.u16(what)?);
    if units > LONGEST {
        return Err(WireError::Malformed(format!("LOGIN7 {what} is longer than {LONGEST} characters")));
    }
    if units == 0 {
        return Ok(&[]);
    }
    message.get(offset..offset + units * 2).ok_or(WireError::Truncated(what))
}

fn field<'a>(message: &'a [u8], reader: &mut Reader<'a>, what: &'static str) -> Result<String> {
    utf16_text(field_bytes(message, reader, what)?)
        .ok_or_else(|| WireError::Malformed(format!("LOGIN7 {what} is not valid UTF-16")))
}

/// Each byte was sent with its halves swapped and then XORed with 0xA5.
fn password<'a>(message: &'a [u8], reader: &mut Reader<'a>) -> Result<Password> {
    let clear: Vec<u8> =
        field_bytes(message, reader, "password")?.iter().map(|byte| (byte ^ 0xA5).rotate_left(4)).collect();
    utf16_text(&clear)
        .map(Password)
        .ok_or_else(|| WireError::Malformed("LOGIN7 password is not valid UTF-16".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(user: &str, password: &str) -> Vec<u8> {
        let password = &Password(password.into());
        let login = Request {
            user,
            password,
            host: "host",
            application: "app",
            server: "server",
            database: "online",
            packet_size: 4096,
            charset: "",
        };
        encode(&login, Version::Tds74).unwrap().to_vec()
    }

    #[test]
    fn reads_user_password_and_version() {
        let login = decode(&record("daq", "pä55")).unwrap();
        assert_eq!((login.user.as_str(), login.password.0.as_str()), ("daq", "pä55"));
        assert_eq!((login.database.as_str(), login.dialect.version), ("online", Version::Tds74));
        assert_eq!(login.version, [0x74, 0, 0, 4]);
        assert!(!format!("{login:?}").contains("pä55"));
        assert!(login.dialect.knows_utf8);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0usize..150, byte in any::<u8>()) {
            let mut bytes = record("daq", "secret");
            if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
            let _ = decode(&bytes);
        }
    }
}
