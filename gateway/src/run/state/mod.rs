//! The state of a session that its statements read and change, and the compilation of texts under it.

pub(super) mod identities;
pub(super) mod nesting;
pub(super) mod session_variables;

use super::binding::under_schema;
use super::variables::Variables;
use crate::calls::Procedures;
use crate::catalogue::Text;
use crate::client::{self, refuse_settings, Client};
use crate::cursors::Cursors;
use crate::gateway::{Gateway, DEFAULT_DATABASES};
use crate::postgres::message::PgColumn;
use crate::program::{refusal, Asking, Compiled, Declaration, Latest, Program, Settings, Sql};
use crate::tds::login::Login;
use crate::tds::tokens::envchange;
use crate::tds::tokens::message::ServerMessage;
use identities::Identities;
use nesting::Nesting;
use std::future::ready;
use std::sync::Arc;
use tsql::facts::types::TABLE;
use tsql::Databases;

/// A text that follows in the client's next message.
pub struct AwaitedText {
    pub change: Sql,
    /// The values that the statement names.
    pub named: Variables<'static>,
    pub column: PgColumn,
}

pub struct State {
    pub gateway: Arc<Gateway>,
    pub procedures: Procedures,
    pub spid: u16,
    pub login: Login,
    first_database: String,
    latest: Latest,
    pub nesting: Nesting,
    pub cursors: Cursors,
    pub identities: Identities,
    /// `set context_info`: 128 bytes, which remain set after a procedure returns.
    pub context: Option<Vec<u8>>,
    /// Set between a `writetext bulk` and its text.
    pub awaited_text: Option<Box<AwaitedText>>,
}

impl State {
    pub fn new(gateway: Arc<Gateway>, procedures: Procedures, spid: u16, login: Login) -> State {
        State {
            gateway,
            spid,
            login,
            first_database: procedures.backend.database.clone(),
            procedures,
            latest: Latest::default(),
            nesting: Nesting::default(),
            cursors: Cursors::default(),
            identities: Identities::default(),
            context: None,
            awaited_text: None,
        }
    }

    /// Resets the session to its state after login.
    pub async fn reset(&mut self, client: &mut Client, keep_transaction: bool) {
        self.procedures.backend.reset(client, keep_transaction).await;
        client.set(client::Settings::new(&client.dialect(), self.login.is_odbc));
        self.procedures.backend.database.clone_from(&self.first_database);
        self.procedures.forget_plans();
        self.context = None;
        self.cursors = Cursors::default();
        self.identities = Identities::default();
        client.reply.passed(Some(0));
        let dialect = client.dialect();
        envchange::put_reset(&mut client.reply.tokens, &dialect);
    }

    pub async fn use_database(&mut self, client: &mut Client, name: &str) -> Result<(), ServerMessage> {
        let backend = &mut self.procedures.backend;
        let before = backend.database.clone();
        if self.gateway.is_default_database(name) {
            backend.database.clone_from(&self.first_database);
        } else {
            match backend.use_database(name).await {
                Ok(()) => {}
                Err(error) if self.gateway.may_mean_default(name, &error) => {
                    backend.database.clone_from(&self.first_database);
                }
                Err(error) => return Err(backend.message_of(&error, client)),
            }
        }
        // an unqualified name may now refer to another procedure
        self.procedures.forget_plans();
        self.put_database(client, &before);
        Ok(())
    }

    /// Uses this database again, after a text that may have changed it.
    pub fn return_to_database(&mut self, client: &mut Client, name: String) {
        let database = &mut self.procedures.backend.database;
        if *database != name {
            let before = std::mem::replace(database, name);
            self.procedures.forget_plans();
            self.put_database(client, &before);
        }
    }

    /// Sends the name of the current database. `before`: the previous one, which jTDS compares.
    pub fn put_database(&self, client: &mut Client, before: &str) {
        let dialect = client.dialect();
        let database = &self.procedures.backend.database;
        envchange::put_text(&mut client.reply.tokens, envchange::Text::Database, database, before, &dialect);
        client
            .reply
            .message(&ServerMessage::info(5701, format!("Changed database context to '{database}'.")));
    }

    /// The databases as the session sees them, with those names that stand for its first one.
    fn databases(&self) -> Arc<Databases> {
        let mut databases = self.procedures.backend.catalogue().databases();
        if databases.folding.contains(&self.first_database) {
            Arc::make_mut(&mut databases).folding.extend(DEFAULT_DATABASES.map(str::to_owned));
        }
        databases
    }

