//! The numbers assigned to identity columns and rowversions. @@identity is that of the latest statement in any scope,
//! scope_identity() that of the inserts of the same procedure or batch.

use crate::backend::Backend;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::tds::types::Value;
use tsql::quoting::literal;

/// The most tables remembered per scope.
const MOST: usize = 16;

/// The tables that inserts have filled, as PostgreSQL reads their names.
#[derive(Default)]
pub struct Identities {
    /// The table of the latest insert; None if another statement that may have assigned numbers followed.
    latest: Option<String>,
    scope: Scope,
}

/// The tables filled by inserts of one procedure or batch.
#[derive(Default)]
pub struct Scope {
    /// The tables, the latest last, into which no other scope has inserted since.
    tables: Vec<String>,
    /// The number assigned to rows before those.
    before: Option<i64>,
}

impl Identities {
    /// Called after a change. `into`: the table into which it inserted rows.
    pub fn changed(&mut self, into: Option<&str>, rows: u64) {
        self.latest = into.map(str::to_owned);
        if let Some(table) = into.filter(|_| rows > 0) {
            let tables = &mut self.scope.tables;
            tables.retain(|known| known != table);
            if tables.len() == MOST {
                tables.remove(0);
            }
            tables.push(table.to_owned());
        }
    }

    /// Begins the scope of a procedure. Returns the outer scope, for `leave`.
    pub fn enter(&mut self) -> Scope {
        std::mem::take(&mut self.scope)
    }

    pub fn leave(&mut self, around: Scope) {
        self.scope = around;
    }

    /// Called before a procedure, which may insert into the same tables.
    pub async fn keep(&mut self, backend: &mut Backend, client: &mut Client) -> Result<(), Interrupt> {
        if !self.scope.tables.is_empty() {
            let before = self.scope_number(backend, client).await?;
            self.scope = Scope { tables: Vec::new(), before };
        }
        self.latest = None;
        Ok(())
    }

    /// @@identity: the number assigned last, also by a trigger; NULL if the latest insert assigned none.
    pub async fn latest(
        &self,
        backend: &mut Backend,
        client: &mut Client,
    ) -> Result<Value<'static>, Interrupt> {
        let sql = match &self.latest {
            Some(table) => format!("select tsql.identity_after({})", literal(table)),
            None => String::from("select tsql.last_identity()"),
        };
        Ok(number(backend, client, &sql).await?.map_or(Value::Null, Value::Int))
    }

    /// scope_identity(): the number assigned last by an insert of this scope.
    pub async fn of_scope(
        &self,
        backend: &mut Backend,
        client: &mut Client,
    ) -> Result<Value<'static>, Interrupt> {
        Ok(self.scope_number(backend, client).await?.map_or(Value::Null, Value::Int))
    }

    async fn scope_number(
        &self,
        backend: &mut Backend,
        client: &mut Client,
    ) -> Result<Option<i64>, Interrupt> {
        for table in self.scope.tables.iter().rev() {
            let sql = format!("select tsql.identity_of({})", literal(table));
            let found = number(backend, client, &sql).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(self.scope.before)
    }
}

/// @@dbts: the latest row version of the database.
pub async fn latest_version(backend: &mut Backend, client: &mut Client) -> Result<Value<'static>, Interrupt> {
    let asked = "select ('x' || pg_catalog.encode(tsql.dbts(), 'hex'))::bit(64)::bigint";
    let latest = first_number(backend.rows(client, asked).await?);
    Ok(latest.map_or(Value::Null, |latest| Value::Binary(latest.to_be_bytes().to_vec().into())))
}

/// After an insert of values into an identity column: the next number follows the greatest of them.
pub async fn advance_identity(
    backend: &mut Backend,
    client: &mut Client,
    table: &str,
) -> Result<(), Interrupt> {
    let sql = format!("select tsql.advance_identity({})", literal(table));
    backend.rows(client, &sql).await.map(|_| ())
}

async fn number(backend: &mut Backend, client: &mut Client, sql: &str) -> Result<Option<i64>, Interrupt> {
    match backend.is_open() {
        true => Ok(first_number(backend.rows(client, sql).await?)),
        false => Ok(None),
    }
}

fn first_number(rows: Vec<Vec<Option<String>>>) -> Option<i64> {
    rows.into_iter().flatten().next().flatten().and_then(|text| text.parse().ok())
}
