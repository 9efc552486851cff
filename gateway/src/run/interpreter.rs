//! Runs texts: compiles each, and keeps the state for the following ones.

use super::awaited_text::AwaitedText;
use super::inserted::Identities;
use super::running::Running;
use super::tries::Tries;
use super::under_schema::under_schema;
use super::variables::Variables;
use crate::backend::uncommittable;
use crate::calls::Procedures;
use crate::client::{self, refuse_settings, Client};
use crate::cursors::Cursors;
use crate::cursors::ServerCursors;
use crate::gateway::{Gateway, DEFAULT_DATABASES};
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::program::{refusal, Asking, Compiled, Declaration, Latest, Settings, Snapshot};
use crate::rpc::PreparedStatements;
use crate::tds::login::Login;
use crate::tds::tokens::envchange;
use crate::tds::tokens::message::ServerMessage;
use std::future::ready;
use std::sync::Arc;
use tsql::facts::errors::is_arithmetic;
use tsql::long_names::LongNames;
use tsql::Databases;

pub struct Interpreter {
    pub gateway: Arc<Gateway>,
    pub procedures: Procedures,
    pub spid: u16,
    pub login: Login,
    first_database: String,
    pub prepared: PreparedStatements,
    /// The nesting depth of the running text: @@nestlevel and one.
    pub depth: u8,
    /// The procedure whose statements run; None in a batch, and in a text inside a procedure.
    pub running: Option<Running>,
    /// The long names of the running text.
    pub long_names: LongNames,
    /// The highest severity of the errors sent to the client since the start of the procedure; 0 for none.
    pub worst: u8,
    /// The table variables of the running texts.
    pub tables: Vec<String>,
    pub tries: Tries,
    /// `set context_info`: 128 bytes, which remain set after a procedure returns.
    pub context: Option<Vec<u8>>,
    pub cursors: Cursors,
    pub server_cursors: ServerCursors,
    pub identities: Identities,
    latest: Latest,
    /// Set between a `writetext bulk` and its text.
    pub awaited_text: Option<Box<AwaitedText>>,
}

impl Interpreter {
    pub fn new(gateway: Arc<Gateway>, procedures: Procedures, spid: u16, login: Login) -> Interpreter {
        Interpreter {
            gateway,
            spid,
            login,
            first_database: procedures.backend.database.clone(),
            procedures,
            prepared: PreparedStatements::default(),
            depth: 0,
            running: None,
            long_names: LongNames::default(),
            worst: 0,
            tables: Vec::new(),
            tries: Tries::default(),
            context: None,
            cursors: Cursors::default(),
            server_cursors: ServerCursors::default(),
            identities: Identities::default(),
            latest: Latest::default(),
            awaited_text: None,
        }
    }

    /// Runs the statements of `text` up to the first error that ends a batch.
    pub async fn run_batch(
        &mut self,
        client: &mut Client,
        text: &str,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        client.reply.begin_answer();
        let mut settings = self.compiling(client);
        variables.declare_to(&mut settings);
        match self.compile(client, text, &settings, true).await {
            Ok(compiled) => {
                variables.give(&compiled.literals);
                match self.run_text(client, &compiled.program, variables).await {
                    // its error has been reported and ends only this text
                    Ok(()) | Err(Interrupt::Failed(_)) => {}
                    Err(interrupt) => return Err(interrupt),
                }
            }
            Err(message) => client.reply.refuse(&message),
        }
        self.end_doomed(client).await;
        client.reply.end_answer();
        Ok(())
    }

    /// The databases as the session sees them, with those names that stand for its first one.
    pub fn databases(&self) -> Arc<Databases> {
        let mut databases = self.procedures.backend.catalogue().databases();
        if databases.folding.contains(&self.first_database) {
            Arc::make_mut(&mut databases).folding.extend(DEFAULT_DATABASES.map(str::to_owned));
        }
        databases
    }

    /// The settings under which texts of this session are compiled.
    pub fn compiling(&self, client: &Client) -> Settings {
        Settings {
            database: self.procedures.backend.database.clone(),
            databases: self.databases(),
            quoted_identifiers: client.settings().quoted_identifiers,
            dialect: client.dialect().of_texts(),
            nulls_equal: client.settings().nulls_equal,
            limits_rows: client.settings().row_limit > 0,
            identity_insert: client.settings().identity_insert.clone(),
            ..Settings::default()
        }
    }

