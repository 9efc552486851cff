//! PRELOGIN: options exchanged before LOGIN7. MS-TDS 2.2.6.5.

use crate::tds::wire::{Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

/// The client's setting of encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// login only
    Off,
    On,
    NotSupported,
    Required,
}

impl Encryption {
    fn from_byte(byte: u8) -> Result<Encryption> {
        match byte & 0x0F {
            0 => Ok(Encryption::Off),
            1 => Ok(Encryption::On),
            2 => Ok(Encryption::NotSupported),
            // 4 is go-mssqldb's value for TLS already established before the login
            3 | 4 => Ok(Encryption::Required),
            other => Err(WireError::Malformed(format!("PRELOGIN encryption {other} is unknown"))),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Encryption::Off => 0,
            Encryption::On => 1,
            Encryption::NotSupported => 2,
            Encryption::Required => 3,
        }
    }
}

/// The part of the session that is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreed {
    Nothing,
    /// The login record alone.
    Login,
    Everything,
}

impl Encryption {
    /// The answer of a server that can encrypt, or requires it, to a client with this setting, and the resulting
    /// encryption. A client that does not accept the answer disconnects.
    pub fn answer(self, can: bool, demands: bool) -> (Encryption, Agreed) {
        match self {
            _ if !can => (Encryption::NotSupported, Agreed::Nothing),
            Encryption::On | Encryption::Required => (Encryption::On, Agreed::Everything),
            Encryption::Off if demands => (Encryption::Required, Agreed::Everything),
            Encryption::Off => (Encryption::Off, Agreed::Login),
            Encryption::NotSupported if demands => (Encryption::Required, Agreed::Nothing),
            Encryption::NotSupported => (Encryption::NotSupported, Agreed::Nothing),
        }
    }
}

const VERSION: u8 = 0;
const ENCRYPTION: u8 = 1;
const INSTANCE: u8 = 2;
const THREAD: u8 = 3;
const MARS: u8 = 4;
const END: u8 = 0xFF;

/// Decodes the other side's setting.
pub fn decode(message: &[u8]) -> Result<Encryption> {
    let mut reader = Reader::new(message, crate::tds::dialect::Endian::Big);
    let mut encryption = Encryption::NotSupported;
    loop {
        let token = reader.u8("PRELOGIN option")?;
        if token == END {
            return Ok(encryption);
        }
        let offset = usize::from(reader.u16("PRELOGIN offset")?);
        let length = usize::from(reader.u16("PRELOGIN length")?);
        let data = message.get(offset..offset + length).ok_or(WireError::Truncated("PRELOGIN option"))?;
        if token == ENCRYPTION {
            let byte = data.first().ok_or(WireError::Truncated("PRELOGIN encryption"))?;
            encryption = Encryption::from_byte(*byte)?;
        }
    }
}

/// The server's answer. The MARS option is required: without it FreeTDS falls back to TDS 7.1.
pub fn encode(encryption: Encryption, version: [u8; 4], out: &mut BytesMut) {
    put(encryption, version, &[], out);
}

/// A client's setting, without its thread id.
pub fn encode_client(encryption: Encryption, out: &mut BytesMut) {
    put(encryption, [0; 4], &[0; 4], out);
}

fn put(encryption: Encryption, version: [u8; 4], thread: &[u8], out: &mut BytesMut) {
    let options: [(u8, &[u8]); 5] = [
        (VERSION, &[version[0], version[1], version[2], version[3], 0, 0]),
        (ENCRYPTION, &[encryption.byte()]),
        (INSTANCE, &[0]),
        (THREAD, thread),
        (MARS, &[0]),
    ];
    let mut offset = options.len() * 5 + 1;
    for (token, data) in options {
        out.put_u8(token);
        out.put_u16(offset as u16);
        out.put_u16(data.len() as u16);
        offset += data.len();
    }
    out.put_u8(END);
    for (_, data) in options {
        out.put_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_answer_reads_back() {
        let mut out = BytesMut::new();
        encode(Encryption::NotSupported, [16, 0, 0, 0], &mut out);
        assert_eq!(decode(&out), Ok(Encryption::NotSupported));
    }

    /// MS-TDS 2.2.6.5, the table of client and server settings.
    #[test]
    fn what_comes_of_what_both_sides_say() {
        use Encryption::{NotSupported, Off, On, Required};
        for (asked, can, demands, answer, agreed) in [
            (Off, false, false, NotSupported, Agreed::Nothing),
            (On, false, false, NotSupported, Agreed::Nothing),
            (Off, true, false, Off, Agreed::Login),
            (On, true, false, On, Agreed::Everything),
            (Required, true, false, On, Agreed::Everything),
            (NotSupported, true, false, NotSupported, Agreed::Nothing),
            (Off, true, true, Required, Agreed::Everything),
            (On, true, true, On, Agreed::Everything),
            (NotSupported, true, true, Required, Agreed::Nothing),
        ] {
            assert_eq!(asked.answer(can, demands), (answer, agreed), "{asked:?}");
        }
    }

    #[test]
    fn an_offset_outside_the_message_is_refused() {
        assert_eq!(decode(&[1, 0, 200, 0, 1, 255]), Err(WireError::Truncated("PRELOGIN option")));
        assert_eq!(decode(&[]), Err(WireError::Truncated("PRELOGIN option")));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
        }
    }
}
