//! What expressions and variables are worth when a statement wants them.

use super::failure::{Failure, Stop};
use super::parameters::Parameter;
use super::results::{Ran, Rows, Source};
use super::settings::{self, State};
use super::variables::Variables;
use super::Session;
use crate::convert::{from_pg, PgType, SqlType};
use crate::postgres::connection::row_values;
use crate::program::{Argument, Expression, Sql};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use crate::text::batch::undeclared;
use std::borrow::Cow;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    pub(super) async fn value<'a>(
        &mut self,
        expression: &Expression,
        variables: &Variables<'a>,
    ) -> Result<Value<'a>, Stop> {
        match expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Variable(name) => match variables.get(name) {
                Some(variable) => Ok(variable.value.clone()),
                None => Ok(self.session_value(name).await?.1),
            },
            Expression::Sql(sql) => {
                let values = self.evaluate(sql, variables).await?;
                Ok(values.into_iter().next().unwrap_or(Value::Null))
            }
        }
    }

    /// The one row of `sql`; nothing of it goes to the client.
    pub(super) async fn evaluate(
        &mut self,
        sql: &Sql,
        variables: &Variables<'_>,
    ) -> Result<Vec<Value<'static>>, Stop> {
        let parameters = self.parameters(sql, variables).await?;
        self.backend.pin();
        let ran = self.run(Source::Query { sql, parameters: &parameters }, Rows::Kept).await?;
        let (outcome, columns) = match ran {
            Ran::Completed(outcome, columns) => (outcome, columns),
            Ran::Refused(error) | Ran::Failed(error) => return Err((&error).into()),
            Ran::Untellable(message) => return Err(Failure::of_value(message).into()),
            Ran::Cancelled => return Err(Stop::Cancelled),
        };
        let Some(row) = &outcome.row else { return Ok(Vec::new()) };
        let zone = self.gateway.zone();
        let value = |(raw, column): (Option<&[u8]>, &crate::postgres::connection::PgColumn)| match raw {
            None => Ok(Value::Null),
            Some(raw) => from_pg(PgType::from_oid(column.oid), raw, &zone).map(Value::into_owned),
        };
        let values: Result<_, _> = row_values(row).zip(columns.iter()).map(value).collect();
        values.map_err(|error| Failure::of_value(ServerMessage::error(error.number(), 16, error.text)).into())
    }

    /// What the variables of `sql` stand for.
    pub(super) async fn parameters<'v>(
        &mut self,
        sql: &'v Sql,
        variables: &'v Variables<'_>,
    ) -> Result<Vec<Parameter<'v>>, Stop> {
        let mut parameters = Vec::with_capacity(sql.variables.len());
        for name in &sql.variables {
            let (sql_type, value) = match variables.get(name) {
                Some(variable) => (variable.sql_type, Cow::Borrowed(&variable.value)),
                None => {
                    let (sql_type, value) = self.session_value(name).await?;
                    (sql_type, Cow::Owned(value))
                }
            };
            parameters.push(Parameter { name, sql_type, value });
        }
        Ok(parameters)
    }

    /// The arguments of an `exec` in the text.
    pub(super) async fn params<'a>(
        &mut self,
        arguments: &[Argument],
        variables: &Variables<'a>,
    ) -> Result<Vec<Param<'a>>, Stop> {
        let mut params = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let name = argument.name.clone();
            params.push(match &argument.value {
                None => Param::default(name),
                Some(value) => Param::of_text(name, self.value(value, variables).await?, argument.output),
            });
        }
        Ok(params)
    }

    /// The value of an `@@` variable and its type.
    pub(super) async fn session_value(&mut self, name: &str) -> Result<(SqlType, Value<'static>), Stop> {
        if name == "@@identity" {
            return Ok((SqlType::numeric(38, 0), self.identity().await?));
        }
        let state = State {
            dialect: &self.client.dialect,
            settings: &self.settings,
            spid: self.spid,
            row_count: self.row_count,
            error: self.error,
            transactions: self.transaction.depth,
            charset: &self.login.charset,
            packet_size: self.client.packet_size(),
            nesting: self.depth,
            login: &self.login,
            database: &self.database,
            caught: self.tries.caught(),
        };
        settings::variable(&state, name).ok_or_else(|| undeclared(name).into())
    }

    /// What an identity column gave to the row inserted last; NULL when the table has none.
    async fn identity(&mut self) -> Result<Value<'static>, Stop> {
        if !self.backend.is_open() {
            return Ok(Value::Null);
        }
        let sql = match &self.inserted {
            Some(table) => {
                let table = table.replace('\'', "''");
                format!(
                    "select pg_catalog.currval(pg_catalog.pg_get_serial_sequence('{table}', attname)) \
                     from pg_catalog.pg_attribute \
                     where attrelid = pg_catalog.to_regclass('{table}') and attidentity <> ''"
                )
            }
            None => String::from("select pg_catalog.lastval()"),
        };
        match self.ask(&sql).await {
            Ok(rows) => {
                let number = rows.into_iter().flatten().next().flatten().and_then(|text| text.parse().ok());
                Ok(number.map_or(Value::Null, Value::Int))
            }
            // object_not_in_prerequisite_state: no number was given in this session
            Err(error) if error.sqlstate() == Some("55000") => Ok(Value::Null),
            Err(error) => {
                self.told(&error);
                Err((&error).into())
            }
        }
    }
}
