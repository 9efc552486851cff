//! Queries: their rows, numbers of rows and the variables they give values to.

use super::failure::{Failure, Stop};
use super::parameters::Parameter;
use super::results::{Ran, Rows, Source};
use super::variables::Variables;
use super::Session;
use crate::convert::{column_type, from_pg, PgType, SqlType};
use crate::postgres::commit::Outcome;
use crate::postgres::connection::{row_values, PgColumn};
use crate::program::{Kind, Query};
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{encode_value, Value};
use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    pub(super) async fn run_query(
        &mut self,
        query: &Query,
        variables: &mut Variables<'_>,
    ) -> Result<(), Stop> {
        if self.settings.row_limit > 0 && query.kind == Kind::Change {
            let text = "Under SET ROWCOUNT only rows that are selected are limited: \
                        insert, update and delete are refused.";
            return Err(ServerMessage::error(195, 15, text).into());
        }
        let rows =
            if query.assigns.is_empty() { Rows::ToClient(query.columns.as_deref()) } else { Rows::Kept };
        let ran = {
            let parameters = self.parameters(&query.sql, variables).await?;
            if self.settings.only_formats {
                return self.describe_query(query, &parameters).await;
            }
            self.backend.pin();
            self.run(Source::Query { sql: &query.sql, parameters: &parameters }, rows).await?
        };
        let (outcome, columns) = match ran {
            Ran::Completed(outcome, columns) => (outcome, columns),
            Ran::Refused(error) | Ran::Failed(error) => return Err((&error).into()),
            Ran::Untellable(message) => return Err(Failure::of_value(message).into()),
            Ran::Cancelled => return Err(Stop::Cancelled),
        };
        if !query.assigns.is_empty() {
            self.assign_row(&query.assigns, variables, &outcome, &columns)?;
        } else if query.kind != Kind::Definition {
            self.end(0, outcome.count);
        }
        if query.kind == Kind::Change {
            self.inserted.clone_from(&query.into);
        }
        let count = outcome.count.and_then(|count| i64::try_from(count).ok());
        self.passed(Some(count.filter(|_| query.kind != Kind::Definition).unwrap_or(0)));
        Ok(())
    }

    /// Under `set fmtonly on` a query tells its columns and does nothing.
    async fn describe_query(&mut self, query: &Query, parameters: &[Parameter<'_>]) -> Result<(), Stop> {
        let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
        if query.kind != Kind::Select || !query.assigns.is_empty() {
            return Ok(());
        }
        match self.describe(&query.sql, &types).await {
            Ok(described) => {
                if !described.columns.is_empty() {
                    self.put_description(&described.columns, query.columns.as_deref());
                    self.end(0, Some(0));
                }
                self.passed(Some(0));
                Ok(())
            }
            Err(error) => {
                self.told(&error);
                Err((&error).into())
            }
        }
    }

    /// `select @a = …`: the last row's values; without a row the variables keep theirs.
    fn assign_row(
        &self,
        names: &[String],
        variables: &mut Variables<'_>,
        outcome: &Outcome,
        columns: &[PgColumn],
    ) -> Result<(), Failure> {
        let zone = self.gateway.zone();
        let Some(row) = &outcome.row else { return Ok(()) };
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

    /// The one row of `select @a, @@b`.
    pub(super) async fn put_variables(
        &mut self,
        names: &[(String, String)],
        variables: &Variables<'_>,
    ) -> Result<(), Stop> {
        let mut columns = Vec::with_capacity(names.len());
        let mut values = Vec::with_capacity(names.len());
        for (name, alias) in names {
            let (sql_type, value) = match variables.get(name) {
                Some(variable) => (variable.sql_type, variable.value.clone().into_owned()),
                None => match self.session_value(name).await? {
                    (SqlType::TEXT, value) => (SqlType::varchar(Some(255)), value),
                    other => other,
                },
            };
            columns.push((alias.clone(), PgType::from_oid(sql_type.oid), sql_type.typmod));
            values.push(value);
        }
        self.put_rows(&columns, &[values])?;
        self.end(0, Some(1));
        self.passed(Some(1));
        Ok(())
    }

    /// A result set that PostgreSQL has no part in: names, types and type modifiers of its columns, and rows.
    pub(super) fn put_rows(
        &mut self,
        columns: &[(String, PgType, i32)],
        rows: &[Vec<Value<'_>>],
    ) -> Result<(), ServerMessage> {
        let dialect = self.client.dialect;
        let columns: Vec<Column> = columns
            .iter()
            .map(|(name, pg_type, typmod)| Column {
                name: name.clone(),
                type_info: column_type(*pg_type, *typmod, &dialect),
            })
            .collect();
        let out = &mut self.client.reply;
        let before = out.len();
        columns::put(out, &columns, &dialect);
        for row in rows {
            out.put_u8(columns::ROW);
            for (column, value) in columns.iter().zip(row) {
                if let Err(error) = encode_value(value, &column.type_info, &dialect, out) {
                    out.truncate(before);
                    return Err(super::results::untellable(&format!("Column '{}'", column.name), &error));
                }
            }
        }
        Ok(())
    }
}
