//! The wire format of TDS 5.0 and 7.1–7.4. No I/O: bytes in, values out, and back.

pub mod dialect;
pub mod types;
pub mod wire;
