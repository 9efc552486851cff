//! Dynamic statements of TDS 5.0: DYNAMIC and DYNAMIC2 (SAP/go-dblib tds/packageDynamic.go; FreeTDS
//! src/tds/query.c, tds_submit_prepare).

use super::call::{decode_arguments, Param};
use super::dialect::Dialect;
use super::tokens::text::put_token;
use super::wire::{Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

const DYNAMIC: u8 = 0xE7;
/// The token of SAP/go-dblib, and that of FreeTDS.
const DYNAMIC2: [u8; 2] = [0x62, 0xA3];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Prepare,
    Execute,
    Deallocate,
    /// Prepare and execute at once.
    Immediate,
    DescribeInput,
    DescribeOutput,
}

#[derive(Debug)]
pub struct Dynamic<'a> {
    pub operation: Operation,
    /// The statement's name, in the client's character set.
    pub id: &'a [u8],
    /// Its text, in the client's character set; empty if the operation has none.
    pub text: &'a [u8],
    pub params: Vec<Param<'a>>,
}

/// Reads a dynamic statement. None if another token follows.
pub fn decode<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Option<Dynamic<'a>>> {
    /// status bit: parameters follow
    const HAS_ARGUMENTS: u8 = 1;
    let wide = match reader.peek() {
        Some(DYNAMIC) => false,
        Some(token) if DYNAMIC2.contains(&token) => true,
        _ => return Ok(None),
    };
    reader.u8("dynamic statement")?;
    let length = if wide {
        reader.u32("dynamic statement length")? as usize
    } else {
        usize::from(reader.u16("dynamic statement length")?)
    };
    let mut body = Reader::new(reader.take(length, "dynamic statement")?, reader.endian());
    let operation = match body.u8("dynamic operation")? {
        0x01 => Operation::Prepare,
        0x02 => Operation::Execute,
        0x04 => Operation::Deallocate,
        0x08 => Operation::Immediate,
        0x40 => Operation::DescribeInput,
        0x80 => Operation::DescribeOutput,
        other => {
            return Err(WireError::Malformed(format!("dynamic operation 0x{other:02x} is not served")));
        }
    };
    let status = body.u8("dynamic status")?;
    let id_length = usize::from(body.u8("statement id")?);
    let id = body.take(id_length, "statement id")?;
    // operations without a text may omit its length
    let text_length = match wide {
        _ if body.is_empty() => 0,
        true => body.u32("statement text")? as usize,
        false => usize::from(body.u16("statement text")?),
    };
    let text = body.take(text_length, "statement text")?;
    let params = if status & HAS_ARGUMENTS == 0 { Vec::new() } else { decode_arguments(reader, dialect)? };
    Ok(Some(Dynamic { operation, id, text, params }))
}

/// The answer to a statement that was prepared or deallocated; `id` as the client sent it.
pub fn put_acknowledgement(out: &mut BytesMut, id: &[u8], dialect: &Dialect) {
    const ACKNOWLEDGE: u8 = 0x20;
    let _ = put_token(out, DYNAMIC, dialect, |out| {
        out.put_u8(ACKNOWLEDGE);
        out.put_u8(0);
        // an id has at most 255 bytes: its length was received in one byte
        out.put_u8(id.len() as u8);
        out.put_slice(id);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::{Endian, Version};
    use proptest::prelude::*;

    const FIVE: Dialect = Dialect {
        knows_utf8: false,
        version: Version::Tds50,
        endian: Endian::Little,
        charset: &crate::tds::charset::UTF_8,
        takes: crate::tds::dialect::Takes::ALL,
        is_ct_library: false,
        text_size: 32_768,
    };

    /// From FreeTDS 1.3.17, DBD::Sybase: prepare("select ?").
    const PREPARE: &[u8] = b"\xe7\x24\x00\x01\x00\x04DBD1\x1b\x00create proc DBD1 as select?";

    #[test]
    fn a_statement_is_prepared_and_executed() {
        let mut reader = Reader::new(PREPARE, Endian::Little);
        let prepare = decode(&mut reader, &FIVE).unwrap().unwrap();
        assert_eq!((prepare.operation, prepare.id), (Operation::Prepare, &b"DBD1"[..]));
        assert_eq!(prepare.text, b"create proc DBD1 as select?");
        let mut execute = b"\xe7\x09\x00\x02\x01\x04DBD1\x00\x00".to_vec();
        execute.extend(b"\xec\x0b\x00\x01\x00\x00\x00\x00\x00\x00\x00\x26\x04\x00\xd7\x04\x07\0\0\0");
        let mut reader = Reader::new(&execute, Endian::Little);
        let execute = decode(&mut reader, &FIVE).unwrap().unwrap();
        assert_eq!((execute.operation, execute.params.len()), (Operation::Execute, 1));
        assert!(reader.is_empty());
    }

    #[test]
    fn other_tokens_and_operations() {
        assert!(decode(&mut Reader::new(&[0x21], Endian::Little), &FIVE).unwrap().is_none());
        let cursor = b"\xe7\x03\x00\x10\x00\x00";
        assert!(decode(&mut Reader::new(cursor, Endian::Little), &FIVE).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), token in 0usize..3) {
            let token = [DYNAMIC, DYNAMIC2[0], DYNAMIC2[1]][token];
            let bytes = [&[token][..], &bytes].concat();
            let _ = decode(&mut Reader::new(&bytes, Endian::Big), &FIVE);
        }
    }
}
