//! The position of a server cursor, and the rows of a fetch (SQL Server: sp_cursorfetch; ODBC: SQLFetchScroll,
//! "Cursor Positioning Rules").

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    First,
    Next,
    Prior,
    /// Only rows before the current one.
    PriorUnadjusted,
    Last,
    /// Counted from the end if negative.
    Absolute(i64),
    Relative(i64),
    /// The same rows again.
    Refresh,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    #[default]
    BeforeFirst,
    /// On rows of the result; the first one's number is `first`, from 1.
    On {
        first: i64,
        rows: i64,
    },
    AfterLast,
}

/// The result of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub position: Position,
    /// The fetch would have begun before the first row, and begins there.
    pub adjusted: bool,
}

impl Position {
    /// The number of the first row: 0 before all rows, -1 after them.
    pub fn number(self) -> i64 {
        match self {
            Position::BeforeFirst => 0,
            Position::On { first, .. } => first,
            Position::AfterLast => -1,
        }
    }

    /// The rows and the new position of a fetch of at most `rows` rows in a result of `total` rows.
    pub fn after(self, fetch: Fetch, rows: i64, total: i64) -> Found {
        let last_block = total.saturating_sub(rows).saturating_add(1);
        // 0 and negative numbers: before the first row
        let first = match (fetch, self) {
            (Fetch::Refresh, position) => return Found { position, adjusted: false },
            (Fetch::First, _) if rows == 0 => 0,
            (Fetch::Last, _) if rows == 0 => total + 1,
            (Fetch::First, _) | (Fetch::Next, Position::BeforeFirst) => 1,
            (Fetch::Last, _) => return on(last_block.max(1), rows, total, false),
            (Fetch::Next, Position::AfterLast) => total + 1,
            (Fetch::Next, Position::On { first, rows }) => first + rows,
            (Fetch::Prior | Fetch::PriorUnadjusted, Position::BeforeFirst) => 0,
            (Fetch::Prior, Position::On { first: 1, .. }) => 0,
            (Fetch::Prior, Position::On { first, .. }) => {
                return on((first - rows).max(1), rows, total, first <= rows);
            }
            (Fetch::Prior | Fetch::PriorUnadjusted, Position::AfterLast) => {
                return on(last_block.max(1), rows, total, false);
            }
            (Fetch::PriorUnadjusted, Position::On { first, .. }) => {
                let begin = (first - rows).max(1);
                return on(begin, rows.min(first - begin), total, false);
            }
            (Fetch::Absolute(row), _) if row >= 0 => row,
            (Fetch::Absolute(row), _) => return from_end(row, rows, total),
            (Fetch::Relative(offset), Position::BeforeFirst) => offset,
            (Fetch::Relative(offset), Position::AfterLast) if offset < 0 => {
                return from_end(offset, rows, total);
            }
            (Fetch::Relative(_), Position::AfterLast) => total + 1,
            (Fetch::Relative(offset), Position::On { first, .. }) => {
                let begin = first.saturating_add(offset);
                let adjusted = begin < 1 && first > 1 && offset.saturating_neg() <= rows;
                return on(if adjusted { 1 } else { begin }, rows, total, adjusted);
            }
        };
        on(first, rows, total, false)
    }
}

fn from_end(row: i64, rows: i64, total: i64) -> Found {
    let begin = total.saturating_add(row).saturating_add(1);
    let adjusted = begin < 1 && row.saturating_neg() <= rows;
    on(if adjusted { 1 } else { begin }, rows, total, adjusted)
}

/// At most `rows` rows from number `first` on.
fn on(first: i64, rows: i64, total: i64, adjusted: bool) -> Found {
    let position = match first {
        _ if first < 1 => Position::BeforeFirst,
        _ if first > total => Position::AfterLast,
        _ if rows < 1 => Position::BeforeFirst,
        _ => Position::On { first, rows: rows.min(total - first + 1) },
    };
    Found { position, adjusted }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Position = Position::BeforeFirst;
    const AFTER: Position = Position::AfterLast;

    fn at(first: i64, rows: i64) -> Position {
        Position::On { first, rows }
    }

    fn after(from: Position, fetch: Fetch, rows: i64) -> (Position, bool) {
        let found = from.after(fetch, rows, 10);
        (found.position, found.adjusted)
    }

    /// The tables of ODBC's SQLFetchScroll, for a result of ten rows.
    #[test]
    fn rules_of_odbc() {
        use Fetch::*;
        for (from, fetch, rows, found) in [
            (BEFORE, Next, 3, at(1, 3)),
            (at(1, 3), Next, 3, at(4, 3)),
            (at(10, 1), Next, 3, AFTER),
            (at(8, 2), Next, 3, at(10, 1)),
            (AFTER, Next, 3, AFTER),
            (BEFORE, Prior, 3, BEFORE),
            (at(1, 3), Prior, 3, BEFORE),
            (at(7, 3), Prior, 3, at(4, 3)),
            (AFTER, Prior, 3, at(8, 3)),
            (AFTER, Prior, 30, at(1, 10)),
            (at(5, 1), Relative(2), 3, at(7, 3)),
            (at(5, 1), Relative(6), 3, AFTER),
            (at(5, 1), Relative(-5), 3, BEFORE),
            (at(1, 1), Relative(-1), 3, BEFORE),
            (BEFORE, Relative(2), 3, at(2, 3)),
            (BEFORE, Relative(-2), 3, BEFORE),
            (AFTER, Relative(-2), 3, at(9, 2)),
            (AFTER, Relative(2), 3, AFTER),
            (BEFORE, Absolute(-2), 3, at(9, 2)),
            (BEFORE, Absolute(-11), 3, BEFORE),
            (at(1, 1), Absolute(0), 3, BEFORE),
            (at(1, 1), Absolute(11), 3, AFTER),
            (at(1, 1), Absolute(i64::MAX), 3, AFTER),
            (at(1, 1), Absolute(i64::MIN), 3, BEFORE),
            (AFTER, First, 3, at(1, 3)),
            (BEFORE, Last, 3, at(8, 3)),
            (BEFORE, Last, 0, AFTER),
            (at(2, 2), First, 0, BEFORE),
            (at(2, 2), Refresh, 9, at(2, 2)),
        ] {
            assert_eq!(after(from, fetch, rows), (found, false), "{fetch:?} of {rows} from {from:?}");
        }
    }

    /// sp_cursorfetch, "Using PREV to change a cursor position" and "Using PREV_NOADJUST to return fewer rows".
    #[test]
    fn a_fetch_that_would_begin_before_the_first_row_begins_there() {
        assert_eq!(after(at(4, 1), Fetch::Prior, 5), (at(1, 5), true));
        assert_eq!(after(at(4, 1), Fetch::PriorUnadjusted, 5), (at(1, 3), false));
        assert_eq!(after(at(2, 1), Fetch::Relative(-3), 5), (at(1, 5), true));
        assert_eq!(after(AFTER, Fetch::Absolute(-12), 12), (at(1, 10), true));
    }

    #[test]
    fn an_empty_result_has_no_rows_anywhere() {
        for fetch in [Fetch::First, Fetch::Next, Fetch::Last, Fetch::Absolute(1)] {
            assert_eq!(BEFORE.after(fetch, 5, 0).position, AFTER, "{fetch:?}");
        }
        assert_eq!(AFTER.after(Fetch::Prior, 5, 0).position, AFTER);
    }
}