    /// The settings under which texts of this session are compiled.
    pub fn compiling(&self, client: &Client) -> Settings {
        let settings = client.settings();
        Settings {
            database: self.procedures.backend.database.clone(),
            databases: self.databases(),
            quoted_identifiers: settings.quoted_identifiers,
            dialect: client.dialect().of_texts(),
            nulls_equal: settings.nulls_equal,
            limits_rows: settings.row_limit > 0,
            identity_insert: settings.identity_insert.clone(),
            is_inside: self.nesting.depth > 0,
            ..Settings::default()
        }
    }

    /// The same for a text with these parameters.
    pub fn compiling_with(&self, client: &Client, declarations: &[Declaration]) -> Settings {
        let mut settings = self.compiling(client);
        for declaration in declarations.iter().filter(|declaration| declaration.of != TABLE) {
            settings.variables.insert(declaration.name.clone(), declaration.of);
        }
        settings
    }

    /// The same for a text that PostgreSQL stores.
    pub fn compiling_stored(&self, read_as: &Text) -> Settings {
        Settings {
            database: self.procedures.backend.database.clone(),
            databases: self.databases(),
            quoted_identifiers: read_as.quoted_identifiers,
            dialect: read_as.dialect,
            nulls_equal: read_as.nulls_equal,
            is_stored: true,
            ..Settings::default()
        }
    }

    /// Compiles a text with the declarations of its tables. `lifts`: variables may replace its literals.
    pub async fn compile(
        &mut self,
        client: &mut Client,
        text: &str,
        settings: &Settings,
        lifts: bool,
    ) -> Result<Compiled, ServerMessage> {
        let partial = self.gateway.catalogue().partial_in(text, &settings.database);
        let settings = &Settings { partial, ..settings.clone() };
        let backend = &mut self.procedures.backend;
        let snapshot = backend.snapshot().map_err(|error| backend.message_of(&error, client))?;
        if let Some(latest) = self.latest.get(text, settings, lifts, &Asking::new(snapshot, false)) {
            self.gateway.metrics.compiled_again.inc();
            return Ok(latest.clone());
        }
        // a sql_variant keeps the type of its literal
        let may_lift = lifts && !names_variants(text);
        let programs = self.gateway.programs.clone();
        let compile = |schema| programs.compile(text, settings, may_lift, schema);
        let compiled = under_schema(backend, client, false, compile).await?;
        refuse_settings(&compiled.program.statements, client.settings())?;
        self.latest.keep(text, settings, lifts, &compiled);
        Ok(compiled)
    }

    /// Compiles a dynamic statement. `values`: those of its placeholders, if they were sent.
    pub async fn compile_dynamic(
        &mut self,
        client: &mut Client,
        text: &str,
        values: Option<&Variables<'_>>,
    ) -> Result<Arc<Program>, ServerMessage> {
        let mut settings = Settings { placeholders: true, ..self.compiling(client) };
        if let Some(values) = values {
            values.declare_to(&mut settings);
        }
        Ok(self.compile(client, without_create_proc(text), &settings, false).await?.program)
    }

    /// Reads the declarations of parameters, which may use types of the site.
    pub async fn declarations(
        &mut self,
        client: &mut Client,
        text: &str,
    ) -> Result<Vec<Declaration>, ServerMessage> {
        let dialect = client.dialect().of_texts();
        let read = |schema: Arc<Asking>| {
            ready(tsql::declarations(text, dialect, &*schema).map_err(|error| refusal(&error)))
        };
        under_schema(&mut self.procedures.backend, client, false, read).await
    }
}

/// Whether a text may declare sql_variants.
fn names_variants(text: &str) -> bool {
    const WORD: &[u8] = b"sql_variant";
    text.as_bytes().windows(WORD.len()).any(|word| word.eq_ignore_ascii_case(WORD))
}

/// Removes the head of a procedure in which clients send the statement: `create proc DBD1 as select …`.
fn without_create_proc(text: &str) -> &str {
    let mut rest = text.trim_start();
    for expected in ["create", "proc", "", "as"] {
        let end = rest.find(|character: char| character.is_whitespace()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        let is_it = match expected {
            "" => true,
            "proc" => word.eq_ignore_ascii_case("proc") || word.eq_ignore_ascii_case("procedure"),
            expected => word.eq_ignore_ascii_case(expected),
        };
        if !is_it {
            return text;
        }
        rest = tail.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::without_create_proc;

    #[test]
    fn the_statement_of_a_dynamic_procedure() {
        assert_eq!(without_create_proc("create proc DBD1 as select ?"), "select ?");
        assert_eq!(without_create_proc("CREATE PROCEDURE x\nas\nexec p ?"), "exec p ?");
        assert_eq!(without_create_proc("select 1 as a"), "select 1 as a");
        assert_eq!(without_create_proc("create proc"), "create proc");
        assert_eq!(without_create_proc(""), "");
    }
}
