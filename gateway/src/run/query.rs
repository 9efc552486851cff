//! Queries: their rows, row counts, and assignments to variables.

use super::interpreter::Interpreter;
use super::session_variables::type_of;
use super::variables::Variables;
use super::written::is_outdated;
use crate::backend::{declaring, put_description, uncommittable, Completed, Parameter, Rows, Source};
use crate::client::Client;
use crate::convert::{client_type, declared, from_pg, PgType};
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::postgres::commit::Outcome;
use crate::postgres::message::{row_values, PgColumn};
use crate::program::{command, Definition, Query, QueryKind, Sql, Title};
use crate::tds::tokens::columns::{Column, Traits};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;
use std::sync::Arc;
use tsql::quoting::literal;
use tsql::resolve::names::Relation;

/// How often a query is repeated when its table moves to another server meanwhile.
const MOST_MOVES: usize = 2;

impl Interpreter {
    pub async fn run_query(
        &mut self,
        client: &mut Client,
        query: &Query,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        let mut is_again = false;
        loop {
            let written = self.written(client, &query.sql, query.only_reads()).await?;
            let now = written.as_deref().unwrap_or(query);
            let mut ran = self.run_written(client, now, variables).await;
            if !ran.as_mut().is_err_and(|interrupt| is_outdated(interrupt, &mut is_again)) {
                return ran;
            }
        }
    }

    async fn run_written(
        &mut self,
        client: &mut Client,
        query: &Query,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        let Some(made) = query.made().filter(|made| made.is_global()) else {
            return self.run_plain(client, query, variables).await;
        };
        self.ask(client, &format!("select tsql.demand_no_global({})", literal(&made.own))).await?;
        // created and noted in one transaction: another session would drop a table that is not noted
        if !self.procedures.backend.begin_own(client).await {
            return self.run_plain(client, query, variables).await;
        }
        let ran = self.run_plain(client, query, variables).await;
        self.procedures
            .backend
            .end_own(client, ran.is_ok())
            .await
            .map_err(|error| Interrupt::from(&error))?;
        ran
    }

    /// Refuses a change that `set rowcount` cannot limit: it limits the statements of triggers too (SQL Server: SET
    /// ROWCOUNT), which PostgreSQL runs.
    async fn check_limited(&mut self, client: &mut Client, query: &Query) -> Result<(), Interrupt> {
        let refused = |what: &str| -> Interrupt {
            ServerMessage::error(195, 15, format!("Under SET ROWCOUNT {what} refused.")).into()
        };
        let Some(table) = &query.limited else {
            return Err(refused("changes with FROM, MERGE, and SELECT INTO with TOP are"));
        };
        if query.makes_a_table() {
            return Ok(());
        }
        let asked = format!(
            "select 1 from pg_catalog.pg_class c where c.oid = pg_catalog.to_regclass({})::oid \
                and (c.relkind = 'v' or exists (select from pg_catalog.pg_trigger t \
                  where t.tgrelid = c.oid and not t.tgisinternal and t.tgname not like 'T-SQL %'))",
            literal(table)
        );
        match self.ask(client, &asked).await?.is_empty() {
            true => Ok(()),
            false => Err(refused("a change of a view, or of a table with triggers, is")),
        }
    }

