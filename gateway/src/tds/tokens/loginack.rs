//! LOGINACK and, at 5.0, CAPABILITY. MS-TDS 2.2.7.14; SAP/go-dblib tds/packageLoginAck.go, packageCapability.go.

use super::text::{put_short, put_token};
use crate::tds::login::Login;
use crate::tds::login5;
use bytes::{BufMut, BytesMut};

/// Product version told to 7.x clients, which decide by it what they may send: SQL Server 2014.
pub const VERSION_7: [u8; 4] = [12, 0, 0, 0];
/// Product version told to 5.0 clients: ASE 15.7.
pub const VERSION_5: [u8; 4] = [15, 7, 0, 0];

/// TDS 5.0 status of a login: succeeded, failed.
const SUCCEED: u8 = 5;
const FAIL: u8 = 6;

pub fn put(out: &mut BytesMut, login: &Login, succeeded: bool) {
    let dialect = &login.dialect;
    let _ = put_token(out, 0xAD, dialect, |out| {
        if dialect.is_tds7() {
            // the interface number of T-SQL
            out.put_u8(1);
            out.put_slice(&login.version);
            put_short(out, "Microsoft SQL Server", dialect);
            out.put_slice(&VERSION_7);
        } else {
            out.put_u8(if succeeded { SUCCEED } else { FAIL });
            out.put_slice(&login.version);
            // Sybase's word for a gateway that speaks its protocol; FreeTDS then sends no probes
            put_short(out, "OpenServer", dialect);
            out.put_slice(&VERSION_5);
        }
    });
}

/// Requests the gateway does not serve: events, bulk copy, cursors, messages, scrolling, Java objects,
/// DBRPC2 (numbers of SAP/go-dblib tds/packageCapability.go, TDS_REQ_*).
const NOT_SERVED: [usize; 22] =
    [3, 5, 6, 8, 33, 34, 35, 36, 37, 38, 41, 44, 54, 55, 57, 65, 74, 75, 76, 77, 78, 87];

/// The capabilities both sides share: what the client asked for less what is not served.
pub fn put_capabilities(out: &mut BytesMut, login: &Login) {
    let Some(requests) = login5::mask(&login.capabilities, 1) else { return };
    let responses = login5::mask(&login.capabilities, 2).unwrap_or(&[]);
    let mut shared = requests.to_vec();
    for bit in NOT_SERVED {
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
