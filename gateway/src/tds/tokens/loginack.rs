//! LOGINACK and, at 5.0, CAPABILITY. MS-TDS 2.2.7.14; SAP/go-dblib tds/packageLoginAck.go, packageCapability.go.

use super::text::{put_short, put_token, take_token};
use crate::tds::dialect::Dialect;
use crate::tds::login::login5;
use crate::tds::login::Login;
use crate::tds::wire::{Reader, Result};
use bytes::{BufMut, BytesMut};
use std::ops::RangeInclusive;

/// Product version sent to 7.x clients, which use the features of this version: SQL Server 2014.
pub const VERSION_7: [u8; 4] = [12, 0, 0, 0];
/// Product version sent to 5.0 clients: ASE 15.7.
pub const VERSION_5: [u8; 4] = [15, 7, 0, 0];

pub const TOKEN: u8 = 0xAD;

/// The result of a login at TDS 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Succeeded = 5,
    Failed = 6,
    /// The password follows.
    Negotiate = 7,
}

pub fn put(out: &mut BytesMut, login: &Login, status: Status) {
    let dialect = &login.dialect;
    let _ = put_token(out, TOKEN, dialect, |out| {
        if dialect.is_tds7() {
            // the interface number of T-SQL
            out.put_u8(1);
            out.put_slice(&login.version);
            put_short(out, "Microsoft SQL Server", dialect);
            out.put_slice(&VERSION_7);
        } else {
            out.put_u8(status as u8);
            out.put_slice(&login.version);
            // Sybase's name of a gateway for its protocol, to which FreeTDS sends no probes
            put_short(out, "OpenServer", dialect);
            out.put_slice(&VERSION_5);
        }
    });
}

/// Reads the body of the token, which at 7.x is sent only after a successful login.
pub fn decode(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Status> {
    Ok(decode_with_version(reader, dialect)?.0)
}

/// The same, with the TDS version chosen by the server.
pub fn decode_with_version(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<(Status, u32)> {
    let mut body = take_token(reader, "LOGINACK")?;
    let status = match body.u8("login status")? {
        _ if dialect.is_tds7() => Status::Succeeded,
        5 => Status::Succeeded,
        7 => Status::Negotiate,
        _ => Status::Failed,
    };
    Ok((status, u32::from_be_bytes(body.array("TDS version")?)))
}

/// Requests that the gateway does not support (numbers of SAP/go-dblib tds/packageCapability.go, TDS_REQ_*).
const NOT_SERVED: [RangeInclusive<usize>; 16] = [
    // events, cursors
    3..=3,
    6..=6,
    // messages
    8..=8,
    // scrollable cursors
    33..=38,
    // logical connections, urgent events
    41..=41,
    44..=44,
    // nullable bits, which ASE lacks; if they were allowed, jTDS could not declare them
    50..=50,
    // rows of bulk copies in the layout of tables with row locks
    53..=53,
    // Java objects; 55 and 57 are texts and binaries of any length (BLOB)
    54..=54,
    // implicit cursors, other forms of unitext
    65..=70,
    // intervals, scrollable cursors
    73..=78,
    // XML, DBRPC2
    85..=85,
    87..=87,
    // migration, several requests at once, OPTIONCMD2
    89..=91,
    // batches of parameters, LOB locators; 95 is LOB parameters
    96..=101,
    // parameters without their format, encrypted commands
    103..=106,
];

/// The capabilities of both sides: the requested ones without the unsupported ones.
pub fn put_capabilities(out: &mut BytesMut, login: &Login) {
    let Some(requests) = login5::mask(&login.capabilities, 1) else { return };
    let responses = login5::mask(&login.capabilities, 2).unwrap_or(&[]);
    let mut shared = requests.to_vec();
    for bit in NOT_SERVED.into_iter().flatten() {
        if let Some(byte) = shared.len().checked_sub(1 + bit / 8).and_then(|at| shared.get_mut(at)) {
            *byte &= !(1 << (bit % 8));
        }
    }
    let _ = put_token(out, 0xE2, &login.dialect, |out| {
        for (kind, bits) in [(1, shared.as_slice()), (2, responses)] {
            out.put_u8(kind);
            out.put_u8(bits.len() as u8);
            out.put_slice(bits);
        }
    });
}
