//! Text: what it is compiled to, and its statements run.

use super::failure::{Failure, Stop};
use super::statements::{printed, Flow};
use super::variables::Variables;
use super::{Ended, Session, SessionError};
use crate::program::compiler::Settings;
use crate::program::{Expression, Program};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::ServerMessage;
use crate::text::batch;
use crate::text::parser::Syntax;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs the statements of `text` up to the first error that ends a batch.
    pub(super) async fn run_batch(
        &mut self,
        text: &str,
        variables: &mut Variables<'_>,
    ) -> Result<Ended, SessionError> {
        self.client.begin_answer();
        let mut settings = self.compiling();
        variables.declare_to(&mut settings);
        let ended = match self.program(text, &settings).await {
            Ok(program) => self.run_statements(&program.statements, variables).await?,
            Err(message) => {
                self.refuse(&message);
                Ended::Failed
            }
        };
        self.end_answer();
        Ok(ended)
    }

    /// Every answer ends with a DONE.
    pub(super) fn end_answer(&mut self) {
        if !self.client.is_done() {
            self.client.done(Done::Statement, self.done_status(done::MORE), None);
        }
    }

    /// What text of this session is compiled under.
    pub(super) fn compiling(&self) -> Settings {
        Settings {
            database: self.database.clone(),
            quoted_identifiers: self.settings.quoted_identifiers,
            sybase: !self.client.dialect.is_tds7(),
            ..Settings::default()
        }
    }

    /// The program of a text, read here if it asks no query and otherwise by the compiler.
    pub(super) async fn program(
        &self,
        text: &str,
        settings: &Settings,
    ) -> Result<Arc<Program>, ServerMessage> {
        if text.contains('\0') {
            return Err(ServerMessage::error(102, 15, "Incorrect syntax: the batch holds a NUL character."));
        }
        let syntax =
            Syntax { quoted_identifiers: settings.quoted_identifiers, placeholders: settings.placeholders };
        match batch::read(text, syntax, settings.declared())? {
            Some(program) => Ok(Arc::new(program)),
            None => self.gateway.compiler.compile(text, settings).await,
        }
    }

    /// `exec ('…')`: the statements of the text as if they stood here, with variables of their own.
    pub(super) async fn execute_text(
        &mut self,
        text: &Expression,
        variables: &Variables<'_>,
    ) -> Result<Flow, Stop> {
        let text = printed(&self.value(text, variables).await?)?;
        let program = self.program(&text, &self.compiling()).await.map_err(Failure::of_statement)?;
        let ended = self.run_statements(&program.statements, &mut Variables::default()).await?;
        Ok(Flow::after(ended))
    }

    pub(super) async fn use_database(&mut self, name: &str) -> Result<(), ServerMessage> {
        if self.gateway.is_default_database(name) {
            self.first_database.clone_into(&mut self.database);
        } else {
            let used = match self.backend.open(&self.database).await {
                Ok(open) => open.use_schema(name).await,
                Err(error) => Err(error),
            };
            used.map_err(|error| self.told(&error))?;
            name.clone_into(&mut self.database);
        }
        // an unqualified name may mean another procedure now
        self.plans.clear();
        self.put_database();
        Ok(())
    }
}
