//! The acknowledgement of a dynamic statement (SAP/go-dblib tds/packageDynamic.go).

use super::text::put_token;
use crate::tds::dialect::Dialect;
use bytes::{BufMut, BytesMut};

const ACKNOWLEDGE: u8 = 0x20;

/// `id` as the client sent it.
pub fn put_acknowledgement(out: &mut BytesMut, id: &[u8], dialect: &Dialect) {
    let _ = put_token(out, 0xE7, dialect, |out| {
        out.put_u8(ACKNOWLEDGE);
        out.put_u8(0);
        // an id is at most 255 bytes long: its length has come in one byte
        out.put_u8(id.len() as u8);
        out.put_slice(id);
    });
}
