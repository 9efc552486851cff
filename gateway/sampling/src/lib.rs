//! The readings of a table's columns, and the rows made from them by the table's sampling policy (`cells`); EPICS
//! Channel Access as a source of readings (`channel_access`), by EPICS's own library (`libca`); events of other
//! monitors of it (`monitors`). Independent of Python.

pub mod cells;
pub mod channel_access;
#[allow(unsafe_code)]
mod libca;
pub mod monitors;
pub mod reading;
