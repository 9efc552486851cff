//! The wire format of TDS 5.0 and 7.1–7.4. No I/O: bytes in, values out, and back.

pub mod bulk;
pub mod call;
pub mod charset;
pub mod cursor;
pub mod dialect;
pub mod dynamic;
pub mod layout;
pub mod login;
pub mod option;
pub mod packet;
pub mod request;
pub mod table_value;
pub mod tokens;
pub mod transaction;
pub mod types;
pub mod wire;
