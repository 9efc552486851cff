//! Columns of samples as lines, one sample each: text by a template (`lines`), PostgreSQL's rows (`rows`), and the
//! Archiver Appliance's events in Protocol Buffers (`events`); `pb` decodes these from its files. The columns (`column`) are Arrow's, borrowed.
//! Independent of Python.

pub mod column;
pub mod events;
mod fields;
pub mod lines;
pub mod pb;
pub mod rows;
mod texts;
mod times;
