//! The system procedures through which 7.x clients run parameterised text (MS-TDS 2.2.6.6).

use super::call::{CallEnd, Returned};
use super::prepared::Prepared;
use super::variables::Variables;
use super::{Ended, Session, SessionError};
use crate::convert::{PgType, SqlType};
use crate::program::{Action, Program, Statement};
use crate::tds::call::Param;
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use crate::text::declaration;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    ExecuteSql,
    Prepare,
    Execute,
    PrepareAndExecute,
    Unprepare,
    ResetConnection,
    DatatypeInfo,
    /// Known and not served.
    Refused(&'static str),
}

/// Names by number; those not served have no other meaning here.
const NUMBERED: [&str; 15] = [
    "sp_cursor",
    "sp_cursoropen",
    "sp_cursorprepare",
    "sp_cursorexecute",
    "sp_cursorprepexec",
    "sp_cursorunprepare",
    "sp_cursorfetch",
    "sp_cursoroption",
    "sp_cursorclose",
    "sp_executesql",
    "sp_prepare",
    "sp_execute",
    "sp_prepexec",
    "sp_prepexecrpc",
    "sp_unprepare",
];

impl System {
    pub fn numbered(number: u16) -> Option<System> {
        let name = usize::from(number).checked_sub(1).and_then(|index| NUMBERED.get(index))?;
        System::named(name)
    }

