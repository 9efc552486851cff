//! INSERT … EXECUTE: the rows that a procedure or a text selects are kept until its end, and then inserted into the
//! table.
//!
//! It is one statement: without a transaction of the client it runs in its own (SQL Server, "INSERT",
//! execute_statement; errors 3915, 3916, 8164).

use super::demanded::no_relation;
use super::interpreter::Interpreter;
use super::variables::Variables;
use crate::backend::{uncommittable, Completed, Parameter, Rows, Source};
use crate::client::{Client, GatheredSet, Gathering};
use crate::interrupt::{Failure, Interrupt};
use crate::program::{refusal, Executed, Filled, InsertExecute};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use std::borrow::Cow;
use std::collections::BTreeSet;
use tsql::schema::Schema;

/// The numbers of rows inserted by one statement of PostgreSQL: only four, since each is prepared.
pub const ROWS: [usize; 4] = [256, 32, 4, 1];
/// The most parameters of one statement, within PostgreSQL's 16-bit count.
const MOST_PARAMETERS: usize = 30_000;

impl Interpreter {
    pub async fn insert_execute(
        &mut self,
        client: &mut Client,
        insert: &InsertExecute,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        if client.reply.gathering.is_some() {
            let text = "An INSERT EXEC statement cannot be nested.";
            return Err(ServerMessage::error(8164, 16, text).into());
        }
        if client.settings().row_limit > 0 {
            let text =
                "Under SET ROWCOUNT only rows that are selected are limited: insert … execute is refused.";
            return Err(ServerMessage::error(195, 15, text).into());
        }
        let backend = &mut self.procedures.backend;
        let begins_implicitly = client.settings().implicit_transactions;
        if begins_implicitly && !backend.in_transaction() {
            backend.begin(client, "");
        }
        let has_own = !backend.in_transaction();
        let transactions = backend.transaction_depth() + i32::from(has_own);
        client.reply.gathering = Some(Gathering::new(has_own, transactions));
        if has_own {
            backend.begin(client, "");
        }
        let called = match &insert.source {
            Executed::Procedure(execute) => self.run_execute(client, execute, variables).await,
            Executed::Text(text) => self.execute_text(client, text, variables).await.map(|()| true),
        };
        let inserted = match called {
            Ok(true) => self.insert_gathered(client, &insert.target, transactions).await,
            Ok(false) => Ok(None),
            Err(interrupt) => Err(interrupt),
        };
        let inserted = match inserted {
            Err(Interrupt::Session(error)) => return Err(Interrupt::Session(error)),
            inserted => inserted,
        };
        let backend = &mut self.procedures.backend;
        let mut ended = Ok(());
        if has_own && backend.in_transaction() {
            ended = match &inserted {
                Ok(Some(_)) => backend.commit(client).await,
                _ => backend.rollback(client, "").await.map_err(Interrupt::from),
            };
        }
        client.reply.gathering = None;
        let inserted = inserted?;
        ended?;
        let Some(rows) = inserted else {
            // the call failed and its error has been sent
            client.reply.end(Status::ERROR, None);
            return Ok(());
        };
        self.identities.changed(Some(&insert.target.table), rows);
        client.reply.command = Command::Insert;
        client.reply.end(Status::empty(), Some(rows));
        client.reply.passed(Some(i64::try_from(rows).unwrap_or(i64::MAX)));
        Ok(())
    }

    /// 3916: a procedure must not commit the transaction of INSERT … EXECUTE.
    pub fn may_commit(&self, client: &Client) -> Result<(), Failure> {
        match &client.reply.gathering {
            Some(gathering) if self.procedures.backend.transaction_depth() <= gathering.transactions => {
                let text = "Cannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION \
                            is used first.";
                Err(Failure::of_batch(ServerMessage::error(3916, 16, text)))
            }
            _ => Ok(()),
        }
    }

    /// 3915: nor roll it back.
    pub fn may_roll_back(&self, client: &Client) -> Result<(), Failure> {
        match &client.reply.gathering {
            Some(_) => Err(no_rollback()),
            None => Ok(()),
        }
    }

