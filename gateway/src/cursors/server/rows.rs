//! The rows that PostgreSQL keeps for a server cursor: opened, sent and closed.

use super::{HeldRows, Selection};
use crate::backend::{Completed, Fetched, Rows, Source};
use crate::client::Client;
use crate::cursors::declared::new_name;
use crate::interrupt::Interrupt;
use crate::program::Sql;
use crate::run::Interpreter;
use crate::run::Variables;

impl Interpreter {
    /// Opens a cursor of PostgreSQL on a select. `scrolls`: rows can be fetched in any order, and are counted.
    pub(super) async fn hold_rows(
        &mut self,
        client: &mut Client,
        selection: &Selection,
        variables: &Variables<'_>,
        scrolls: bool,
    ) -> Result<HeldRows, Interrupt> {
        let name = new_name();
        let scroll = if scrolls { "scroll" } else { "no scroll" };
        let sql = selection.sql.following(&format!("declare {name} {scroll} cursor with hold for ")).once();
        let parameters = self.parameters(client, &sql, variables).await?;
        let source = Source::Query { sql: &sql, parameters: &parameters, only_reads: false };
        let backend = &mut self.procedures.backend;
        backend.pin();
        backend.run(client, source, Rows::Kept).await?;
        let limit = i64::from(client.settings().row_limit);
        let mut rows =
            HeldRows { name, titles: selection.titles.clone(), total: None, at: 0, limit, keyset: None };
        if scrolls {
            let all = self.moved(client, &rows, "forward all").await?;
            rows.total = Some(rows.left(all));
            self.moved(client, &rows, "absolute 0").await?;
        }
        Ok(rows)
    }

    /// Sends at most `count` rows, from number `first` on if given. Returns their number.
    pub(super) async fn send_rows(
        &mut self,
        client: &mut Client,
        rows: &mut HeldRows,
        first: Option<i64>,
        count: i64,
        described: bool,
    ) -> Result<i64, Interrupt> {
        if rows.keyset.is_some() {
            return self.send_keyed(client, rows, first, count, described).await;
        }
        if let Some(first) = first {
            self.stand_before(client, rows, first).await?;
        }
        let sql = Sql::plain(format!("fetch forward {count} from {}", rows.name)).once();
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: true };
        let fetched = Rows::OfCursor(Fetched { titles: rows.titles.as_deref(), described, keyed: None });
        let Completed { outcome, .. } = self.procedures.backend.run(client, source, fetched).await?;
        let found = outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
        rows.at += found;
        Ok(found)
    }

    /// Moves PostgreSQL's cursor so that row number `first` comes next.
    pub(super) async fn stand_before(
        &mut self,
        client: &mut Client,
        rows: &mut HeldRows,
        first: i64,
    ) -> Result<(), Interrupt> {
        let before = first - 1;
        if before != rows.at {
            self.moved(client, rows, &format!("absolute {before}")).await?;
            rows.at = before;
        }
        Ok(())
    }

    /// Moves PostgreSQL's cursor. Returns the number of rows passed.
    pub(super) async fn moved(
        &mut self,
        client: &mut Client,
        rows: &HeldRows,
        to: &str,
    ) -> Result<i64, Interrupt> {
        let sql = Sql::plain(format!("move {to} in {}", rows.name)).once();
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: true };
        let Completed { outcome, .. } = self.procedures.backend.run(client, source, Rows::Kept).await?;
        Ok(outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0))
    }

    pub(super) async fn let_go(&mut self, client: &mut Client, rows: &HeldRows) -> Result<(), Interrupt> {
        self.close_in_postgres(client, &rows.name).await
    }
}
