//! The tokens of a reply, one subject a file. Differences between the dialects are in the dialect value.

pub mod columns;
pub mod done;
pub mod envchange;
pub mod loginack;
pub mod message;
pub mod returns;
pub mod text;
