//! The tokens of a reply, one subject a file. What differs between the dialects is in the dialect value.

pub mod columns;
pub mod done;
pub mod envchange;
pub mod loginack;
pub mod message;
pub mod returns;
pub mod text;
