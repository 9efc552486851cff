//! Table parameters: filled from a table variable of the caller, or with the rows that a client has sent.

use super::insert_rows::{insert_sets, ROWS};
use super::query::run_query;
use super::state::State;
use super::variables::Variables;
use crate::backend::Backend;
use crate::client::{Client, GatheredSet};
use crate::convert::SqlType;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::program::{Filled, GivenTable};
use crate::tds::dialect::Dialect;
use crate::tds::table_value::{SentColumn, SentRow, TableValue};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{decode_value, Value};

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
    let is_sent = |place: &usize| columns.get(*place).is_some_and(|column| !column.is_default);
    if given.identity.is_some_and(|place| is_sent(&place)) {
        let text = "INSERT into an identity column not allowed on table variables.";
        return Err(ServerMessage::error(1077, 16, text));
    }
    if let Some(column) = given.computed.iter().find(|place| is_sent(place)).and_then(|place| all.get(*place))
    {
        let text = format!(
            "The column \"{column}\" cannot be modified because it is either a computed column or is the result of a \
             UNION operator."
        );
        return Err(ServerMessage::error(271, 16, text));
    }
    let filled: Vec<String> =
        all.iter().enumerate().filter(|(place, _)| is_sent(place)).map(|(_, name)| name.clone()).collect();
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
