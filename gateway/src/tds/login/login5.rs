//! The login record of Sybase TDS 5.0: fields of fixed width, each followed by its length, then the
//! capability token. Layout: FreeTDS src/tds/login.c (tds_send_login), SAP/go-dblib tds/loginConfig.go.

use super::{Login, Password, PasswordEncryption, Request};
use crate::tds::charset::{self, Charset};
use crate::tds::dialect::{Dialect, Endian, Takes, Version};
use crate::tds::wire::{Put, Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

const NAME: usize = 30;
/// The offset of the byte order of two-byte integers: after four names and their lengths.
const BYTE_ORDER: usize = 4 * (NAME + 1);
const INT2_BIG: u8 = 2;
const CAPABILITY: u8 = 0xE2;
/// Bits of the last login flag: the password is not in clear text; it may be sent by RSA with a nonce.
const ENCRYPTED_PASSWORD: u8 = 0x01 | 0x20 | 0x80;
const ENCRYPTED_WITH_NONCE: u8 = 0x80;
/// Request capability of clients that can encrypt commands, and their passwords in the way of the newest ASE
/// (SAP/go-dblib tds/packageCapability.go, TDS_REQ_COMMAND_ENCRYPTION).
const COMMAND_ENCRYPTION: usize = 106;

/// The capabilities of FreeTDS, the most common client: requests and responses.
const OF_FREETDS: [u8; 32] = *b"\x01\x0e\x00\x00\x60\x08\x81\x81\xe8\x0f\x6d\x7f\xff\xff\xff\xfe\
    \x02\x0e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x68\x00\x00\x00";

/// The record of a client, in its byte order, with the password in clear text.
pub fn encode(login: &Request<'_>, endian: Endian) -> Result<BytesMut> {
    let Request { user, password, host, application, server, charset, packet_size, .. } = login;
    let password = password.0.as_str();
    let too_long =
        |what: &str, most: usize| WireError::Malformed(format!("the {what} is longer than {most} bytes"));
    if user.len() > NAME {
        return Err(too_long("user name", NAME));
    }
    let length = u8::try_from(password.len()).ok().filter(|length| *length < 254);
    let length = length.ok_or_else(|| too_long("password", 253))?;
    let remote = [&[0, length][..], password.as_bytes()].concat();
    let mut record = BytesMut::new();
    for text in [*host, *user, password, ""] {
        put_field(&mut record, text.as_bytes(), NAME);
    }
    record.put_slice(match endian {
        Endian::Little => &[3, 1, 6, 10, 9],
        Endian::Big => &[2, 0, 6, 4, 8],
    });
    // the server must report a change of the database
    record.put_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for text in [application, server] {
        put_field(&mut record, text.as_bytes(), NAME);
    }
    put_field(&mut record, &remote, 255);
    record.put_slice(&[5, 0, 0, 0]);
    put_field(&mut record, b"ringlog", 10);
    record.put_slice(&[5, 0, 0, 0, 0, 13, 17]);
    put_field(&mut record, b"us_english", NAME);
    record.put_slice(&[0; 14]);
    put_field(&mut record, charset.as_bytes(), NAME);
    record.put_u8(1);
    put_field(&mut record, packet_size.to_string().as_bytes(), 6);
    record.put_slice(&[0; 4]);
    record.put_u8(CAPABILITY);
    record.put_u16_as(OF_FREETDS.len() as u16, endian);
    record.put_slice(&OF_FREETDS);
    Ok(record)
}

/// A field of fixed width and its length; a longer text is truncated.
fn put_field(record: &mut BytesMut, text: &[u8], width: usize) {
    let text = text.get(..width).unwrap_or(text);
    record.put_slice(text);
    record.put_bytes(0, width - text.len());
    record.put_u8(text.len() as u8);
}

pub fn decode(message: &[u8]) -> Result<Login> {
    // integers inside the record are single bytes; the client's byte order is one of its fields
    let mut reader = Reader::new(message, Endian::Big);
    let host = field(&mut reader, NAME, "host name")?;
    let user = field(&mut reader, NAME, "user name")?;
    let short_password = field(&mut reader, NAME, "password")?;
    field(&mut reader, NAME, "host process")?;
    let int2 = reader.u8("byte order")?;
    let int4 = reader.u8("byte order")?;
    reader.u8("character type")?;
    let float8 = reader.u8("float format")?;
    reader.take(2, "date format and use-database flag")?;
    reader.take(1 + 2 + 4 + 3, "bulk copy flag, interface, buffer size, spare")?;
    let application = field(&mut reader, NAME, "application name")?;
    field(&mut reader, NAME, "server name")?;
    let remote = field(&mut reader, 255, "remote password")?;
    let version: [u8; 4] = reader.array("TDS version")?;
    let is_ct_library = field(&mut reader, 10, "library name")? == b"CT-Library";
    reader.take(4 + 3, "library version, float and date format")?;
    let language = field(&mut reader, NAME, "language")?;
    reader.take(1 + 2, "language flag, old security")?;
    let security = reader.u8("security flags")?;
    reader.take(10, "bulk security, high availability, spare")?;
    let charset = text(field(&mut reader, NAME, "character set")?, &charset::CP1252, "character set")?;
    reader.u8("character set flag")?;
    let packet_size = text(field(&mut reader, 6, "packet size")?, &charset::CP1252, "packet size")?;

    if version[0] != 5 {
        return Err(WireError::Malformed(format!(
            "TDS version {}.{} is not served: use 5.0 or 7.1 to 7.4",
            version[0], version[1]
        )));
    }
    let endian = match (int2, int4) {
        (3, 1) => Endian::Little,
        (INT2_BIG, 0) => Endian::Big,
        _ => {
            return Err(WireError::Malformed(format!(
                "byte order ({int2}, {int4}) in the login record is unknown"
            )))
        }
    };
    // 4 and 10 are IEEE 754, high and low byte first; no current client uses the VAX and ND5000 formats
    if !matches!(float8, 4 | 10) {
        return Err(WireError::Malformed(format!(
            "float format {float8} in the login record is not IEEE 754"
        )));
    }
    let is_encrypted = security & ENCRYPTED_PASSWORD != 0 && short_password.is_empty();
    if is_encrypted && security & ENCRYPTED_WITH_NONCE == 0 {
        return Err(WireError::Malformed(
            "passwords encrypted without a nonce are not served: let the client use RSA with a nonce, or none"
                .into(),
        ));
    }
    // no name: the client takes the server's, which is UTF-8
    let encoding = match charset.as_str() {
        "" => &charset::UTF_8,
        name => Charset::named(name).ok_or_else(|| unknown(name))?,
    };
    let capabilities = capabilities(&mut reader, endian)?;
    let takes = takes(&capabilities);
    let dialect = Dialect { endian, charset: encoding, takes, is_ct_library, ..Dialect::new(Version::Tds50) };
    let password = if short_password.len() == NAME {
        long_password(remote).unwrap_or(short_password)
    } else {
        short_password
    };
    let packet_size =
        match packet_size.trim() {
            "" => None,
            digits => Some(digits.parse().map_err(|_| {
                WireError::Malformed("packet size in the login record is not a number".into())
            })?),
        };
    Ok(Login {
        reads_only: false,
        dialect,
        user: text(user, encoding, "user name")?,
        password: Password(text(password, encoding, "password")?),
        password_encryption: is_encrypted.then_some(if has_type(&capabilities, COMMAND_ENCRYPTION) {
            PasswordEncryption::OnDemand
        } else {
            PasswordEncryption::Nonce
        }),
        host: text(host, encoding, "host name")?,
        application: text(application, encoding, "application name")?,
        database: String::new(),
        language: text(language, encoding, "language")?,
        is_odbc: false,
        packet_size,
        version: [5, 0, 0, 0],
        charset,
        capabilities,
    })
}

/// The dialect of the refusal to a client whose record cannot be read: in its byte order, if the record has one.
pub fn dialect_of_refusal(message: &[u8]) -> Dialect {
    let endian = if message.get(BYTE_ORDER) == Some(&INT2_BIG) { Endian::Big } else { Endian::Little };
    Dialect { endian, charset: &charset::UTF_8, ..Dialect::new(Version::Tds50) }
}

fn field<'a>(reader: &mut Reader<'a>, width: usize, what: &'static str) -> Result<&'a [u8]> {
    let bytes = reader.take(width, what)?;
    let length = usize::from(reader.u8(what)?);
    bytes.get(..length).ok_or_else(|| {
        WireError::Malformed(format!("{what} in the login record has length {length} of at most {width}"))
    })
}

fn text(bytes: &[u8], charset: &Charset, what: &str) -> Result<String> {
    charset.decode(bytes).map(String::from).ok_or_else(|| {
        WireError::Malformed(format!("{what} in the login record is not valid {}", charset.name()))
    })
}

/// The remote password field contains a whole password of more than 30 bytes, as (length 0 for the server's name,
/// length, bytes).
fn long_password(remote: &[u8]) -> Option<&[u8]> {
    let (&[0, length], rest) = remote.split_first_chunk::<2>()? else { return None };
    rest.get(..usize::from(length))
}

fn unknown(name: &str) -> WireError {
    WireError::Malformed(format!(
        "character set '{name}' is not served: use utf8, iso_1, cp850, sjis or eucjis"
    ))
}

/// The capability token's body, empty if the client sends none.
fn capabilities(reader: &mut Reader<'_>, endian: Endian) -> Result<Vec<u8>> {
    // four bytes of padding, which some clients truncate
    let padding = reader.remaining().min(4);
    reader.take(padding, "login padding")?;
    if reader.peek() != Some(CAPABILITY) {
        return Ok(Vec::new());
    }
    reader.u8("capability token")?;
    let raw: [u8; 2] = reader.array("capability length")?;
    let length = match endian {
        Endian::Little => u16::from_le_bytes(raw),
        Endian::Big => u16::from_be_bytes(raw),
    };
    Ok(reader.take(usize::from(length), "capabilities")?.to_vec())
}

/// The types that the client supports and has not excluded (FreeTDS include/freetds/enum_cap.h, TDS_REQ_DATA_… and
/// TDS_RES_DATA_NO…).
fn takes(capabilities: &[u8]) -> Takes {
    let takes = |known: usize, spared: usize| {
        has_type(capabilities, known) && !mask(capabilities, 2).is_some_and(|mask| has(mask, spared))
    };
    /// The newest types have no bit by which a client excludes them.
    const NONE: usize = usize::MAX;
    Takes {
        int8: takes(51, 35),
        date: takes(71, 51),
        time: takes(72, 52),
        big_datetime: takes(93, NONE),
        big_time: takes(94, NONE),
        long: takes(28, 22) && takes(29, 23),
        wide_tables: takes(59, 45),
    }
}

/// Whether capability `bit` is set in the mask of kind 1 (requests): bit n of a mask counts from its last byte.
pub fn has_type(capabilities: &[u8], bit: usize) -> bool {
    mask(capabilities, 1).is_some_and(|mask| has(mask, bit))
}

fn has(mask: &[u8], bit: usize) -> bool {
    let byte = mask.len().checked_sub(1 + bit / 8).and_then(|at| mask.get(at));
    byte.is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
}

/// The bits of one kind (1 requests, 2 responses) in a capability token's body.
pub fn mask(capabilities: &[u8], kind: u8) -> Option<&[u8]> {
    let mut rest = capabilities;
    while let Some((&[found, length], tail)) = rest.split_first_chunk::<2>() {
        let (bits, next) = tail.split_at_checked(usize::from(length))?;
        if found == kind {
            return Some(bits);
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(user: &str, password: &str, charset: &str, endian: Endian) -> Vec<u8> {
        let password = &Password(password.into());
        let login = Request {
            user,
            password,
            host: "host",
            application: "program",
            server: "server",
            database: "",
            packet_size: 2048,
            charset,
        };
        encode(&login, endian).unwrap().to_vec()
    }

    #[test]
    fn reads_user_password_and_byte_order() {
        for endian in [Endian::Little, Endian::Big] {
            let login = decode(&record("daq", "secret", "iso_1", endian)).unwrap();
            assert_eq!((login.user.as_str(), login.password.0.as_str()), ("daq", "secret"));
            assert_eq!((login.dialect.version, login.dialect.endian), (Version::Tds50, endian));
            assert_eq!((login.packet_size, login.charset.as_str()), (Some(2048), "iso_1"));
            assert_eq!(login.dialect.charset.name(), "iso_1");
            assert_eq!(login.dialect.takes, Takes { wide_tables: true, ..Takes::ALL });
            assert!(!format!("{login:?}").contains("secret"));
        }
    }

    #[test]
    fn what_a_client_takes_is_what_it_knows_and_wants() {
        let bits = |bits: &[usize]| {
            let mut mask = [0; 14];
            for bit in bits {
                mask[13 - bit / 8] |= 1u8 << (bit % 8);
            }
            mask
        };
        let of = |known: &[usize], spared: &[usize]| {
            takes(&[&[1, 14][..], &bits(known), &[2, 14], &bits(spared)].concat())
        };
        assert_eq!(of(&[51, 71], &[]), Takes { int8: true, date: true, ..Takes::NONE });
        assert_eq!(
            of(&[28, 29, 51, 71, 72, 93, 94], &[35, 51]),
            Takes { int8: false, date: false, ..Takes::ALL }
        );
        assert!(of(&[59], &[]).wide_tables && !of(&[59], &[45]).wide_tables);
        assert_eq!(takes(&[]), Takes::NONE);
    }

    #[test]
    fn a_long_password_stands_in_the_remote_field() {
        let password = "a password of more than thirty bytes";
        let login = decode(&record("daq", password, "", Endian::Little)).unwrap();
        assert_eq!(login.password.0, password);
        assert_eq!(login.dialect.charset.name(), "utf8");
    }

    #[test]
    fn what_is_not_served_is_named() {
        let whole = record("daq", "secret", "klingon", Endian::Little);
        assert!(decode(&whole).unwrap_err().to_string().contains("'klingon'"));
        let changed = |at: usize, byte: u8| {
            let mut record = record("daq", "secret", "utf8", Endian::Little);
            record[at] = byte;
            decode(&record).unwrap_err().to_string()
        };
        assert!(changed(BYTE_ORDER, 9).contains("byte order (9, 1)"));
        assert!(changed(BYTE_ORDER + 3, 7).contains("float format 7"));
        assert!(changed(NAME, 31).contains("host name in the login record has length 31"));
        assert_eq!(decode(&whole[..300]).unwrap_err(), WireError::Truncated("remote password"));
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(
            changes in proptest::collection::vec((0usize..700, any::<u8>()), 0..6),
            length in 0usize..700,
            big in any::<bool>(),
        ) {
            let endian = if big { Endian::Big } else { Endian::Little };
            let mut bytes = record("daq", "secret", "utf8", endian);
            for (at, byte) in changes {
                if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
            }
            bytes.truncate(length);
            let _ = decode(&bytes);
            let _ = dialect_of_refusal(&bytes);
        }
    }
}
