//! Queries: their rows, row counts, and assignments to variables.

use crate::backend::{
    declaring, put_description, uncommittable, Backend, Completed, Parameter, Rows, Source,
};
use crate::calls::Procedures;
use crate::client::Client;
use crate::convert::{client_type, declared, from_pg, PgType, Zone};
use crate::cursors::check_current;
use crate::describe::browsed;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::limits::memory::{self, LONG};
use crate::postgres::commit::Outcome;
use crate::postgres::message::{row_values, PgColumn};
use crate::program::{command, Definition, Query, QueryKind, Sql, Title};
use crate::run::binding::outdated::compile_outdated;
use crate::run::binding::written::{is_outdated, written};
use crate::run::state::identities::advance_identity;
use crate::run::state::session_variables::type_of;
use crate::run::state::State;
use crate::run::variables::Variables;
use crate::tds::tokens::columns::{Column, Traits};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;
use tsql::quoting::literal;
use tsql::resolve::names::Relation;

/// How often a query is repeated when its table moves to another server meanwhile.
const MOST_MOVES: usize = 2;

pub async fn run_query(
    state: &mut State,
    client: &mut Client,
    query: &Query,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    let mut is_again = false;
    loop {
        let written = written(&mut state.procedures, client, &query.sql, query.only_reads()).await?;
        let mut ran = run_written(state, client, written.as_deref().unwrap_or(query), variables).await;
        if !is_outdated(&mut ran, &mut is_again) {
            return ran;
        }
    }
}

async fn run_written(
    state: &mut State,
    client: &mut Client,
    query: &Query,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    let Some(made) = query.made().filter(|made| made.is_global()) else {
        return run_plain(state, client, query, variables).await;
    };
    state
        .procedures
        .backend
        .rows(client, &format!("select tsql.demand_no_global({})", literal(&made.own)))
        .await?;
    // created and noted in one transaction: another session would drop a table that is not noted
    if !state.procedures.backend.begin_own(client).await {
        return run_plain(state, client, query, variables).await;
    }
    let ran = run_plain(state, client, query, variables).await;
    state.procedures.backend.end_own(client, ran.is_ok()).await.map_err(|error| Interrupt::from(&error))?;
    ran
}

/// The checks before a query runs, by the client's settings and the cursor that it names.
async fn check_allowed(state: &mut State, client: &mut Client, query: &Query) -> Result<(), Interrupt> {
    if client.settings().row_limit > 0 && (query.kind.is_change() || query.makes_a_table()) {
        check_limited(&mut state.procedures.backend, client, query).await?;
    }
    if client.settings().cuts_padding {
        refuse_cut_columns(query)?;
    }
    match &query.current {
        Some(current) => check_current(state, client, current).await,
        None => Ok(()),
    }
}

/// Refuses a change that `set rowcount` cannot limit: it limits the statements of triggers too (SQL Server: SET
/// ROWCOUNT), which PostgreSQL runs.
async fn check_limited(backend: &mut Backend, client: &mut Client, query: &Query) -> Result<(), Interrupt> {
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
    match backend.rows(client, &asked).await?.is_empty() {
        true => Ok(()),
        false => Err(refused("a change of a view, or of a table with triggers, is")),
    }
}

async fn run_plain(
    state: &mut State,
    client: &mut Client,
    query: &Query,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    check_allowed(state, client, query).await?;
    let Some((declaring, Completed { outcome, columns })) = run_with(state, client, query, variables).await?
    else {
        return Ok(());
    };
    let backend = &mut state.procedures.backend;
    if let Some(sql) = declaring {
        backend.rows(client, &sql).await?;
        backend.forget_declarations();
    }
    let takes_values = &client.settings().identity_insert;
    if let Some(into) = query.into.clone().filter(|_| query.into == *takes_values) {
        advance_identity(backend, client, &into).await?;
    }
    if let Some(current) = &query.current {
        state.cursors.changed_current(current, &outcome)?;
    }
    if !query.assigns.is_empty() {
        assign_row(&query.assigns, variables, &outcome, &columns, &state.gateway.zone())?;
    }
    if query.kind == QueryKind::Unsaid {
        state.procedures.backend.forget_declarations();
        return Ok(());
    }
    let is_definition = matches!(query.kind, QueryKind::Definition(_));
    let count = outcome.count.filter(|_| !is_definition);
    if query.kind == QueryKind::Select && !query.assigns.is_empty() {
        client.reply.assigned(outcome.count);
    } else {
        client.reply.command = command(query);
        client.reply.end(Status::empty(), count);
    }
    if let QueryKind::Definition(definition) = query.kind {
        has_defined(state, client, definition, &query.sql).await?;
    }
    if query.kind.is_change() {
        state.identities.changed(query.into.as_deref(), outcome.count.unwrap_or(0));
    }
    client.reply.passed(Some(count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0)));
    Ok(())
}