    /// Compiles a text. `lifts`: variables may replace its literals.
    pub async fn compile(
        &mut self,
        client: &mut Client,
        text: &str,
        settings: &Settings,
        lifts: bool,
    ) -> Result<Compiled, ServerMessage> {
        let partial = self.gateway.catalogue().partial_in(text, &settings.database);
        let settings = &Settings { partial, ..settings.clone() };
        let schema = Asking::new(self.snapshot(client)?, false);
        if let Some(latest) = self.latest.get(text, settings, lifts, &schema) {
            self.gateway.metrics.compiled_again.inc();
            return Ok(latest.clone());
        }
        // a sql_variant keeps the type of its literal
        let may_lift = lifts && !names_variants(text);
        let compiled = self.compile_bound(client, text, settings, may_lift).await?;
        refuse_settings(&compiled.program.statements, client.settings())?;
        self.latest.keep(text, settings, lifts, &compiled);
        Ok(compiled)
    }

    fn snapshot(&mut self, client: &mut Client) -> Result<Arc<Snapshot>, ServerMessage> {
        let backend = &mut self.procedures.backend;
        backend.snapshot().map_err(|error| backend.message_of(&error, client))
    }

    /// Compiles a text with the declarations of its tables.
    async fn compile_bound(
        &mut self,
        client: &mut Client,
        text: &str,
        settings: &Settings,
        lifts: bool,
    ) -> Result<Compiled, ServerMessage> {
        let programs = self.gateway.programs.clone();
        let compile = |schema| programs.compile(text, settings, lifts, schema);
        under_schema(&mut self.procedures.backend, client, false, compile).await
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

    /// Called after a definition, which may change the meaning of names and tables.
    pub fn forget_definitions(&mut self) {
        self.procedures.forget_plans();
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
        self.forget_definitions();
        self.put_database(client, &before);
        Ok(())
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

    /// Resets the session to its state after login.
    pub async fn reset(&mut self, client: &mut Client, keep_transaction: bool) {
        self.procedures.backend.reset(client, keep_transaction).await;
        client.set(client::Settings::new(&client.dialect(), self.login.is_odbc));
        self.procedures.backend.database.clone_from(&self.first_database);
        self.forget_definitions();
        self.prepared = PreparedStatements::default();
        self.context = None;
        self.cursors = Cursors::default();
        self.server_cursors = ServerCursors::default();
        self.identities = Identities::default();
        client.reply.passed(Some(0));
        let dialect = client.dialect();
        envchange::put_reset(&mut client.reply.tokens, &dialect);
    }

    /// An error, with the effect that the transaction and the client's settings give it.
    pub fn under_settings(&self, client: &Client, failure: Failure) -> Failure {
        let failure = self.in_transaction(failure);
        let ends = match failure.ends {
            Ends::Text => Ends::Text,
            _ if client.settings().abort_on_error => Ends::Transaction,
            Ends::Statement
                if client.settings().arithabort.is_some_and(|of| of.overflow)
                    && is_arithmetic(failure.message.number) =>
            {
                Ends::Transaction
            }
            ends => ends,
        };
        Failure { ends, ..failure }
    }

    /// 3930: PostgreSQL refuses to write in a transaction that cannot be committed.
    fn in_transaction(&self, failure: Failure) -> Failure {
        match failure.message.number {
            READS_ONLY if self.procedures.backend.is_doomed() => {
                let ServerMessage { text, number, severity, .. } = uncommittable();
                let message = ServerMessage { text, number, severity, ..failure.message };
                Failure { message, ends: Ends::Batch, ..failure }
            }
            _ => failure,
        }
    }
}

/// The number of PostgreSQL's error for a change in a read-only transaction.
const READS_ONLY: i32 = 3906;

/// Whether a text may declare sql_variants.
fn names_variants(text: &str) -> bool {
    const WORD: &[u8] = b"sql_variant";
    text.as_bytes().windows(WORD.len()).any(|word| word.eq_ignore_ascii_case(WORD))
}
