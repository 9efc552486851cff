//! Columns of samples as lines, one sample each: text by a template (`lines`), PostgreSQL's rows (`rows`), and the
//! Archiver Appliance's events in Protocol Buffers (`events`); `pb` decodes these from its files. The columns (`column`) are Arrow's,
//! borrowed. For the loader: rows of CSV (`recording`), and rows of a spool (`spooled`).
//! Independent of Python.

pub mod column;
pub mod events;
mod fields;
pub mod lines;
pub mod pb;
pub mod recording;
pub mod rows;
pub mod spooled;
mod texts;
mod times;
