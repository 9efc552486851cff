//! Runs one statement of the client on PostgreSQL. Inside a transaction a savepoint precedes it, so that a failed
//! statement is rolled back and the transaction continues, as in T-SQL.

use super::ahead::{forget_ahead, has_ahead};
use super::cancellable::cancellable;
use super::connection::Backend;
use super::open::described::Described;
use super::own::look_after_globals;
use super::parameters::{self, Typing};
use super::result_set::{RowStream, Rows};
use super::source::Source;
use super::unfinished::{Completed, Unfinished};
use crate::client::{Client, Isolation};
use crate::convert::SqlType;
use crate::limits::memory;
use crate::postgres::{Canceller, Notice, PgError};
use crate::program::Sql;
use std::sync::Arc;
use tsql::facts::errors;
use tsql::quoting::literal;

impl Backend {
    /// Describes a query without running it: the types of its parameters and its columns.
    pub async fn describe(&mut self, sql: &Sql, types: &[SqlType]) -> Result<Arc<Described>, PgError> {
        look_after_globals(self, &sql.facts).await?;
        let mut typing = Typing::Declared;
        let (mut refusal, mut is_new) = (None, false);
        self.follow_definitions()?;
        loop {
            let described = self.statement(async |open| open.describe_query(sql, types, typing).await).await;
            let mut error = match described {
                Ok(described) => return Ok(described),
                Err(error) => error,
            };
            if let (false, Some(open)) = (is_new, &mut self.open) {
                is_new = true;
                if open.forget_outdated(sql, &mut error)? {
                    continue;
                }
            }
            if error.is_outdated() {
                return Err(error);
            }
            match typing.after(&error) {
                Some(next) => typing = next,
                None => {
                    let mut error = refusal.unwrap_or(error);
                    self.look_for_node(&mut error, sql);
                    self.explain_function(&mut error, || sql.numbered()).await;
                    return Err(error);
                }
            }
            refusal = Some(error);
        }
    }

    /// Replaces the error of a statement if it is caused by a table on a node.
    fn look_for_node(&self, error: &mut PgError, sql: &Sql) {
        // wrong_object_type: this server has only the row type of such a table
        if error.sqlstate() != Some("42809") || self.is_there() {
            return;
        }
        let catalogue = self.catalogue();
        let found = sql
            .facts
            .tables
            .iter()
            .find_map(|table| Some((&table.sql, catalogue.node_of_table(&table.sql)?)));
        let Some((table, node)) = found else { return };
        *error = PgError::Server(Box::new(Notice {
            severity: "ERROR".into(),
            sqlstate: "0A000".into(),
            message: format!("{table} is on node {node}, and can be read by a select of its own only"),
            ..Notice::default()
        }));
    }

    /// Runs `source` and sends its rows to `rows`.
    pub async fn run(
        &mut self,
        client: &mut Client,
        source: Source<'_>,
        rows: Rows<'_>,
    ) -> Result<Completed, Unfinished> {
        self.before_statement(client, source.begins(), !source.only_reads()).await;
        self.follow_definitions()?;
        if let Source::Query { sql, .. } = &source {
            if let Err(error) = look_after_globals(self, &sql.facts).await {
                self.check(&error, client);
                return Err(Unfinished::Failed(error));
            }
        }
        let text = || match &source {
            Source::Query { sql, .. } => sql.numbered(),
            Source::Call { .. } => String::new(),
        };
        let mut ran = self.run_set(client, &source, rows).await;
        if let (Err(Unfinished::Refused(error)), Source::Query { sql, .. }) = (&mut ran, &source) {
            self.look_for_node(error, sql);
        }
        if let Err(Unfinished::Refused(error) | Unfinished::Failed(error)) = &mut ran {
            self.explain(error, text, client).await;
            if client.dialect().is_tds7() && !source.only_reads() {
                self.look_for_trigger(error).await;
            }
        }
        match &ran {
            Ok(_) => self.note_statement(source.only_reads(), None),
            Err(Unfinished::Failed(error) | Unfinished::Refused(error)) => {
                self.note_statement(source.only_reads(), Some(error));
                self.check(error, client);
            }
            Err(_) => {}
        }
        if std::mem::take(&mut client.reply.dooms) {
            if let Err(message) = self.doom(client).await {
                client.reply.message(&message);
            }
        }
        ran
    }

