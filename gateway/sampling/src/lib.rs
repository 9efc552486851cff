//! The readings of a table's columns, and the rows made from them by the table's sampling policy (`cells`); the state
//! of the signals that set them (`signals`); EPICS Channel Access as a source of readings (`channel_access`), by
//! EPICS's own library (`libca`). Independent of Python.

pub mod cells;
#[allow(unsafe_code)]
pub mod channel_access;
#[allow(unsafe_code)]
mod libca;
pub mod queue;
pub mod reading;
pub mod signals;
#[allow(unsafe_code)]
pub mod value;