/// Runs a query with the values of its variables. Returns the statement that declares the columns of a table that it has
/// made, and the outcome; None if it has only been described.
async fn run_with(
    state: &mut State,
    client: &mut Client,
    query: &Query,
    variables: &Variables<'_>,
) -> Result<Option<(Option<String>, Completed)>, Interrupt> {
    let parameters = state.parameters(client, &query.sql, variables).await?;
    let titles = query.columns.as_deref().map(|titles| widened(titles, &parameters));
    if client.settings().only_formats {
        describe_query(&mut state.procedures, client, query, &parameters).await?;
        return Ok(None);
    }
    let backend = &mut state.procedures.backend;
    let browsed = match query.browses {
        true => browsed(backend, client, &query.sql, &parameters).await?,
        false => None,
    };
    let declaring = match query.made() {
        Some(made) => {
            Some(declare_columns(backend, client, query, made, &parameters, titles.as_deref()).await?)
        }
        None => None,
    };
    if !query.only_reads() && backend.is_doomed() {
        // also for temporary tables, to which PostgreSQL permits writes
        return Err(uncommittable().into());
    }
    let sql = browsed.as_ref().map_or(&query.sql, |(with_keys, _)| with_keys);
    let rows = match &browsed {
        Some((_, columns)) if goes_to_client(query) => Rows::Browsed(titles.as_deref(), columns),
        None if goes_to_client(query) => Rows::ToClient(titles.as_deref()),
        _ if query.assigns.is_empty() => Rows::Kept,
        _ => Rows::Assigned,
    };
    let in_try = state.nesting.tries > 0 && query.kind.is_change();
    match run_there(&mut state.procedures, client, query, sql, &parameters, rows, in_try).await {
        Ok(completed) => Ok(Some((declaring, completed))),
        Err(interrupt) => {
            if state.nesting.tries > 0 && had_begun(&interrupt) {
                end_caught(&mut state.procedures, client, query, &parameters, titles.as_deref()).await;
            }
            Err(interrupt)
        }
    }
}

fn goes_to_client(query: &Query) -> bool {
    query.assigns.is_empty() && query.current.is_none()
}

/// Runs a query on the server that has its tables, and again if they have moved to another one meanwhile.
async fn run_there<'a>(
    procedures: &mut Procedures,
    client: &mut Client,
    query: &Query,
    sql: &'a Sql,
    parameters: &'a [Parameter<'a>],
    rows: Rows<'_>,
    in_try: bool,
) -> Result<Completed, Interrupt> {
    let (only_reads, calls) = (query.only_reads(), query.sql.facts.calls);
    let mut moved = 0;
    loop {
        let backend = match only_reads {
            true => procedures.backend_of(client, &query.sql).await?,
            false => &mut procedures.backend,
        };
        if !only_reads || calls {
            backend.pin();
        }
        let source = Source::Query { sql, parameters, only_reads, in_try };
        let unfinished = match backend.run(client, source, rows).await {
            Ok(completed) => return Ok(completed),
            Err(unfinished) => unfinished,
        };
        let repeats = only_reads && !calls && moved < MOST_MOVES;
        if !repeats || !procedures.may_have_moved(&unfinished).await {
            return Err(unfinished.into());
        }
        moved += 1;
    }
}

