//! Fetches of server cursors.

use super::keyed::send_keyed;
use super::position::{Fetch, Position};
use super::rows::stand_before;
use super::{HeldRows, ServerCursor};
use crate::backend::{Backend, Completed, Fetched, Rows, Source};
use crate::client::Client;
use crate::cursors::postgres::move_in;
use crate::interrupt::{Failure, Interrupt};
use crate::program::Sql;
use crate::tds::tokens::message::ServerMessage;

/// Sends the rows of a fetch. Returns their number, and whether the fetch was adjusted.
pub(super) async fn send_of(
    backend: &mut Backend,
    client: &mut Client,
    cursor: &mut ServerCursor,
    fetch: Fetch,
    rows: i64,
    described: bool,
) -> Result<(i64, bool), Interrupt> {
    let Some(total) = cursor.rows.total else {
        let first = cursor.rows.at + 1;
        let rows = match fetch {
            Fetch::Next => cursor.rows.left(rows),
            // the cursor has just been opened
            Fetch::First if rows == 0 && first == 1 => 0,
            _ => return Err(Failure::of_statement(forward_only(fetch)).into()),
        };
        if rows == 0 && first > 1 {
            // PostgreSQL would return its current row again
            move_in(backend, client, &cursor.rows.name, "forward all").await?;
        }
        let sent = send_rows(backend, client, &mut cursor.rows, None, rows, described).await?;
        cursor.position = match (rows, sent) {
            (0, _) if first == 1 => Position::BeforeFirst,
            (_, 0) => Position::AfterLast,
            (_, rows) => Position::On { first, rows },
        };
        return Ok((sent, false));
    };
    let found = cursor.position.after(fetch, rows, total);
    cursor.position = found.position;
    let (first, rows) = match found.position {
        Position::On { first, rows } => (first, rows),
        // no rows, only their columns
        _ => (1, 0),
    };
    let sent = send_rows(backend, client, &mut cursor.rows, Some(first), rows, described).await?;
    Ok((sent, found.adjusted))
}

/// Sends at most `count` rows, from number `first` on if given. Returns their number.
async fn send_rows(
    backend: &mut Backend,
    client: &mut Client,
    rows: &mut HeldRows,
    first: Option<i64>,
    count: i64,
    described: bool,
) -> Result<i64, Interrupt> {
    if rows.keyset.is_some() {
        return send_keyed(backend, client, rows, first, count, described).await;
    }
    if let Some(first) = first {
        stand_before(backend, client, rows, first).await?;
    }
    let sql = Sql::plain(format!("fetch forward {count} from {}", rows.name)).once();
    let source = Source::Query { sql: &sql, parameters: &[], only_reads: true, in_try: false };
    let fetched = Rows::OfCursor(Fetched { titles: rows.titles.as_deref(), described, keyed: None });
    let Completed { outcome, .. } = backend.run(client, source, fetched).await?;
    let found = outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
    rows.at += found;
    Ok(found)
}

fn forward_only(fetch: Fetch) -> ServerMessage {
    let kind = match fetch {
        Fetch::First => "FIRST",
        Fetch::Next => "NEXT",
        Fetch::Prior | Fetch::PriorUnadjusted => "PREVIOUS",
        Fetch::Last => "LAST",
        Fetch::Absolute(_) => "ABSOLUTE",
        Fetch::Relative(_) => "RELATIVE",
        Fetch::Refresh => "REFRESH",
    };
    let text = format!("sp_cursorfetch: The fetch type {kind} cannot be used with forward only cursors.");
    ServerMessage::error(16911, 16, text)
}
