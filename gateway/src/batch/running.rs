//! The procedure whose statements run, and how deeply procedures and texts may nest.

use crate::tds::tokens::message::ServerMessage;

/// The nesting limit of texts and procedures, as in T-SQL.
pub const DEEPEST: u8 = 32;

/// A procedure that runs.
#[derive(Debug)]
pub struct Running {
    pub name: String,
    pub oid: u32,
    /// RETURN with a value.
    status: Option<i32>,
}

impl Running {
    pub fn new(name: String, oid: u32) -> Running {
        Running { name, oid, status: None }
    }

    pub fn returns(&mut self, status: i32) {
        self.status = Some(status);
    }

    /// The return status. Where the procedure gives none it is 0, or 10 less the severity of its worst error, from -1 to
    /// -14 (SQL Server 6.5, "Return Status Values"; ASE Reference Manual, "return").
    pub fn status(&self, worst: u8) -> i32 {
        match (self.status, worst) {
            (Some(status), _) => status,
            (None, 0) => 0,
            (None, worst) => 10 - i32::from(worst.min(24)),
        }
    }
}

/// 217: procedures and texts nest too deeply.
pub fn too_deep() -> ServerMessage {
    let text = "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).";
    ServerMessage::error(217, 16, text)
}