/// Forgets the declarations and prepared queries that a definition has changed, and compiles outdated procedures again.
async fn has_defined(
    state: &mut State,
    client: &mut Client,
    definition: Definition,
    sql: &Sql,
) -> Result<(), Interrupt> {
    let backend = &mut state.procedures.backend;
    backend.forget_declarations();
    let forgotten = match definition {
        // a column's description may change though its type in PostgreSQL is the same
        Definition::AlterTable => backend.forget_prepared(),
        _ => backend.forget_queries_of(sql),
    };
    forgotten.map_err(|error| Interrupt::from(&error))?;
    // TRUNCATE changes no definition
    if definition == Definition::Truncate {
        return Ok(());
    }
    backend.has_defined(sql);
    if !sql.facts.defines_temporary() {
        // what does not fit the tables any more says so when it is called
        compile_outdated(state, client).await?;
    }
    Ok(())
}

/// Ends a query whose error a CATCH handles as without the error, with its columns and the rows sent so far.
/// `select 4/0` in a TRY block gives its column and "(0 row(s) affected)" (SQL Server Programmability Blog,
/// 2006-03-30).
async fn end_caught(
    procedures: &mut Procedures,
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
        let Ok(backend) = procedures.backend_of(client, &query.sql).await else { return };
        // an error: the query had not begun
        let Ok(columns) = backend.columns(client, &query.sql, parameters).await else { return };
        if !columns.is_empty() {
            put_description(&columns, titles, &mut client.reply);
        }
    }
    let rows = client.reply.open_rows.unwrap_or(0);
    client.reply.command = command(query);
    client.reply.end(Status::empty(), Some(rows));
}

/// `select … into`: the SQL that stores the T-SQL declarations of the columns.
async fn declare_columns(
    backend: &mut Backend,
    client: &mut Client,
    query: &Query,
    made: &Relation,
    parameters: &[Parameter<'_>],
    titles: Option<&[Title]>,
) -> Result<String, Interrupt> {
    let sql = query.sql.query();
    let columns = backend.columns(client, &sql, parameters).await?;
    Ok(declaring(made, &columns, titles, query.sql.facts.of_one_table, &client.dialect()))
}

/// Under `set fmtonly on` a query only returns its columns.
async fn describe_query(
    procedures: &mut Procedures,
    client: &mut Client,
    query: &Query,
    parameters: &[Parameter<'_>],
) -> Result<(), Interrupt> {
    if query.kind != QueryKind::Select || !query.assigns.is_empty() {
        return Ok(());
    }
    let backend = procedures.backend_of(client, &query.sql).await?;
    let columns = backend.columns(client, &query.sql, parameters).await?;
    if !columns.is_empty() {
        put_description(&columns, query.columns.as_deref(), &mut client.reply);
        client.reply.command = command(query);
        client.reply.end(Status::empty(), Some(0));
    }
    client.reply.passed(Some(0));
    Ok(())
}

/// `select @a = …`: assigns the last row's values; without a row the variables remain unchanged.
fn assign_row(
    names: &[String],
    variables: &mut Variables<'_>,
    outcome: &Outcome,
    columns: &[PgColumn],
    zone: &Zone,
) -> Result<(), Failure> {
    let Some(row) = &outcome.row else {
        return Ok(());
    };
    for ((name, column), raw) in names.iter().zip(columns).zip(row_values(row)) {
        let value = match raw {
            None => Value::Null,
            Some(raw) => from_pg(PgType::from_oid(column.oid), raw, zone).map_err(|error| {
                let text = format!("Variable '{name}': {error}");
                Failure::of_value(ServerMessage::error(error.number(), 16, text))
            })?,
        };
        variables.set(name, value, zone).map_err(Failure::of_value)?;
    }
    Ok(())
}

/// Answers `select @a, @@b` with one row.
pub async fn put_variables(
    state: &mut State,
    client: &mut Client,
    names: &[(String, String)],
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    let long = names.iter().filter_map(|(name, _)| variables.get(name)).map(|one| one.value.length()).sum();
    let _memory = match long > LONG {
        true => Some(memory::row(long).await.map_err(Failure::of_value)?),
        false => None,
    };
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
            None => (type_of(name), state.session_value(client, name).await?, None),
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
    Ok(client.flush_gathered().await?)
}

/// Whether the statement of an error had begun.
fn had_begun(interrupt: &Interrupt) -> bool {
    matches!(interrupt, Interrupt::Failed(failure) if matches!(failure.ends, Ends::Statement | Ends::Transaction))
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
