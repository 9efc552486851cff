//! The ends of a client's transactions, which also close cursors.

use super::interpreter::Interpreter;
use crate::client::Client;
use crate::cursors::{Cursor, NOT_OPEN};
use crate::interrupt::Interrupt;
use crate::tds::tokens::message::ServerMessage;

impl Interpreter {
    pub async fn commit(&mut self, client: &mut Client) -> Result<(), Interrupt> {
        self.procedures.backend.commit(client).await?;
        Ok(self.close_cursors(client).await?)
    }

    /// Rolls the transaction back, or to a savepoint. Static cursors stay open.
    pub async fn rollback(&mut self, client: &mut Client, name: &str) -> Result<(), Interrupt> {
        let kept = self.keep_cursors(client).await?;
        self.roll_back(client, name).await?;
        self.open_again(client, kept).await
    }

    async fn roll_back(&mut self, client: &mut Client, name: &str) -> Result<(), ServerMessage> {
        self.procedures.backend.rollback(client, name).await?;
        self.close_cursors(client).await
    }

    /// Rolls the transaction back after an error that ends it, which closes its cursors.
    pub async fn undo_transaction(&mut self, client: &mut Client) {
        if self.procedures.backend.in_transaction() {
            if let Err(message) = self.roll_back(client, "").await {
                client.reply.message(&message);
            }
        }
    }

    /// Rolls back a transaction that cannot be committed, at the end of the request in which it failed (SQL Server:
    /// XACT_STATE).
    pub async fn end_doomed(&mut self, client: &mut Client) {
        if self.procedures.backend.is_doomed() {
            self.undo_transaction(client).await;
            let text = "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.";
            client.reply.refuse(&ServerMessage::error(3998, 16, text));
        }
    }

    /// SQL Server, SET CURSOR_CLOSE_ON_COMMIT: a commit or rollback of a transaction, not to a savepoint, closes open
    /// cursors.
    async fn close_cursors(&mut self, client: &mut Client) -> Result<(), ServerMessage> {
        if !client.settings().closes_cursors || self.procedures.backend.in_transaction() {
            return Ok(());
        }
        let declared = self.cursors.known.values_mut().filter_map(Cursor::close);
        let open: Vec<_> = declared.chain(self.server_cursors.let_go()).collect();
        self.cursors.last = None;
        let backend = &mut self.procedures.backend;
        for name in open {
            if let Err(error) = backend.ask(&format!("close {name}")).await {
                let message = backend.message_of(&error, client);
                // a cursor opened in a transaction that is rolled back no longer exists
                if message.number != NOT_OPEN {
                    return Err(message);
                }
            }
        }
        Ok(())
    }
}