    pub fn named(name: &str) -> Option<System> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "sp_executesql" => System::ExecuteSql,
            "sp_prepare" => System::Prepare,
            "sp_execute" => System::Execute,
            "sp_prepexec" => System::PrepareAndExecute,
            "sp_unprepare" => System::Unprepare,
            "sp_reset_connection" => System::ResetConnection,
            "sp_datatype_info" | "sp_datatype_info_90" | "sp_datatype_info_100" => System::DatatypeInfo,
            _ => System::Refused(NUMBERED.iter().find(|known| **known == name)?),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    pub(super) async fn run_system(
        &mut self,
        system: System,
        params: &[Param<'_>],
    ) -> Result<CallEnd, SessionError> {
        let end = match system {
            System::ExecuteSql => match self.prepared_from(params, 1, 0).await {
                Ok(prepared) => {
                    let rest = params.get(2..).unwrap_or(&[]);
                    return self.execute(&prepared, rest, 2, None).await;
                }
                Err(message) => Err(message),
            },
            System::Prepare => return self.prepare(params).await,
            System::PrepareAndExecute => match self.prepared_from(params, 1, 2).await {
                Ok(prepared) => match self.prepared.keep(prepared.clone()) {
                    Ok(handle) => {
                        let rest = params.get(3..).unwrap_or(&[]);
                        return self.execute(&prepared, rest, 3, Some(handle)).await;
                    }
                    Err(message) => Err(message),
                },
                Err(message) => Err(message),
            },
            System::Execute => match self.prepared_by_handle(params) {
                Ok(prepared) => {
                    let rest = params.get(1..).unwrap_or(&[]);
                    return self.execute(&prepared, rest, 1, None).await;
                }
                Err(message) => Err(message),
            },
            System::Unprepare => self.handle(params).and_then(|handle| match self.prepared.close(handle) {
                true => Ok(CallEnd::returned(0)),
                false => Err(no_such_handle(handle)),
            }),
            System::ResetConnection => {
                self.reset(false).await;
                Ok(CallEnd::returned(0))
            }
            System::DatatypeInfo => return self.datatype_info(params),
            System::Refused(name) => Err(ServerMessage::error(
                2812,
                16,
                format!("{name} is not served: rows come as they are found, without server cursors."),
            )),
        };
        Ok(end.unwrap_or_else(CallEnd::Failed))
    }

    /// The statement whose declarations and text are these of `params`.
    async fn prepared_from(
        &self,
        params: &[Param<'_>],
        declarations: usize,
        text: usize,
    ) -> Result<Arc<Prepared>, ServerMessage> {
        let text = self.text_of(params, text)?.ok_or_else(|| {
            ServerMessage::error(214, 16, "The procedure expects the text of a statement, not NULL.")
        })?;
        let declarations = match self.text_of(params, declarations)? {
            Some(declarations) => declaration::parse(&declarations)?,
            None => Vec::new(),
        };
        let mut settings = self.compiling();
        for declaration in &declarations {
            settings.declare(&declaration.name, declaration.sql_type);
        }
        let program = self.program(&text, &settings).await?;
        Ok(Arc::new(Prepared { declarations, program, size: text.len() }))
    }

    fn text_of(&self, params: &[Param<'_>], index: usize) -> Result<Option<String>, ServerMessage> {
        let Some(param) = params.get(index) else { return Ok(None) };
        match param.value(&self.client.dialect) {
            Ok(Value::Text(text)) => Ok(Some(text.into_owned())),
            Ok(Value::Null) => Ok(None),
            Ok(other) => Err(ServerMessage::error(
                214,
                16,
                format!("Parameter {} must be a text and is {}.", index + 1, other.kind()),
            )),
            Err(error) => {
                Err(ServerMessage::error(error.number(), 16, format!("Parameter {}: {error}", index + 1)))
            }
        }
    }

    fn handle(&self, params: &[Param<'_>]) -> Result<i32, ServerMessage> {
        let value = params.first().and_then(|param| param.value(&self.client.dialect).ok());
        match value {
            Some(Value::Int(handle)) => i32::try_from(handle).map_err(|_| no_such_handle(handle)),
            _ => Err(ServerMessage::error(214, 16, "The procedure expects the handle of a statement.")),
        }
    }

    fn prepared_by_handle(&self, params: &[Param<'_>]) -> Result<Arc<Prepared>, ServerMessage> {
        let handle = self.handle(params)?;
        self.prepared.get(handle).ok_or_else(|| no_such_handle(handle))
    }

    /// sp_prepare: handle, declarations, text, options.
    async fn prepare(&mut self, params: &[Param<'_>]) -> Result<CallEnd, SessionError> {
        /// option bit: the client wants the columns at once
        const RETURN_METADATA: i64 = 1;
        let options = params.get(3).and_then(|param| param.value(&self.client.dialect).ok());
        let wants_columns = matches!(options, Some(Value::Int(options)) if options & RETURN_METADATA != 0);
        let prepared = match self.prepared_from(params, 1, 2).await {
            Ok(prepared) => prepared,
            Err(message) => return Ok(CallEnd::Failed(message)),
        };
        if let [Statement { action: Action::Query(query), .. }] = prepared.program.statements.as_slice() {
            let type_of = |name: &String| {
                let declared = prepared.declarations.iter().find(|declaration| declaration.name == *name);
                declared.map_or(SqlType::TEXT, |declaration| declaration.sql_type)
            };
            let types: Vec<SqlType> = query.sql.variables.iter().map(type_of).collect();
            match self.describe(&query.sql, &types).await {
                Ok(described)
                    if wants_columns && !described.columns.is_empty() && query.assigns.is_empty() =>
                {
                    self.put_description(&described.columns, query.columns.as_deref());
                    self.client.done(Done::InProcedure, self.done_status(done::MORE), None);
                }
                Ok(_) => {}
                Err(error) => return Ok(CallEnd::Failed(self.told(&error))),
            }
        }
        Ok(match self.prepared.keep(prepared) {
            Ok(handle) => CallEnd::Returned { status: 0, outputs: vec![handle_of(handle)], rows: None },
            Err(message) => CallEnd::Failed(message),
        })
    }

    /// Runs a statement with what `params` give to its variables. `ordinal`: the place of the first of them
    /// in the whole call.
    async fn execute(
        &mut self,
        prepared: &Prepared,
        params: &[Param<'_>],
        ordinal: usize,
        handle: Option<i32>,
    ) -> Result<CallEnd, SessionError> {
        let dialect = self.client.dialect;
        let variables = Variables::bind(&prepared.declarations, params, ordinal, &dialect);
        let mut variables = match variables {
            Ok(variables) => variables,
            Err(message) => return Ok(CallEnd::Failed(message)),
        };
        let ended = self.run_nested(&prepared.program, &mut variables).await?;
        let mut outputs: Vec<Returned> = handle.map(handle_of).into_iter().collect();
        outputs.extend(variables.returned());
        Ok(match ended {
            Ended::Cancelled => CallEnd::CancelledInside,
            // a handle is told all the same: the client has to close it
            Ended::Failed => CallEnd::FailedInside { outputs, aborted: false },
            Ended::Aborted => CallEnd::FailedInside { outputs, aborted: true },
            Ended::Thrown => CallEnd::Thrown,
            Ended::Well => CallEnd::Returned { status: 0, outputs, rows: None },
        })
    }

    /// Runs statements as those of a procedure: its own end follows theirs.
    async fn run_nested(
        &mut self,
        program: &Program,
        variables: &mut Variables<'_>,
    ) -> Result<Ended, SessionError> {
        self.nesting += 1;
        // boxed: the statements may be calls again
        let ran = Box::pin(self.run_statements(&program.statements, variables)).await;
        self.nesting -= 1;
        ran
    }
}

fn no_such_handle(handle: impl std::fmt::Display) -> ServerMessage {
    ServerMessage::error(8179, 16, format!("Could not find prepared statement with handle {handle}."))
}

fn handle_of(handle: i32) -> Returned {
    Returned {
        index: 0,
        name: String::from("handle"),
        value: Value::Int(i64::from(handle)),
        pg_type: PgType::Int4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_by_number_and_name() {
        assert_eq!(System::numbered(10), Some(System::ExecuteSql));
        assert_eq!(System::numbered(13), Some(System::PrepareAndExecute));
        assert_eq!(System::numbered(15), Some(System::Unprepare));
        assert_eq!(System::numbered(2), Some(System::Refused("sp_cursoropen")));
        assert_eq!((System::numbered(0), System::numbered(16)), (None, None));
        assert_eq!(System::named("SP_PrepExecRpc"), Some(System::Refused("sp_prepexecrpc")));
        assert_eq!(System::named("put_a"), None);
    }
}
