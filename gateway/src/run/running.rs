//! The running procedure, and the nesting limit of procedures and texts.

use crate::interrupt::status_after;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::message::ServerMessage;

/// The nesting limit of texts and procedures (SQL Server: "@@NESTLEVEL"; ASE: "@@nestlevel").
pub fn deepest(dialect: &Dialect) -> u8 {
    if dialect.is_tds7() {
        32
    } else {
        16
    }
}

/// A running procedure.
#[derive(Debug)]
pub struct Running {
    pub name: String,
    pub oid: u32,
    /// The value of RETURN.
    status: Option<i32>,
}

impl Running {
    pub fn new(name: String, oid: u32) -> Running {
        Running { name, oid, status: None }
    }

    pub fn returns(&mut self, status: i32) {
        self.status = Some(status);
    }

    /// The return status. Without a RETURN it is 0, or follows from the worst error.
    pub fn status(&self, worst: u8) -> i32 {
        match (self.status, worst) {
            (Some(status), _) => status,
            (None, 0) => 0,
            (None, worst) => status_after(worst),
        }
    }
}

/// 217: procedures and texts nest too deeply.
pub fn too_deep(dialect: &Dialect) -> ServerMessage {
    let limit = deepest(dialect);
    let text = format!(
        "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit {limit})."
    );
    ServerMessage::error(217, 16, text)
}
