//! Encrypted passwords of TDS 5.0: the server sends a public key and a nonce, the client returns the nonce and the
//! password, encrypted (FreeTDS src/tds/sec_negotiate.c; SAP/go-dblib tds/login.go).

use super::PasswordEncryption;
use crate::tds::call::decode_arguments;
use crate::tds::dialect::{Dialect, Endian};
use crate::tds::tokens::returns::{PARAMFMT, PARAMS};
use crate::tds::tokens::text::put_token;
use crate::tds::types::Value;
use crate::tds::wire::{Put, Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

const MSG: u8 = 0x65;
const HAS_ARGUMENTS: u8 = 1;
/// TDS_MSG_SEC_LOGPWD3
const PASSWORD: u16 = 31;
const INT4: u8 = 0x38;
const LONGBINARY: u8 = 0xE1;
/// The only cipher suite: RSA.
const RSA: u32 = 1;

impl PasswordEncryption {
    /// TDS_MSG_SEC_ENCRYPT3 and 4.
    fn message(self) -> u16 {
        match self {
            PasswordEncryption::Nonce => 30,
            PasswordEncryption::OnDemand => 35,
        }
    }
}

/// Appends the key and the nonce for the client's password, after a LOGINACK with status Negotiate.
pub fn put_challenge(
    out: &mut BytesMut,
    encryption: PasswordEncryption,
    public_key: &[u8],
    nonce: &[u8],
    dialect: &Dialect,
) {
    out.put_u8(MSG);
    out.put_u8(3);
    out.put_u8(HAS_ARGUMENTS);
    out.put_u16_as(encryption.message(), dialect.endian);
    let _ = put_token(out, PARAMFMT, dialect, |out| {
        out.put_u16_as(3, dialect.endian);
        // no name, no status, no user type; no locale
        out.put_slice(&[0; 6]);
        out.put_u8(INT4);
        out.put_u8(0);
        for bytes in [public_key, nonce] {
            out.put_slice(&[0; 6]);
            out.put_u8(LONGBINARY);
            // FreeTDS uses the size of the type as the length of the value
            out.put_u32_as(bytes.len() as u32, dialect.endian);
            out.put_u8(0);
        }
    });
    out.put_u8(PARAMS);
    out.put_u32_as(RSA, dialect.endian);
    for bytes in [public_key, nonce] {
        out.put_u32_as(bytes.len() as u32, dialect.endian);
        out.put_slice(bytes);
    }
}

/// The encrypted password in the client's answer; other messages in it (passwords for other servers, a key for
/// commands) are ignored.
pub fn decode_response(message: &[u8], dialect: &Dialect) -> Result<Vec<u8>> {
    let mut reader = Reader::new(message, if dialect.is_tds7() { Endian::Little } else { dialect.endian });
    let mut password = None;
    while !reader.is_empty() {
        if reader.u8("message token")? != MSG {
            return Err(WireError::Malformed("an encrypted password was expected".into()));
        }
        let length = usize::from(reader.u8("message length")?);
        let mut body = Reader::new(reader.take(length, "message")?, reader.endian());
        let status = body.u8("message status")?;
        let number = body.u16("message number")?;
        if status & HAS_ARGUMENTS == 0 {
            continue;
        }
        let arguments = decode_arguments(&mut reader, dialect)?;
        if number == PASSWORD {
            let value = arguments.first().and_then(|argument| argument.value(dialect).ok());
            if let Some(Value::Binary(bytes)) = value {
                password = Some(bytes.into_owned());
            }
        }
    }
    password.ok_or_else(|| WireError::Malformed("an encrypted password was expected".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;
    use proptest::prelude::*;

    fn five(endian: Endian) -> Dialect {
        Dialect { endian, ..Dialect::new(Version::Tds50) }
    }

    /// In FreeTDS's layout, with a password of three bytes.
    const RESPONSE: &[u8] = b"\x65\x03\x01\x1f\x00\
        \xec\x0e\x00\x01\x00\x00\x00\x00\x00\x00\x00\xe1\xff\xff\xff\x7f\x00\xd7\x03\x00\x00\x00abc\
        \x65\x03\x01\x20\x00\
        \xec\x17\x00\x02\x00\x00\x00\x00\x00\x00\x00\x27\xff\x00\x00\x00\x00\x00\x00\x00\xe1\xff\xff\xff\x7f\x00\
        \xd7\x00\x03\x00\x00\x00abc";

    #[test]
    fn the_password_of_a_response() {
        assert_eq!(decode_response(RESPONSE, &five(Endian::Little)), Ok(b"abc".to_vec()));
        assert!(decode_response(&[], &five(Endian::Little)).is_err());
        assert!(decode_response(&RESPONSE[36..], &five(Endian::Little)).is_err());
    }

    #[test]
    fn a_challenge_in_either_byte_order() {
        for endian in [Endian::Little, Endian::Big] {
            let mut out = BytesMut::new();
            put_challenge(&mut out, PasswordEncryption::Nonce, b"key", b"nonce", &five(endian));
            let mut reader = Reader::new(&out[3..], endian);
            assert_eq!(reader.u16("number"), Ok(30));
            let arguments = decode_arguments(&mut reader, &five(endian)).unwrap();
            let values: Vec<_> = arguments.iter().map(|a| a.value(&five(endian)).unwrap()).collect();
            assert_eq!(values[0], Value::Int(1));
            assert_eq!(values[2], Value::Binary(b"nonce"[..].into()));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_response(&bytes, &five(Endian::Little));
            let _ = decode_response(&[&RESPONSE[..5], &bytes].concat(), &five(Endian::Little));
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0usize..80, byte: u8) {
            let mut bytes = RESPONSE.to_vec();
            if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
            let _ = decode_response(&bytes, &five(Endian::Little));
        }
    }
}