    /// Finds out whether the error of a statement was raised in a trigger of T-SQL.
    async fn look_for_trigger(&mut self, error: &mut PgError) {
        let PgError::Server(notice) = error else { return };
        if !notice.context.contains("PL/pgSQL function ") {
            return;
        }
        let question = format!("select tsql.raised_in_trigger({})", literal(&notice.context));
        let answer = self.ask(&question).await.unwrap_or_default();
        notice.in_trigger =
            matches!(answer.first().map(Vec::as_slice), Some([Some(answer)]) if answer == "t");
    }

    /// Replaces the message of an error by T-SQL's if its missing parts can be found in the catalogue.
    pub async fn explain(
        &mut self,
        error: &mut PgError,
        statement: impl FnOnce() -> String,
        client: &Client,
    ) {
        let Some(notice) = error.violation() else { return self.explain_function(error, statement).await };
        let fields = [
            &notice.sqlstate,
            &notice.message,
            &notice.detail,
            &notice.schema,
            &notice.table,
            &notice.constraint,
            &notice.context,
            &statement(),
        ];
        let question = format!(
            "tsql.violation({}, {})",
            fields.map(|field| literal(field)).join(", "),
            !client.dialect().is_tds7()
        );
        self.set_message(notice, &question).await;
    }

    /// The same for a missing function.
    async fn explain_function(&mut self, error: &mut PgError, statement: impl FnOnce() -> String) {
        let PgError::Server(notice) = error else { return };
        if notice.sqlstate != errors::NO_FUNCTION {
            return;
        }
        let statement = if notice.query.is_empty() { statement() } else { notice.query.clone() };
        let Some(number) = errors::of_function(&notice.message, &statement) else { return };
        let question = format!("tsql.missing_function({}, {number})", literal(&notice.message));
        self.set_message(notice, &question).await;
    }

    /// Sets the message from the catalogue's answer, or keeps PostgreSQL's if the query fails.
    async fn set_message(&mut self, notice: &mut Notice, question: &str) {
        let question = format!("select number, severity, tsql.long_names(message) from {question}");
        let answer = self.ask(&question).await.unwrap_or_default();
        if let Some([Some(number), Some(severity), Some(text)]) = answer.first().map(Vec::as_slice) {
            notice.of_tsql =
                number.parse().ok().zip(severity.parse().ok()).map(|(n, s)| (n, s, text.clone()));
        }
    }

    /// Runs before every statement of the client. `begins`: it begins a transaction under SET IMPLICIT_TRANSACTIONS.
    pub(super) async fn before_statement(&mut self, client: &mut Client, begins: bool, has_effects: bool) {
        self.locking = client.settings().locking;
        self.calendar = client.settings().calendar;
        self.arithabort = client.settings().arithabort.unwrap_or_default();
        if begins {
            self.begin_implicitly(client);
        }
        self.transaction.has_effects |= has_effects;
        self.let_go_if_ended().await;
    }

    /// Runs `source` with its settings.
    async fn run_set(
        &mut self,
        client: &mut Client,
        source: &Source<'_>,
        rows: Rows<'_>,
    ) -> Result<Completed, Unfinished> {
        if !source.is_pure() {
            forget_ahead(self).await?;
        }
        // a read needs no transaction if the client's has run no statement yet
        let may_wait = source.is_pure() && self.locking.isolation == Isolation::ReadCommitted;
        let in_transaction = self.transaction.is_open() && (self.transaction.started || !may_wait);
        if in_transaction {
            self.start_statement().await?;
        }
        // a read outside of a transaction needs no locks
        if !source.locks().is_empty() && (in_transaction || !source.only_reads()) {
            return self.run_locked(client, source, rows, in_transaction).await;
        }
        let settings = source.settings();
        for (set, _) in &settings {
            self.set(set).await?;
        }
        let ran = self.run_typed(client, source, rows).await;
        match &ran {
            Err(Unfinished::Session(_)) => return ran,
            Err(Unfinished::Failed(error) | Unfinished::Refused(error)) if error.is_fatal() => return ran,
            _ => {}
        }
        if in_transaction && !(ran.is_ok() && self.end_reading().await?) {
            self.settle_statement(ran.is_ok()).await?;
        }
        for (_, reset) in &settings {
            self.set(reset).await?;
        }
        ran
    }

