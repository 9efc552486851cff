//! ENVCHANGE: a change of the session's environment by the server. MS-TDS 2.2.7.9.

use super::text::{put_short, put_token, take_short, take_token};
use crate::tds::dialect::Dialect;
use crate::tds::wire::{Reader, Result};
use bytes::{BufMut, BytesMut};

pub const TOKEN: u8 = 0xE3;

/// A change whose values are texts.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    Database = 1,
    Language = 2,
    Charset = 3,
    PacketSize = 4,
}

pub fn put_text(out: &mut BytesMut, change: Text, new: &str, old: &str, dialect: &Dialect) {
    let _ = put_token(out, TOKEN, dialect, |out| {
        out.put_u8(change as u8);
        put_short(out, new, dialect);
        put_short(out, old, dialect);
    });
}

/// Reads the body of the token: the new packet size or character set, if one of them changes.
pub fn decode(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Option<(Text, String)>> {
    let mut body = take_token(reader, "ENVCHANGE")?;
    let change = match body.u8("ENVCHANGE type")? {
        3 => Text::Charset,
        4 => Text::PacketSize,
        _ => return Ok(None),
    };
    Ok(Some((change, take_short(&mut body, "ENVCHANGE", dialect)?)))
}

/// The collation of single-byte data, 7.1 and later.
pub fn put_collation(out: &mut BytesMut, collation: [u8; 5], dialect: &Dialect) {
    let _ = put_token(out, TOKEN, dialect, |out| {
        out.put_u8(7);
        out.put_u8(5);
        out.put_slice(&collation);
        out.put_u8(0);
    });
}

/// The effect of a transaction request, 7.2 and later.
#[derive(Clone, Copy, Debug)]
pub enum Transaction {
    Begun = 8,
    Committed = 9,
    RolledBack = 10,
}

/// `descriptor`: the number that the client repeats in its headers while the transaction is open.
pub fn put_transaction(out: &mut BytesMut, change: Transaction, descriptor: u64, dialect: &Dialect) {
    let bytes = descriptor.to_le_bytes();
    let (new, old): (&[u8], &[u8]) = match change {
        Transaction::Begun => (&bytes, &[]),
        Transaction::Committed | Transaction::RolledBack => (&[], &bytes),
    };
    let _ = put_token(out, TOKEN, dialect, |out| {
        out.put_u8(change as u8);
        out.put_u8(new.len() as u8);
        out.put_slice(new);
        out.put_u8(old.len() as u8);
        out.put_slice(old);
    });
}

/// The session was reset as requested in the packet header, 7.1 and later.
pub fn put_reset(out: &mut BytesMut, dialect: &Dialect) {
    let _ = put_token(out, TOKEN, dialect, |out| {
        out.put_u8(18);
        out.put_u8(0);
        out.put_u8(0);
    });
}
