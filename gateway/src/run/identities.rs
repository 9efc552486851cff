//! The numbers assigned to identity columns and rowversions: @@identity, scope_identity(), @@dbts.

use super::inserted::Scope;
use super::interpreter::Interpreter;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::tds::types::Value;
use tsql::quoting::literal;

impl Interpreter {
    /// Called before a procedure, which may insert into the same tables.
    pub async fn keep_identity(&mut self, client: &mut Client) -> Result<(), Interrupt> {
        if !self.identities.scope.tables.is_empty() {
            let before = self.scope_number(client).await?;
            self.identities.scope = Scope { tables: Vec::new(), before };
        }
        self.identities.latest = None;
        Ok(())
    }

    /// @@identity: the number assigned last, also by a trigger; NULL if the latest insert assigned none.
    pub async fn identity(&mut self, client: &mut Client) -> Result<Value<'static>, Interrupt> {
        let sql = match &self.identities.latest {
            Some(table) => format!("select tsql.identity_after({})", literal(table)),
            None => String::from("select tsql.last_identity()"),
        };
        Ok(self.number(client, &sql).await?.map_or(Value::Null, Value::Int))
    }

    /// scope_identity(): the number assigned last by an insert of this scope.
    pub async fn scope_identity(&mut self, client: &mut Client) -> Result<Value<'static>, Interrupt> {
        Ok(self.scope_number(client).await?.map_or(Value::Null, Value::Int))
    }

    /// @@dbts: the latest row version of the database.
    pub async fn latest_version(&mut self, client: &mut Client) -> Result<Value<'static>, Interrupt> {
        let rows = self
            .ask(client, "select ('x' || pg_catalog.encode(tsql.dbts(), 'hex'))::bit(64)::bigint")
            .await?;
        let latest = rows.into_iter().flatten().next().flatten().and_then(|text| text.parse::<i64>().ok());
        Ok(latest.map_or(Value::Null, |latest| Value::Binary(latest.to_be_bytes().to_vec().into())))
    }

    async fn scope_number(&mut self, client: &mut Client) -> Result<Option<i64>, Interrupt> {
        for table in self.identities.scope.tables.clone().iter().rev() {
            let sql = format!("select tsql.identity_of({})", literal(table));
            let found = self.number(client, &sql).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(self.identities.scope.before)
    }

    async fn number(&mut self, client: &mut Client, sql: &str) -> Result<Option<i64>, Interrupt> {
        if !self.procedures.backend.is_open() {
            return Ok(None);
        }
        let rows = self.ask(client, sql).await?;
        Ok(rows.into_iter().flatten().next().flatten().and_then(|text| text.parse().ok()))
    }
}