    /// Runs `source` after locking its tables, so that its snapshot is not older than the locks; in a transaction of
    /// its own if the client has none.
    async fn run_locked(
        &mut self,
        client: &mut Client,
        source: &Source<'_>,
        rows: Rows<'_>,
        in_transaction: bool,
    ) -> Result<Completed, Unfinished> {
        let open = self.open().await?;
        if !in_transaction {
            open.connection.query_text("begin; savepoint ringlog_statement").await?;
            self.transaction.started = true;
        }
        let ran = match self.lock_tables(client, source.locks()).await {
            Ok(()) => self.run_typed(client, source, rows).await,
            Err(unfinished) => Err(unfinished),
        };
        match &ran {
            Err(Unfinished::Session(_)) => return ran,
            Err(Unfinished::Failed(error) | Unfinished::Refused(error)) if error.is_fatal() => return ran,
            _ => self.settle_statement(ran.is_ok()).await?,
        }
        if in_transaction {
            self.transaction.has_effects = true;
        } else {
            self.transaction.started = false;
            self.set(if ran.is_ok() { "commit" } else { "rollback" }).await?;
        }
        ran
    }

    /// Locks tables: waits for the transactions that have written to them, and excludes writers until the end of the
    /// transaction.
    async fn lock_tables(&mut self, client: &mut Client, tables: &[String]) -> Result<(), Unfinished> {
        let open = self.open().await?;
        let canceller = Canceller::of(&open.connection);
        let sql = format!("lock table {} in share row exclusive mode", tables.join(", "));
        cancellable(client, canceller, open.connection.query_text(&sql)).await.map(|_| ())
    }

