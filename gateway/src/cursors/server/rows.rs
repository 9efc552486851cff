//! The rows that PostgreSQL keeps for a server cursor: opened, sent and closed.

use super::{HeldRows, Selection};
use crate::backend::Backend;
use crate::calls::Procedures;
use crate::client::Client;
use crate::cursors::postgres::{declaring, move_in, open_in_postgres};
use crate::interrupt::Interrupt;
use crate::run::{written, State, Variables};

/// The select for the present declarations of its tables.
pub(super) async fn written_selection(
    procedures: &mut Procedures,
    client: &mut Client,
    selection: Selection,
) -> Result<Selection, Interrupt> {
    let written = written(procedures, client, &selection.sql, false).await?;
    Ok(match written {
        Some(query) => Selection { sql: query.sql.clone(), titles: query.columns.clone() },
        None => selection,
    })
}

/// Opens a cursor of PostgreSQL on a select. `scrolls`: rows can be fetched in any order, and are counted.
pub(super) async fn hold_rows(
    state: &mut State,
    client: &mut Client,
    selection: &Selection,
    variables: &Variables<'_>,
    scrolls: bool,
) -> Result<HeldRows, Interrupt> {
    let parameters = state.parameters(client, &selection.sql, variables).await?;
    let backend = &mut state.procedures.backend;
    let declared = declaring(&selection.sql, scrolls);
    let all = open_in_postgres(backend, client, &declared, &parameters, scrolls).await?;
    let name = declared.0;
    let limit = i64::from(client.settings().row_limit);
    let mut rows =
        HeldRows { name, titles: selection.titles.clone(), total: None, at: 0, limit, keyset: None };
    rows.total = all.map(|all| rows.left(all));
    Ok(rows)
}

/// Moves PostgreSQL's cursor so that row number `first` comes next.
pub(super) async fn stand_before(
    backend: &mut Backend,
    client: &mut Client,
    rows: &mut HeldRows,
    first: i64,
) -> Result<(), Interrupt> {
    let before = first - 1;
    if before != rows.at {
        move_in(backend, client, &rows.name, &format!("absolute {before}")).await?;
        rows.at = before;
    }
    Ok(())
}