    async fn run_plain(
        &mut self,
        client: &mut Client,
        query: &Query,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        if client.settings().row_limit > 0 && (query.kind.is_change() || query.makes_a_table()) {
            self.check_limited(client, query).await?;
        }
        if client.settings().cuts_padding {
            refuse_cut_columns(query)?;
        }
        if let Some(current) = &query.current {
            self.check_current(client, current).await?;
        }
        let mut declaring = None;
        let Completed { outcome, columns } = {
            let parameters = self.parameters(client, &query.sql, variables).await?;
            let titles = query.columns.as_deref().map(|titles| widened(titles, &parameters));
            let browsed = match query.browses && !client.settings().only_formats {
                true => self.browsed(client, &query.sql, &parameters).await?,
                false => None,
            };
            if client.settings().only_formats {
                return self.describe_query(client, query, &parameters).await;
            }
            if let Some(made) = query.made() {
                declaring = Some(self.declaring(client, query, made, &parameters, titles.as_deref()).await?);
            }
            let only_reads = query.only_reads();
            if !only_reads && self.procedures.backend.is_doomed() {
                // also for temporary tables, to which PostgreSQL permits writes
                return Err(uncommittable().into());
            }
            let sql = browsed.as_ref().map_or(&query.sql, |(with_keys, _)| with_keys);
            let mut moved = 0;
            loop {
                let rows = match (query.assigns.is_empty(), &query.current) {
                    (true, None) => match &browsed {
                        Some((_, columns)) => Rows::Browsed(titles.as_deref(), columns),
                        None => Rows::ToClient(titles.as_deref()),
                    },
                    (true, Some(_)) => Rows::Kept,
                    (false, _) => Rows::Assigned,
                };
                let source = Source::Query { sql, parameters: &parameters, only_reads };
                let backend = match only_reads {
                    true => self.procedures.backend_of(client, &query.sql).await?,
                    false => &mut self.procedures.backend,
                };
                if !only_reads || query.sql.facts.calls {
                    backend.pin();
                }
                let unfinished = match backend.run(client, source, rows).await {
                    Ok(completed) => break completed,
                    Err(unfinished) => unfinished,
                };
                let repeats = only_reads && !query.sql.facts.calls && moved < MOST_MOVES;
                if repeats && self.procedures.may_have_moved(&unfinished).await {
                    moved += 1;
                    continue;
                }
                let interrupt = Interrupt::from(unfinished);
                if self.is_for_catch(&interrupt) {
                    self.end_caught(client, query, &parameters, titles.as_deref()).await;
                }
                return Err(interrupt);
            }
        };
        if let Some(sql) = declaring {
            self.ask(client, &sql).await?;
            self.procedures.backend.forget_declarations();
        }
        let takes_values = &client.settings().identity_insert;
        if let Some(into) = query.into.clone().filter(|_| query.into == *takes_values) {
            self.advance_identity(client, &into).await?;
        }
        if let Some(current) = &query.current {
            self.changed_current(current, &outcome)?;
        }
        if !query.assigns.is_empty() {
            self.assign_row(&query.assigns, variables, &outcome, &columns)?;
        }
        if query.kind == QueryKind::Unsaid {
            self.procedures.backend.forget_declarations();
            return Ok(());
        }
        let is_definition = matches!(query.kind, QueryKind::Definition(_));
        if query.kind == QueryKind::Select && !query.assigns.is_empty() {
            client.reply.assigned(outcome.count);
        } else {
            client.reply.command = command(query);
            client.reply.end(Status::empty(), outcome.count.filter(|_| !is_definition));
        }
        if let QueryKind::Definition(definition) = query.kind {
            let backend = &mut self.procedures.backend;
            backend.forget_declarations();
            if definition == Definition::AlterTable {
                // a column's description may change though its type in PostgreSQL is the same
                backend.forget_prepared().map_err(|error| Interrupt::from(&error))?;
            } else {
                backend.forget_queries_of(&query.sql).map_err(|error| Interrupt::from(&error))?;
            }
            // TRUNCATE changes no definition
            if definition != Definition::Truncate {
                backend.has_defined(&query.sql);
            }
            if definition != Definition::Truncate && !query.sql.facts.defines_temporary() {
                // what does not fit the tables any more says so when it is called
                self.compile_outdated(client).await?;
            }
        }
        if query.kind.is_change() {
            self.identities.changed(query.into.as_deref(), outcome.count.unwrap_or(0));
        }
        let count = outcome.count.and_then(|count| i64::try_from(count).ok());
        client.reply.passed(Some(count.filter(|_| !is_definition).unwrap_or(0)));
        Ok(())
    }

