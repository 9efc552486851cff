//! DONE, DONEPROC, DONEINPROC: the end of a statement, a procedure, a statement in a procedure.
//! MS-TDS 2.2.7.6–8; at 5.0 the field after the status is the transaction state.

use crate::tds::dialect::{Dialect, Endian, Version};
use crate::tds::wire::Put;
use bytes::{BufMut, BytesMut};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Statement,
    Procedure,
    InProcedure,
}

pub const MORE: u16 = 0x0001;
pub const ERROR: u16 = 0x0002;
pub const IN_TRANSACTION: u16 = 0x0004;
pub const COUNT: u16 = 0x0010;
/// Acknowledges a cancel.
pub const ATTENTION: u16 = 0x0020;

/// Bytes of the token.
pub fn length(dialect: &Dialect) -> usize {
    if dialect.version >= Version::Tds72 {
        13
    } else {
        9
    }
}

/// Says of the token that `out` ends with that nothing follows it.
pub fn make_last(out: &mut BytesMut, dialect: &Dialect) {
    let at = out.len() - length(dialect) + 1;
    if let Some(status) = out.get_mut(at..at + 2) {
        let low = match dialect.endian {
            Endian::Little => 0,
            Endian::Big => 1,
        };
        status[low] &= !(MORE as u8);
    }
}

/// `count` of rows is told when it is Some.
pub fn put(out: &mut BytesMut, done: Done, status: u16, count: Option<u64>, dialect: &Dialect) {
    out.put_u8(match done {
        Done::Statement => 0xFD,
        Done::Procedure => 0xFE,
        Done::InProcedure => 0xFF,
    });
    let status = if count.is_some() { status | COUNT } else { status };
    out.put_u16_as(status, dialect.endian);
    // 7.x: the kind of statement, which no client needs; 5.0: the transaction's state, 0 none and 2 in
    // progress (FreeTDS include/freetds/proto.h, TDS_DONE_TRAN_PROGRESS)
    let in_transaction = !dialect.is_tds7() && status & IN_TRANSACTION != 0;
    let state = if in_transaction { 2 } else { 0 };
    out.put_u16_as(state, dialect.endian);
    let count = count.unwrap_or(0);
    if dialect.version >= Version::Tds72 {
        out.put_u64_as(count, dialect.endian);
    } else {
        out.put_u32_as(u32::try_from(count).unwrap_or(u32::MAX), dialect.endian);
    }
}
