//! Global temporary tables, `##t` (`gateway/sql/ddl/globals.sql`): tables of ended sessions are dropped before a
//! statement that names one.

use super::connection::Backend;
use crate::postgres::PgError;
use tsql::fragments::Facts;
use tsql::quoting::{array, literal};

/// Runs before a statement that names global temporary tables. Error 208: one of them has ended and is still used
/// by another statement.
pub(super) async fn look_after_globals(backend: &mut Backend, facts: &Facts) -> Result<(), PgError> {
    if !facts.names_global() {
        return Ok(());
    }
    // the tables and their list are on the primary
    backend.leave_standby().await?;
    backend.uses_globals = true;
    let named = facts.globals().map(literal);
    backend.ask(&format!("select tsql.end_globals({})", array(named, "text"))).await.map(|_| ())
}
