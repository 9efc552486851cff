//! Evaluates the expressions and variables of a statement.

use super::binding::written::{is_outdated, written};
use super::state::identities::latest_version;
use super::state::session_variables::{type_of, variable};
use super::state::State;
use super::variables::{owned, Variables, MOST_BYTES};
use crate::backend::{Completed, Parameter, Rows, Source};
use crate::client::Client;
use crate::convert::{from_pg, PgType, SqlType, Zone};
use crate::interrupt::{Failure, Interrupt};
use crate::limits::memory::Kept;
use crate::postgres::commit::Outcome;
use crate::postgres::message::{row_values, PgColumn};
use crate::program::{undeclared, value_of, Argument, Expression, Sql, CLOCKS, CURRENT};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;

impl State {
    pub async fn value<'a>(
        &mut self,
        client: &mut Client,
        expression: &Expression,
        variables: &Variables<'a>,
    ) -> Result<Value<'a>, Interrupt> {
        match expression {
            Expression::Literal(literal) => Ok(value_of(literal)),
            Expression::Variable(name) => match variables.get(name) {
                Some(variable) => Ok(variable.value.clone()),
                None => self.session_value(client, name).await,
            },
            Expression::Sql(sql) => {
                let values = self.evaluate(client, sql, variables).await?;
                Ok(values.into_iter().next().unwrap_or(Value::Null))
            }
        }
    }

    /// Runs `sql` and returns its only row; nothing is sent to the client.
    pub async fn evaluate(
        &mut self,
        client: &mut Client,
        sql: &Sql,
        variables: &Variables<'_>,
    ) -> Result<Vec<Value<'static>>, Interrupt> {
        let mut is_again = false;
        loop {
            let written = written(&mut self.procedures, client, sql, true).await?;
            let now = written.as_deref().map_or(sql, |query| &query.sql);
            let mut values = self.evaluate_written(client, now, variables).await;
            if !is_outdated(&mut values, &mut is_again) {
                return values;
            }
        }
    }

    async fn evaluate_written(
        &mut self,
        client: &mut Client,
        sql: &Sql,
        variables: &Variables<'_>,
    ) -> Result<Vec<Value<'static>>, Interrupt> {
        let parameters = self.parameters(client, sql, variables).await?;
        let source = Source::Query { sql, parameters: &parameters, only_reads: true, in_try: false };
        let backend = self.procedures.backend_of(client, sql).await?;
        if sql.facts.calls {
            backend.pin();
        }
        let Completed { outcome, columns } = backend.run(client, source, Rows::Kept).await?;
        Ok(values(&outcome, &columns, &self.gateway.zone())?)
    }

    /// The values of the variables of `sql`.
    pub async fn parameters<'v>(
        &mut self,
        client: &mut Client,
        sql: &'v Sql,
        variables: &'v Variables<'_>,
    ) -> Result<Vec<Parameter<'v>>, Interrupt> {
        let mut parameters = Vec::with_capacity(sql.variables.len());
        let mut clocks = Vec::new();
        for name in &sql.variables {
            if let Some(index) = CLOCKS.iter().position(|clock| clock == name) {
                if clocks.is_empty() {
                    clocks = Box::pin(self.clocks(client)).await?;
                }
                let value = clocks.get(index).cloned().unwrap_or(Value::Null);
                parameters.push(Parameter { name, sql_type: SqlType::TIMESTAMP, value: Cow::Owned(value) });
                continue;
            }
            let (sql_type, value) = match variables.get(name) {
                Some(variable) => (variable.sql_type, Cow::Borrowed(&variable.value)),
                None => (type_of(name), Cow::Owned(self.session_value(client, name).await?)),
            };
            parameters.push(Parameter { name, sql_type, value });
        }
        Ok(parameters)
    }

    /// The time of the statement, in the form of each of CLOCKS.
    async fn clocks(&mut self, client: &mut Client) -> Result<Vec<Value<'static>>, Interrupt> {
        let asked = "select tsql.sysdatetime(), tsql.sysutcdatetime()";
        let mut sql = Sql::plain(asked);
        (sql.facts.calls, sql.facts.reads) = (false, false);
        self.evaluate(client, &sql, &Variables::default()).await
    }

    /// The arguments of an `exec` in the text, and their memory.
    pub async fn params<'a>(
        &mut self,
        client: &mut Client,
        arguments: &[Argument],
        variables: &Variables<'a>,
    ) -> Result<(Vec<Param<'a>>, Kept), Interrupt> {
        let mut params = Vec::with_capacity(arguments.len());
        let (mut kept, mut bytes) = (Kept::default(), 0);
        for argument in arguments {
            let name = argument.name.clone();
            params.push(match &argument.value {
                None => Param::default(name),
                Some(value) => {
                    let value = self.value(client, value, variables).await?;
                    bytes += owned(&value);
                    kept.keep(bytes, MOST_BYTES, "arguments").map_err(Failure::of_value)?;
                    Param::of_text(name, value, argument.output).of_type(argument.of)
                }
            });
        }
        Ok((params, kept))
    }

    /// The value of an `@@` variable.
    pub async fn session_value(
        &mut self,
        client: &mut Client,
        name: &str,
    ) -> Result<Value<'static>, Interrupt> {
        if name == "@@identity" {
            return self.identities.latest(&mut self.procedures.backend, client).await;
        }
        if let Some(cursor) = name.strip_prefix(CURRENT) {
            return Ok(self.cursors.row_version(cursor));
        }
        if name == "@@dbts" {
            return latest_version(&mut self.procedures.backend, client).await;
        }
        if name == "@@scope_identity" {
            return self.identities.of_scope(&mut self.procedures.backend, client).await;
        }
        if name == "@@transtate" {
            let state = self.procedures.backend.transaction_state.number().ok_or_else(|| {
                let text = "'@@transtate' is not supported after a statement that has failed outside of a \
                            transaction: test @@error.";
                ServerMessage::error(102, 15, text)
            })?;
            return Ok(Value::Int(state));
        }
        variable(self, client, name).ok_or_else(|| undeclared(name).into())
    }

    /// Converts values by `taken`, the SQL of their conversions.
    pub async fn taken(
        &mut self,
        client: &mut Client,
        taken: &Sql,
        values: Vec<(SqlType, Value<'static>)>,
    ) -> Result<Vec<Value<'static>>, Interrupt> {
        let mut variables = Variables::default();
        for (number, (sql_type, value)) in (1..).zip(values) {
            variables.hold(format!("#taken_{number}"), sql_type, value);
        }
        variables.count().map_err(Failure::of_value)?;
        self.evaluate(client, taken, &variables).await
    }
}

/// The values of the row in these columns; none if there is no row.
pub fn values(outcome: &Outcome, columns: &[PgColumn], zone: &Zone) -> Result<Vec<Value<'static>>, Failure> {
    let value = |(raw, column): (Option<&[u8]>, &PgColumn)| match raw {
        None => Ok(Value::Null),
        Some(raw) => from_pg(PgType::from_oid(column.oid), raw, zone).map(Value::into_owned),
    };
    let values: Result<_, _> = outcome.row.iter().flat_map(row_values).zip(columns).map(value).collect();
    values.map_err(|error| Failure::of_value(ServerMessage::error(error.number(), 16, error.text)))
}
