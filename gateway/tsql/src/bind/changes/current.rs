//! `where current of`: changes of a cursor's current row. The row is found by its ctid and by the transaction that
//! wrote it, so a row that has changed since the cursor's query read it is not found.

use crate::error::Error;
use crate::postgres::Scalar;
use crate::resolve::names::identifier;
use crate::tree::{Access, CursorOption, DeclareCursor};

/// The columns that may be changed through a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// The cursor is read-only.
    None,
    Any,
    /// The columns of `for update of`, in SQL.
    These(Vec<String>),
}

/// The ctid and xmin of the row with this qualifier.
pub fn location_of(qualifier: &str) -> Scalar {
    let [location, writer] = ["ctid", "xmin"].map(|system| Scalar::of_row(qualifier, system).cast("text"));
    location.concatenated(Scalar::text(" ")).concatenated(writer)
}

impl Changes {
    /// SQL Server: "DECLARE CURSOR", `READ_ONLY`, `STATIC`, `FAST_FORWARD`.
    pub fn of(declare: &DeclareCursor) -> Result<Changes, Error> {
        use CursorOption::{FastForward, Insensitive, ReadOnly, Static};
        let reads = |option: &CursorOption| matches!(option, Static | Insensitive | FastForward | ReadOnly);
        if declare.options.iter().any(reads) {
            return Ok(Changes::None);
        }
        match &declare.access {
            Some(Access::ReadOnly) => Ok(Changes::None),
            Some(Access::Update(columns)) if !columns.is_empty() => {
                let line = declare.query.at.line;
                let columns = columns.iter().map(|column| identifier(&column.text, line));
                Ok(Changes::These(columns.collect::<Result<_, _>>()?))
            }
            _ => Ok(Changes::Any),
        }
    }

    /// Whether a change may set these columns; otherwise the number and the text of the error.
    pub fn allow(&self, columns: &[String]) -> Result<(), (i32, &'static str)> {
        match self {
            Changes::None => Err((16929, "The cursor is READ ONLY.")),
            Changes::These(these) if columns.iter().any(|column| !these.contains(column)) => Err((
                16932,
                "The cursor has a FOR UPDATE list and the requested column to be updated is not in this list.",
            )),
            _ => Ok(()),
        }
    }
}

pub(super) fn refuse_beside_current(assigns: bool, gives_rows: bool, line: u32) -> Result<(), Error> {
    match (assigns, gives_rows) {
        (false, false) => Ok(()),
        (true, _) => Err(Error::refused("set @variable beside current of", "fetch the value first", line)),
        (_, true) => Err(Error::refused("output beside current of", "fetch the values first", line)),
    }
}