    pub(super) async fn set(&mut self, sql: &str) -> Result<(), PgError> {
        match &mut self.open {
            Some(open) => open.connection.query_text(sql).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sends BEGIN if the client's transaction has not reached PostgreSQL yet, and a savepoint for the statement.
    pub(super) async fn start_statement(&mut self) -> Result<(), PgError> {
        self.open().await?;
        let Some(open) = self.open.as_mut().filter(|_| self.transaction.is_open()) else {
            return Ok(());
        };
        let begin = if self.transaction.started { "" } else { "begin; " };
        // compiled procedures read @@trancount from this setting
        let depth = match self.transaction.depth {
            depth if depth == self.transaction.reported_depth => String::new(),
            depth => format!("set local tsql.trancount = {depth}; "),
        };
        open.connection.query_text(&format!("{begin}{depth}savepoint ringlog_statement")).await?;
        self.transaction.started = true;
        self.transaction.reported_depth = self.transaction.depth;
        Ok(())
    }

    /// Ends a statement of a transaction: releases its savepoint or rolls back to it.
    pub(super) async fn settle_statement(&mut self, completed: bool) -> Result<(), PgError> {
        match &mut self.open {
            Some(open) => open.settle(completed).await,
            None => Ok(()),
        }
    }

    /// Runs `source`, and again with other types of its parameters if these may succeed.
    async fn run_typed(
        &mut self,
        client: &mut Client,
        source: &Source<'_>,
        rows: Rows<'_>,
    ) -> Result<Completed, Unfinished> {
        let error = match self.run_once(client, source, Typing::Declared, rows).await {
            Err(Unfinished::Refused(error)) if !error.is_fatal() => error,
            ran => return ran,
        };
        let (mut error, mut typing) = (error, Typing::Declared);
        if !self.may_run_again(source, &mut typing, &mut error).await? {
            return Err(Unfinished::Refused(error));
        }
        match self.run_once(client, source, typing, rows).await {
            // the first error is more specific than the second
            Err(Unfinished::Refused(second)) if !second.is_fatal() => Err(Unfinished::Refused(error)),
            Err(Unfinished::Unsendable(_)) => Err(Unfinished::Refused(error)),
            ran => ran,
        }
    }

    /// Whether to run a refused query again: with other types of its parameters, or because prepared statements were
    /// outdated.
    async fn may_run_again(
        &mut self,
        source: &Source<'_>,
        typing: &mut Typing,
        error: &mut PgError,
    ) -> Result<bool, PgError> {
        let Source::Query { sql, parameters, .. } = source else {
            return Ok(false);
        };
        let Some(open) = self.open.as_mut() else {
            return Ok(false);
        };
        if !open.forget_outdated(sql, error)? {
            let next = typing.after(error).filter(|_| !parameters.is_empty() && !error.is_outdated());
            let Some(next) = next else { return Ok(false) };
            *typing = next;
        }
        if self.transaction.started {
            open.connection.query_text("rollback to savepoint ringlog_statement").await?;
        }
        Ok(true)
    }

    async fn run_once(
        &mut self,
        client: &mut Client,
        source: &Source<'_>,
        typing: Typing,
        rows: Rows<'_>,
    ) -> Result<Completed, Unfinished> {
        let stopping = self.gateway.stopping.clone();
        let (turn, most_rows) = (self.turn(), self.most_rows);
        if !has_ahead(self) {
            self.open().await?;
        }
        let open = self.open.as_mut().ok_or_else(|| PgError::Protocol("no connection".into()))?;
        let zone = open.zone()?;
        let canceller = Canceller::of(&open.connection);
        let preparing = async {
            match source {
                Source::Call { statement, .. } => open.prepare(statement).await,
                Source::Query { sql, parameters, .. } => {
                    let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
                    open.prepare_query(sql, &types, typing).await
                }
            }
        };
        let prepared = cancellable(client, canceller, preparing).await?;
        let formats = prepared.formats();
        let limit = match rows {
            Rows::ToClient(_) | Rows::Browsed(..) | Rows::Assigned => client.settings().row_limit,
            Rows::OfCursor(_) | Rows::AndVersions(..) | Rows::Kept => 0,
        };
        let long = match source {
            Source::Query { parameters, .. } => parameters.iter().map(|one| one.value.length()).sum(),
            Source::Call { .. } => 0,
        };
        let writing = memory::writing(long).await;
        let is_sent = match source {
            Source::Call { statement, values, .. } => {
                let sent = &statement.parameter_formats;
                open.connection.put_execute(&prepared.name, sent, values, &formats, limit);
                false
            }
            Source::Query { parameters, .. } => {
                let (sent, values) = parameters::bind(parameters, &prepared.parameters, &zone)
                    .map_err(Unfinished::Unsendable)?;
                let is_sent = open.ahead.was_sent(&mut open.connection, &prepared, &values, limit).await?;
                if !is_sent {
                    open.put_checks(&prepared)?;
                    open.connection.send_values(&prepared.name, &sent, &values, &formats, limit).await?;
                }
                is_sent
            }
        };
        let is_call = matches!(source, Source::Call { .. });
        // cursors end with the transaction, which is the statement's own outside of a client's transaction
        let may_open_cursors = is_call && !source.only_reads();
        if may_open_cursors {
            open.connection.put_flush();
        } else if !is_sent {
            open.connection.put_sync();
        }
        open.connection.flush().await?;
        drop(writing);
        let only_reads = is_call && source.only_reads();
        let is_lasting = !source.only_reads() && !self.transaction.started;
        let mut stream = RowStream::new(client, open, &zone, prepared, turn, stopping);
        stream.only_reads(only_reads);
        stream.is_lasting(is_lasting);
        stream.most_rows(most_rows);
        stream.may_open_cursors(may_open_cursors);
        let ran = stream.run(rows).await;
        stream.finish_cancelling().await;
        drop(stream);
        match &ran {
            Ok(_) | Err(Unfinished::Session(_)) => {}
            Err(Unfinished::Failed(error) | Unfinished::Refused(error)) if error.is_fatal() => {}
            // the client may have cancelled it, and the cancel may have hit it
            Err(_) => open.ahead.forget(&mut open.connection).await?,
        }
        ran
    }
}