    /// Inserts the kept rows, all or none. Returns their number; None if there were too many.
    async fn insert_gathered(
        &mut self,
        client: &mut Client,
        target: &Filled,
        transactions: i32,
    ) -> Result<Option<u64>, Interrupt> {
        if self.procedures.backend.transaction_depth() != transactions {
            return Err(no_rollback().into());
        }
        if self.procedures.backend.is_doomed() {
            return Err(uncommittable().into());
        }
        let Some(sets) = client.reply.gathering.as_mut().and_then(Gathering::take) else { return Ok(None) };
        let target = &self.present(client, target, &sets).await?;
        if sets.iter().all(|set| set.rows.is_empty()) {
            return Ok(Some(0));
        }
        self.procedures.backend.save_own(client).await?;
        let inserted = match self.insert_sets(client, target, &sets).await {
            Err(Interrupt::Session(error)) => return Err(Interrupt::Session(error)),
            inserted => inserted,
        };
        self.procedures.backend.settle_own(client, inserted.is_ok()).await?;
        inserted.map(Some)
    }

    /// The target with its columns, as the table has them now. Error 213: the rows have more or fewer values.
    async fn present(
        &mut self,
        client: &mut Client,
        target: &Filled,
        sets: &[GatheredSet],
    ) -> Result<Filled, Interrupt> {
        let number = |set: &GatheredSet| set.types.len();
        if let Some(columns) = &target.columns {
            return match sets.iter().all(|set| number(set) == columns.len()) {
                true => Ok(target.clone()),
                false => Err(refusal(&tsql::schema::other_number(1)).into()),
            };
        }
        let backend = &mut self.procedures.backend;
        let declared = backend.know(&BTreeSet::from([target.table.clone()])).await.map_err(|error| {
            backend.message_of(&error, client);
            Interrupt::from(&error)
        })?;
        let declared =
            declared.table(&target.table).ok_or_else(|| Failure::from(&no_relation(&target.table)))?;
        for set in sets {
            declared.demand_values(&target.table, number(set), 1).map_err(|error| refusal(&error))?;
        }
        let columns = declared.filled().map(|column| column.name.clone()).collect();
        Ok(Filled { columns: Some(columns), ..target.clone() })
    }

    pub async fn insert_sets(
        &mut self,
        client: &mut Client,
        target: &Filled,
        sets: &[GatheredSet],
    ) -> Result<u64, Interrupt> {
        let dialect = client.dialect().of_texts();
        let mut inserted = 0;
        for set in sets {
            let width = set.types.len();
            let mut rest = set.rows.as_slice();
            while !rest.is_empty() {
                let fits = |rows: &&usize| **rows <= rest.len() && **rows * width <= MOST_PARAMETERS;
                let (rows, tail) = rest.split_at(ROWS.iter().find(fits).copied().unwrap_or(1));
                rest = tail;
                let sql = tsql::insert_of_rows(target, width, rows.len(), dialect);
                let values = rows.iter().flat_map(|row| row.iter().zip(&set.types));
                let parameters: Vec<Parameter<'_>> = values
                    .zip(&sql.variables)
                    .map(|((value, sql_type), name)| Parameter {
                        name,
                        sql_type: *sql_type,
                        value: Cow::Borrowed(value),
                    })
                    .collect();
                let source = Source::Query { sql: &sql, parameters: &parameters, only_reads: false };
                let Completed { outcome, .. } =
                    self.procedures.backend.run(client, source, Rows::Kept).await?;
                inserted += outcome.count.unwrap_or(0);
            }
        }
        if target.with_identity {
            self.advance_identity(client, &target.table).await?;
        }
        Ok(inserted)
    }
}

fn no_rollback() -> Failure {
    let text = "Cannot use the ROLLBACK statement within an INSERT-EXEC statement.";
    Failure::of_batch(ServerMessage::error(3915, 16, text))
}
