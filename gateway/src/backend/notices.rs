//! Notices by which procedures send more than messages (docs/developer.md).

use crate::postgres::Notice;

/// Names a cursor, whose rows are a result set; the detail may be a JSON list of names for its columns;
/// a name in brackets of its own is that of a table's column.
pub const RESULT_SET: &str = "01R01";
/// A number of rows.
const ROW_COUNT: &str = "01R02";
/// The error that a procedure leaves behind: @@error after its call.
const LEFT_ERROR: &str = "01R04";

/// The number of rows that a notice of a procedure has.
pub fn row_count_of(notice: &Notice) -> Option<u64> {
    (notice.sqlstate == ROW_COUNT).then(|| notice.message.parse().ok()).flatten()
}

/// The number of the error that a notice says a procedure leaves.
pub fn left_error_of(notice: &Notice) -> Option<i32> {
    (notice.sqlstate == LEFT_ERROR).then(|| notice.message.parse().ok()).flatten()
}
