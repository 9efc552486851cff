//! Runs texts: their statements, and the calls and texts in these.

use super::state::State;
use super::transactions::end_doomed;
use super::variables::Variables;
use crate::calls::Procedures;
use crate::client::Client;
use crate::gateway::Gateway;
use crate::interrupt::Interrupt;
use crate::rpc::PreparedStatements;
use crate::tds::login::Login;
use std::sync::Arc;

pub struct Interpreter {
    pub state: State,
    pub prepared: PreparedStatements,
}

impl Interpreter {
    pub fn new(gateway: Arc<Gateway>, procedures: Procedures, spid: u16, login: Login) -> Interpreter {
        let state = State::new(gateway, procedures, spid, login);
        Interpreter { state, prepared: PreparedStatements::default() }
    }

    /// Resets the session to its state after login.
    pub async fn reset(&mut self, client: &mut Client, keep_transaction: bool) {
        self.prepared = PreparedStatements::default();
        self.state.reset(client, keep_transaction).await;
    }

    /// Runs the statements of `text` up to the first error that ends a batch.
    pub async fn run_batch(
        &mut self,
        client: &mut Client,
        text: &str,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        client.reply.begin_answer();
        let mut settings = self.state.compiling(client);
        variables.declare_to(&mut settings);
        match self.state.compile(client, text, &settings, true).await {
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
        end_doomed(&mut self.state, client).await;
        client.reply.end_answer();
        Ok(())
    }
}
