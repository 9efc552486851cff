//! Transaction manager requests of 7.2 and later (MS-TDS 2.2.6.9).

use super::wire::{Reader, Result, WireError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// With its isolation level, 0 for the current one.
    Begin(u8),
    Commit,
    Rollback,
    Save,
    /// Distributed transactions and other unsupported requests.
    Other(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRequest {
    pub operation: Operation,
    /// The name of the transaction or savepoint; "" for none.
    pub name: String,
    /// Commit and rollback: another transaction begins at once.
    pub begins_again: bool,
}

impl TransactionRequest {
    /// Reads the request after its headers.
    pub fn decode(reader: &mut Reader<'_>) -> Result<TransactionRequest> {
        const BEGINS_AGAIN: u8 = 1;
        let operation = match reader.u16("transaction request")? {
            5 => Operation::Begin(reader.u8("isolation level")?),
            7 => Operation::Commit,
            8 => Operation::Rollback,
            9 => Operation::Save,
            other => Operation::Other(other),
        };
        let length = usize::from(reader.u8("transaction name")?);
        if !length.is_multiple_of(2) {
            return Err(WireError::Malformed("a transaction name of an odd number of bytes".into()));
        }
        let name = reader.utf16(length / 2, "transaction name")?;
        let has_flags = matches!(operation, Operation::Commit | Operation::Rollback) && !reader.is_empty();
        let flags = if has_flags { reader.u8("transaction flags")? } else { 0 };
        Ok(TransactionRequest { operation, name, begins_again: flags & BEGINS_AGAIN != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Endian;

    fn decoded(bytes: &[u8]) -> Result<TransactionRequest> {
        TransactionRequest::decode(&mut Reader::new(bytes, Endian::Little))
    }

    #[test]
    fn names_and_flags() {
        let request = |operation, name: &str, begins_again| {
            Ok(TransactionRequest { operation, name: name.to_owned(), begins_again })
        };
        assert_eq!(decoded(b"\x05\0\x02\x02a\0"), request(Operation::Begin(2), "a", false));
        assert_eq!(decoded(b"\x07\0\0\x01\x02\0"), request(Operation::Commit, "", true));
        assert_eq!(decoded(b"\x08\0\0"), request(Operation::Rollback, "", false));
        assert_eq!(decoded(b"\x01\0\0"), request(Operation::Other(1), "", false));
        assert!(decoded(b"\x09\0\x01a").is_err() && decoded(b"\x05\0").is_err());
    }
}
