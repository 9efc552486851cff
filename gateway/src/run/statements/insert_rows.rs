//! Inserts of rows that the gateway has: those that INSERT … EXECUTE keeps, and those that a client has sent for a table
//! parameter, which may also be filled from a table variable of the caller.

use super::query::run_query;
use crate::backend::{Backend, Completed, Parameter, Rows, Source};
use crate::client::{Client, GatheredSet};
use crate::convert::SqlType;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::program::{refusal, Filled, GivenTable};
use crate::run::binding::demanded::no_relation;
use crate::run::state::identities::advance_identity;
use crate::run::state::State;
use crate::run::variables::Variables;
use crate::tds::dialect::Dialect;
use crate::tds::table_value::{SentColumn, SentRow, TableValue};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{decode_value, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter;
use tsql::facts::types::Type;
use tsql::schema::Schema;

/// The numbers of rows inserted by one statement of PostgreSQL: only four, since each is prepared.
const ROWS: [usize; 4] = [256, 32, 4, 1];
/// The most parameters of one statement, within PostgreSQL's 16-bit count.
const MOST_PARAMETERS: usize = 30_000;

/// The target with its columns, as the table has them now: another session may have changed it. Error 213: the rows have
/// more or fewer values.
pub async fn present(
    backend: &mut Backend,
    client: &mut Client,
    target: &Filled,
    sets: &[GatheredSet],
) -> Result<Filled, Interrupt> {
    let declared = backend.read_declarations(&BTreeSet::from([target.table.clone()])).await;
    let declared = backend.checked(client, declared)?.table(&target.table);
    let number = |set: &GatheredSet| set.types.len();
    if let Some(columns) = &target.columns {
        return match sets.iter().all(|set| number(set) == columns.len()) {
            true => Ok(target.clone()),
            false => Err(refusal(&tsql::schema::other_number(1)).into()),
        };
    }
    let declared = declared.ok_or_else(|| Failure::from(&no_relation(&target.table)))?;
    for set in sets {
        declared.demand_values(&target.table, number(set), 1).map_err(|error| refusal(&error))?;
    }
    let columns = declared.filled().map(|column| column.name.clone()).collect();
    Ok(Filled { columns: Some(columns), ..target.clone() })
}

pub async fn insert_sets(
    backend: &mut Backend,
    client: &mut Client,
    target: &Filled,
    sets: &[GatheredSet],
) -> Result<u64, Interrupt> {
    let dialect = client.dialect().of_texts();
    let declared = backend.declared(iter::once(&target.table)).await;
    let declared = backend.checked(client, declared)?.table(&target.table);
    let mut inserted = 0;
    for set in sets {
        let width = set.types.len();
        let types: Vec<Type> = set.types.iter().map(SqlType::in_tsql).collect();
        let mut rest = set.rows.as_slice();
        while !rest.is_empty() {
            let fits = |rows: &&usize| **rows <= rest.len() && **rows * width <= MOST_PARAMETERS;
            let (rows, tail) = rest.split_at(ROWS.iter().find(fits).copied().unwrap_or(1));
            rest = tail;
            let sql = tsql::insert_of_rows(target, declared.clone(), &types, rows.len(), dialect)
                .map_err(|error| refusal(&error))?;
            let values = rows.iter().flat_map(|row| row.iter().zip(&set.types));
            let parameters: Vec<Parameter<'_>> = values
                .zip(&sql.variables)
                .map(|((value, sql_type), name)| Parameter {
                    name,
                    sql_type: *sql_type,
                    value: Cow::Borrowed(value),
                })
                .collect();
            let source =
                Source::Query { sql: &sql, parameters: &parameters, only_reads: false, in_try: false };
            let Completed { outcome, .. } = backend.run(client, source, Rows::Kept).await?;
            inserted += outcome.count.unwrap_or(0);
        }
    }
    if target.with_identity {
        advance_identity(backend, client, &target.table).await?;
    }
    Ok(inserted)
}

/// Fills the table of a parameter; if that fails, nothing else of the procedure or text runs.
pub async fn give_table(
    state: &mut State,
    client: &mut Client,
    given: &GivenTable,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    let filled = match variables.take_sent(&given.parameter) {
        Some(sent) => insert_sent(&mut state.procedures.backend, client, given, &sent).await,
        None => run_query(state, client, &given.copy, variables).await,
    };
    filled.map_err(|interrupt| match interrupt {
        Interrupt::Failed(failure) if failure.ends == Ends::Statement => {
            Failure { ends: Ends::Text, ..failure }.into()
        }
        interrupt => interrupt,
    })
}

async fn insert_sent(
    backend: &mut Backend,
    client: &mut Client,
    given: &GivenTable,
    sent: &TableValue<'_>,
) -> Result<(), Interrupt> {
    let database = &backend.database;
    check_type(given, sent, database).map_err(Failure::of_statement)?;
    let Some(columns) = &sent.columns else { return Ok(()) };
    let target = target(given, columns).map_err(Failure::of_statement)?;
    let dialect = client.dialect();
    let columns: Vec<_> = columns.iter().filter(|column| !column.is_default).collect();
    let mut rows = sent.rows(&dialect);
    loop {
        let next = rows.by_ref().take(ROWS[0]).map(|row| {
            let row = row.map_err(|error| ServerMessage::error(4002, 16, error.to_string()))?;
            values(&row, &columns, given, &dialect)
        });
        let next = next.collect::<Result<Vec<_>, _>>().map_err(Failure::of_statement)?;
        if next.is_empty() {
            return Ok(());
        }
        let types = columns.iter().map(|column| SqlType::of_wire(&column.type_info)).collect();
        insert_sets(backend, client, &target, &[GatheredSet { types, rows: next }]).await?;
    }
}

/// 206: the table is of another type than the parameter.
fn check_type(given: &GivenTable, sent: &TableValue<'_>, database: &str) -> Result<(), ServerMessage> {
    let is_here = ["", "dbo", database].iter().any(|schema| sent.schema.eq_ignore_ascii_case(schema));
    let name = &sent.type_name;
    if name.is_empty() || (is_here && name.to_lowercase() == given.type_name.to_lowercase()) {
        return Ok(());
    }
    let text = format!("Operand type clash: {name} is incompatible with {}", given.type_name);
    Err(ServerMessage { state: 2, ..ServerMessage::error(206, 16, text) })
}

/// The columns that the rows fill.
fn target(given: &GivenTable, columns: &[SentColumn]) -> Result<Filled, ServerMessage> {
    let all = given.target.columns.as_deref().unwrap_or(&[]);
    if columns.len() != all.len() {
        let text = format!(
            "Trying to pass a table-valued parameter with {} column(s) where the corresponding user-defined table \
             type requires {} column(s).",
            columns.len(),
            all.len()
        );
        return Err(ServerMessage::error(500, 16, text));
    }
    let is_sent = |index: &usize| columns.get(*index).is_some_and(|column| !column.is_default);
    if given.identity.is_some_and(|index| is_sent(&index)) {
        let text = "INSERT into an identity column not allowed on table variables.";
        return Err(ServerMessage::error(1077, 16, text));
    }
    if let Some(column) = given.computed.iter().find(|index| is_sent(index)).and_then(|index| all.get(*index))
    {
        let text = format!(
            "The column \"{column}\" cannot be modified because it is either a computed column or is the result of a \
             UNION operator."
        );
        return Err(ServerMessage::error(271, 16, text));
    }
    let filled: Vec<String> =
        all.iter().enumerate().filter(|(index, _)| is_sent(index)).map(|(_, name)| name.clone()).collect();
    if filled.is_empty() {
        let text = "'table-valued parameter' is not understood where all its columns are defaults.";
        return Err(ServerMessage::error(102, 15, text));
    }
    Ok(Filled { table: given.target.table.clone(), columns: Some(filled), with_identity: false })
}

fn values(
    row: &SentRow<'_>,
    columns: &[&SentColumn],
    given: &GivenTable,
    dialect: &Dialect,
) -> Result<Vec<Value<'static>>, ServerMessage> {
    let value = |(raw, column): (&Option<_>, &&SentColumn)| {
        decode_value(raw.as_deref(), &column.type_info, dialect).map(Value::into_owned)
    };
    row.iter().zip(columns).map(value).collect::<Result<_, _>>().map_err(|error| {
        ServerMessage::error(error.number(), 16, format!("Parameter '{}': {error}", given.parameter))
    })
}
