//! DONE, DONEPROC, DONEINPROC: the end of a statement, of a procedure, of a statement in a procedure. MS-TDS 2.2.7.6–8;
//! at 5.0 the field after the status is the transaction state.

use crate::tds::dialect::{Dialect, Endian, Version};
use crate::tds::wire::{Put, Reader, Result, WireError};
use bitflags::bitflags;
use bytes::{BufMut, BytesMut};

/// The kind of a DONE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Statement = 0xFD,
    Procedure = 0xFE,
    InProcedure = 0xFF,
}

bitflags! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Status: u16 {
        const MORE = 0x0001;
        const ERROR = 0x0002;
        /// Read by clients of 5.0.
        const IN_TRANSACTION = 0x0004;
        const COUNT = 0x0010;
        /// Acknowledges a cancel.
        const ATTENTION = 0x0020;
        const _ = !0;
    }
}

/// The kind of statement that a DONE of 7.x ends: mssql-jdbc counts rows of some kinds only (its StreamDone).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Command {
    #[default]
    Other = 0,
    Select = 0xC1,
    SelectInto = 0xC2,
    Insert = 0xC3,
    Delete = 0xC4,
    Update = 0xC5,
    CreateTable = 0xC6,
    DropTable = 0xC7,
    Execute = 0xE0,
    BulkInsert = 0xF0,
    Merge = 0x117,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub scope: Scope,
    pub status: Status,
    /// [`Command`] at 7.x, the transaction's state at 5.0.
    pub command: u16,
    /// The number of rows, if there is one.
    pub count: Option<u64>,
}

impl Done {
    pub fn new(
        scope: Scope,
        status: Status,
        command: Command,
        count: Option<u64>,
        dialect: &Dialect,
    ) -> Done {
        // 5.0: 0 no transaction, 2 one in progress (FreeTDS include/freetds/proto.h, TDS_DONE_TRAN_PROGRESS)
        let command = match dialect.is_tds7() {
            true => command as u16,
            false if status.contains(Status::IN_TRANSACTION) => 2,
            false => 0,
        };
        Done { scope, status, command, count }
    }

    /// Bytes of the token.
    pub fn length(dialect: &Dialect) -> usize {
        if dialect.version >= Version::Tds72 {
            13
        } else {
            9
        }
    }

    pub fn encode(&self, out: &mut BytesMut, dialect: &Dialect) {
        out.put_u8(self.scope as u8);
        let status = if self.count.is_some() { self.status | Status::COUNT } else { self.status };
        out.put_u16_as(status.bits(), dialect.endian);
        out.put_u16_as(self.command, dialect.endian);
        let count = self.count.unwrap_or(0);
        if dialect.version >= Version::Tds72 {
            out.put_u64_as(count, dialect.endian);
        } else {
            out.put_u32_as(u32::try_from(count).unwrap_or(u32::MAX), dialect.endian);
        }
    }

    pub fn decode(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Done> {
        let scope = match reader.u8("DONE")? {
            0xFD => Scope::Statement,
            0xFE => Scope::Procedure,
            0xFF => Scope::InProcedure,
            other => return Err(WireError::Malformed(format!("token 0x{other:02x} where a DONE should be"))),
        };
        let status = Status::from_bits_retain(reader.u16("DONE status")?);
        let command = reader.u16("DONE command")?;
        let count = if dialect.version >= Version::Tds72 {
            reader.u64("DONE count")?
        } else {
            u64::from(reader.u32("DONE count")?)
        };
        let count = status.contains(Status::COUNT).then_some(count);
        Ok(Done { scope, status: status - Status::COUNT, command, count })
    }
}

/// Clears the MORE flag of the token at the end of `out`.
pub fn make_last(out: &mut BytesMut, dialect: &Dialect) {
    let at = out.len() - Done::length(dialect) + 1;
    if let Some(status) = out.get_mut(at..at + 2) {
        let low = match dialect.endian {
            Endian::Little => 0,
            Endian::Big => 1,
        };
        status[low] &= !(Status::MORE.bits() as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_done_is_read_as_it_was_written() {
        let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        for dialect in [Dialect::new(Version::Tds74), Dialect::new(Version::Tds71), big] {
            for count in [None, Some(0), Some(70_000)] {
                let status = Status::MORE | Status::IN_TRANSACTION;
                let done = Done::new(Scope::InProcedure, status, Command::Select, count, &dialect);
                let mut out = BytesMut::new();
                done.encode(&mut out, &dialect);
                assert_eq!(out.len(), Done::length(&dialect));
                let mut reader = Reader::new(&out, dialect.endian);
                assert_eq!(Done::decode(&mut reader, &dialect), Ok(done));
                make_last(&mut out, &dialect);
                let mut reader = Reader::new(&out, dialect.endian);
                let last = Done { status: Status::IN_TRANSACTION, ..done };
                assert_eq!(Done::decode(&mut reader, &dialect), Ok(last));
            }
        }
        // MS-TDS 4.2, the DONE of a login's answer
        let mut out = BytesMut::new();
        let dialect = Dialect::new(Version::Tds71);
        Done::new(Scope::Statement, Status::empty(), Command::Other, None, &dialect)
            .encode(&mut out, &dialect);
        assert_eq!(out[..], [0xFD, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