    /// Ends a query whose error a CATCH handles as without the error, with its columns and the rows sent so far.
    /// `select 4/0` in a TRY block gives its column and "(0 row(s) affected)" (SQL Server Programmability Blog,
    /// 2006-03-30).
    async fn end_caught(
        &mut self,
        client: &mut Client,
        query: &Query,
        parameters: &[Parameter<'_>],
        titles: Option<&[Title]>,
    ) {
        let gives_count = query.kind == QueryKind::Select || query.kind.is_change();
        let counts = gives_count && query.assigns.is_empty();
        if !counts || client.reply.gathering.is_some() {
            return;
        }
        if client.reply.open_rows.is_none() {
            let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
            let Ok(backend) = self.procedures.backend_of(client, &query.sql).await else { return };
            match backend.describe(&query.sql, &types).await {
                Ok(described) if !described.columns.is_empty() => {
                    put_description(&described.columns, titles, &mut client.reply);
                }
                Ok(_) => {}
                // the query had not begun
                Err(_) => return,
            }
        }
        let rows = client.reply.open_rows.unwrap_or(0);
        client.reply.command = command(query);
        client.reply.end(Status::empty(), Some(rows));
    }

    /// Whether a CATCH handles the error of a statement that had begun.
    fn is_for_catch(&self, interrupt: &Interrupt) -> bool {
        let Interrupt::Failed(failure) = interrupt else { return false };
        self.tries.are_open() && matches!(failure.ends, Ends::Statement | Ends::Transaction)
    }

    /// After an insert of values into an identity column: the next number follows the greatest of them.
    pub async fn advance_identity(&mut self, client: &mut Client, table: &str) -> Result<(), Interrupt> {
        let sql = format!("select tsql.advance_identity({})", literal(table));
        self.ask(client, &sql).await.map(|_| ())
    }

    /// The rows of the gateway's own SQL, as texts.
    pub async fn ask(
        &mut self,
        client: &mut Client,
        sql: &str,
    ) -> Result<Vec<Vec<Option<String>>>, Interrupt> {
        let backend = &mut self.procedures.backend;
        match backend.ask(sql).await {
            Ok(rows) => Ok(rows),
            Err(error) => {
                backend.message_of(&error, client);
                Err((&error).into())
            }
        }
    }

    /// `select … into`: the SQL that stores the T-SQL declarations of the columns.
    async fn declaring(
        &mut self,
        client: &mut Client,
        query: &Query,
        made: &Relation,
        parameters: &[Parameter<'_>],
        titles: Option<&[Title]>,
    ) -> Result<String, Interrupt> {
        let sql = query.sql.query();
        let columns = self.described(client, &sql, parameters).await?;
        Ok(declaring(made, &columns, titles, &client.dialect()))
    }

    /// The columns of a query, which PostgreSQL describes without running it.
    pub async fn described(
        &mut self,
        client: &mut Client,
        sql: &Sql,
        parameters: &[Parameter<'_>],
    ) -> Result<Arc<[PgColumn]>, Interrupt> {
        let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
        let backend = &mut self.procedures.backend;
        match backend.describe(sql, &types).await {
            Ok(described) => Ok(described.columns.clone()),
            Err(error) => {
                backend.check(&error, client);
                Err((&error).into())
            }
        }
    }

    /// Under `set fmtonly on` a query only returns its columns.
    async fn describe_query(
        &mut self,
        client: &mut Client,
        query: &Query,
        parameters: &[Parameter<'_>],
    ) -> Result<(), Interrupt> {
        let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
        if query.kind != QueryKind::Select || !query.assigns.is_empty() {
            return Ok(());
        }
        let backend = self.procedures.backend_of(client, &query.sql).await?;
        match backend.describe(&query.sql, &types).await {
            Ok(described) => {
                if !described.columns.is_empty() {
                    put_description(&described.columns, query.columns.as_deref(), &mut client.reply);
                    client.reply.command = command(query);
                    client.reply.end(Status::empty(), Some(0));
                }
                client.reply.passed(Some(0));
                Ok(())
            }
            Err(error) => {
                backend.message_of(&error, client);
                Err((&error).into())
            }
        }
    }

    /// `select @a = …`: assigns the last row's values; without a row the variables remain unchanged.
    fn assign_row(
        &self,
        names: &[String],
        variables: &mut Variables<'_>,
        outcome: &Outcome,
        columns: &[PgColumn],
    ) -> Result<(), Failure> {
        let zone = self.gateway.zone();
        let Some(row) = &outcome.row else {
            return Ok(());
        };
        for ((name, column), raw) in names.iter().zip(columns).zip(row_values(row)) {
            let value = match raw {
                None => Value::Null,
                Some(raw) => from_pg(PgType::from_oid(column.oid), raw, &zone).map_err(|error| {
                    let text = format!("Variable '{name}': {error}");
                    Failure::of_value(ServerMessage::error(error.number(), 16, text))
                })?,
            };
            variables.set(name, &value, &zone).map_err(Failure::of_value)?;
        }
        Ok(())
    }

    /// Answers `select @a, @@b` with one row.
    pub async fn put_variables(
        &mut self,
        client: &mut Client,
        names: &[(String, String)],
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        let mut columns = Vec::with_capacity(names.len());
        let mut types = Vec::with_capacity(names.len());
        let mut values = Vec::with_capacity(names.len());
        for (name, alias) in names {
            let (sql_type, value, declared) = match variables.get(name) {
                Some(variable) => (
                    variable.sql_type,
                    variable.value.clone().into_owned(),
                    variable.declared.filter(|of| !of.is_text() || is_narrow(&variable.value)),
                ),
                None => (type_of(name), self.session_value(client, name).await?, None),
            };
            let declared = declared.and_then(|of| declared::of_expression(&of, &client.dialect()));
            let pg_type = PgType::from_oid(sql_type.oid);
            columns.push(Column {
                name: alias.clone(),
                type_info: client_type(pg_type, sql_type.typmod, declared, &client.dialect()),
                traits: Traits::default(),
                table: None,
            });
            types.push(sql_type);
            values.push(value);
        }
        match &mut client.reply.gathering {
            Some(gathering) => {
                gathering.begin_set(types);
                gathering.row(values)?;
            }
            None => client.reply.rows_of(&columns, &[values])?,
        }
        client.reply.command = Command::Select;
        client.reply.end(Status::empty(), Some(1));
        client.reply.passed(Some(1));
        Ok(())
    }
}

/// Refuses new columns that would lose trailing blanks or zeros of their values.
fn refuse_cut_columns(query: &Query) -> Result<(), ServerMessage> {
    let what = match (&query.padded, query.made()) {
        (Some(column), _) => format!("The column '{column}'"),
        (None, Some(_)) => String::from("'select … into'"),
        (None, None) => return Ok(()),
    };
    let text = format!(
        "{what} is not supported under 'set ansi_padding off': blanks and zeros at the end of values are kept. \
         'set ansi_padding on' first."
    );
    Err(ServerMessage::error(102, 15, text))
}

/// Whether every code page can represent a text.
fn is_narrow(value: &Value<'_>) -> bool {
    !matches!(value, Value::Text(text) if !text.is_ascii())
}

/// The headings of a query. If a text among its parameters has characters that may be missing in the client's code
/// page, all texts are described as nchar, nvarchar and ntext.
fn widened<'t>(titles: &'t [Title], parameters: &[Parameter<'_>]) -> Cow<'t, [Title]> {
    if parameters.iter().all(|parameter| is_narrow(&parameter.value)) {
        return Cow::Borrowed(titles);
    }
    titles.iter().map(|title| Title { is_wide: true, ..title.clone() }).collect()
}
