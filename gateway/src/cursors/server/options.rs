//! The options that a client requests for a server cursor, and those granted (SQL Server: sp_cursoropen).

use crate::tds::tokens::message::ServerMessage;

const KEYSET: i64 = 0x01;
const DYNAMIC: i64 = 0x02;
const FORWARD_ONLY: i64 = 0x04;
const STATIC: i64 = 0x08;
const FAST_FORWARD: i64 = 0x10;
/// Declarations and values of parameters follow.
pub const PARAMETERIZED: i64 = 0x1000;
const AUTO_FETCH: i64 = 0x2000;
const AUTO_CLOSE: i64 = 0x4000;
/// Only the kinds given by the bits 16 higher are acceptable.
const CHECK_ACCEPTED: i64 = 0x8000;

const READ_ONLY: i64 = 0x01;
const SCROLL_LOCKS: i64 = 0x02;
const OPTIMISTIC: i64 = 0x04;
const OPTIMISTIC_VALUES: i64 = 0x08;
/// A text that cannot be a cursor may be run directly.
pub const ALLOW_DIRECT: i64 = 0x2000;

/// Whether the requested cursor is updatable.
pub fn wants_changes(scroll: Option<i64>, concurrency: Option<i64>) -> bool {
    let kind = scroll.unwrap_or(KEYSET) & (KEYSET | DYNAMIC | FORWARD_ONLY | STATIC | FAST_FORWARD);
    let concurrency = concurrency.unwrap_or(0) & (SCROLL_LOCKS | OPTIMISTIC | OPTIMISTIC_VALUES);
    matches!(kind, 0 | KEYSET | DYNAMIC | FORWARD_ONLY) && concurrency != 0
}

/// The cursor that the client gets. A read-only cursor returns the rows as of its opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    pub scroll: i64,
    pub concurrency: i64,
    /// The first rows are sent with the answer.
    pub fetches: bool,
    /// It is closed after its last row.
    pub closes: bool,
}

impl Given {
    /// `changes`: it may change rows.
    pub fn of(scroll: Option<i64>, concurrency: Option<i64>, changes: bool) -> Result<Given, ServerMessage> {
        let (scroll, concurrency) = (scroll.unwrap_or(KEYSET), concurrency.unwrap_or(0));
        let asked = scroll & (KEYSET | DYNAMIC | FORWARD_ONLY | STATIC | FAST_FORWARD);
        let kind = match asked {
            FORWARD_ONLY | FAST_FORWARD => asked,
            0 | KEYSET | DYNAMIC if changes => KEYSET,
            0 | KEYSET | DYNAMIC | STATIC => STATIC,
            _ => return Err(invalid("sp_cursoropen", "scrollopt")),
        };
        let accepts = |options: i64, given: i64| options & CHECK_ACCEPTED == 0 || options & given << 16 != 0;
        // a fetch locks no row
        let control = match concurrency {
            _ if !changes => READ_ONLY,
            asked if asked & OPTIMISTIC_VALUES != 0 => OPTIMISTIC_VALUES,
            _ => OPTIMISTIC,
        };
        if !accepts(scroll, kind) || !accepts(concurrency, control) {
            return Err(ServerMessage::error(16955, 16, "Could not create an acceptable cursor."));
        }
        Ok(Given {
            scroll: kind,
            concurrency: control,
            fetches: scroll & AUTO_FETCH != 0,
            closes: scroll & AUTO_CLOSE != 0 && kind == FAST_FORWARD,
        })
    }

    /// The options of a client of TDS 5.0.
    pub fn plain(scrolls: bool) -> Given {
        let scroll = if scrolls { STATIC } else { FORWARD_ONLY };
        Given { scroll, concurrency: READ_ONLY, fetches: false, closes: false }
    }

    /// A rollback leaves it open.
    pub fn is_static(self) -> bool {
        self.scroll == STATIC
    }

    pub fn scrolls(self) -> bool {
        matches!(self.scroll, STATIC | KEYSET)
    }
}

pub fn invalid(procedure: &str, parameter: &str) -> ServerMessage {
    let text = format!("{procedure}: The value of the parameter {parameter} is invalid.");
    ServerMessage::error(16902, 16, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(scroll: i64, concurrency: i64) -> Result<(i64, i64), i32> {
        Given::of(Some(scroll), Some(concurrency), false)
            .map(|given| (given.scroll, given.concurrency))
            .map_err(|message| message.number)
    }

    #[test]
    fn cursors_are_static_or_forward_only() {
        assert_eq!(given(FAST_FORWARD | AUTO_FETCH, 1), Ok((FAST_FORWARD, READ_ONLY)));
        assert_eq!(given(FORWARD_ONLY | PARAMETERIZED, 4), Ok((FORWARD_ONLY, READ_ONLY)));
        for asked in [KEYSET, DYNAMIC, STATIC, 0] {
            assert_eq!(given(asked, 2), Ok((STATIC, READ_ONLY)));
        }
        assert_eq!(given(KEYSET | DYNAMIC, 1), Err(16902));
    }

    #[test]
    fn cursors_that_change_rows() {
        let given = |scroll, concurrency| {
            let given = Given::of(Some(scroll), Some(concurrency), true).unwrap();
            (given.scroll, given.concurrency)
        };
        assert_eq!(given(KEYSET, OPTIMISTIC), (KEYSET, OPTIMISTIC));
        assert_eq!(given(DYNAMIC, OPTIMISTIC_VALUES), (KEYSET, OPTIMISTIC_VALUES));
        assert_eq!(given(FORWARD_ONLY, SCROLL_LOCKS), (FORWARD_ONLY, OPTIMISTIC));
        for (scroll, concurrency, expected) in [
            (KEYSET, OPTIMISTIC, true),
            (KEYSET, READ_ONLY, false),
            (STATIC, OPTIMISTIC, false),
            (FAST_FORWARD, OPTIMISTIC, false),
        ] {
            assert_eq!(wants_changes(Some(scroll), Some(concurrency)), expected);
        }
    }

    /// KEYSET_ACCEPTABLE, STATIC_ACCEPTABLE; OPTIMISTIC_ACCEPTABLE, READ_ONLY_ACCEPTABLE
    #[test]
    fn a_cursor_that_is_not_acceptable_is_refused() {
        assert_eq!(given(KEYSET | CHECK_ACCEPTED | 0x10000, 1), Err(16955));
        assert_eq!(given(KEYSET | CHECK_ACCEPTED | 0x90000, 1), Ok((STATIC, READ_ONLY)));
        assert_eq!(given(STATIC, 4 | CHECK_ACCEPTED | 0x40000), Err(16955));
        assert_eq!(given(STATIC, 4 | CHECK_ACCEPTED | 0x50000), Ok((STATIC, READ_ONLY)));
    }
}
