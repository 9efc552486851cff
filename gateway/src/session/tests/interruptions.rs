//! Cancels, clients that disconnect, and lost connections to PostgreSQL.

use super::*;
use crate::postgres::script::{holds, inserted, rows, Answer as Answered};

fn script() -> Script {
    Script::default()
        .on("hanging", [Answered::Hangs])
        .on("dying", [Answered::Dies])
        .on("failing", [Answered::Fails("22012", "division by zero")])
        .on("more", holds([true]))
        .on("step", inserted())
        .on("behind", inserted())
}

impl Talk {
    /// Cancels a batch as soon as PostgreSQL has received this statement of it.
    async fn cancelled(&mut self, text: &str, statement: &str) {
        self.send(text).await;
        self.postgres.until(statement).await;
        self.cancel().await;
        loop {
            if self.reply().await.cancelled {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_cancel_ends_the_statement_and_the_batch() {
    let mut talk = talk(script()).await;
    let text = "begin try insert hanging (n) values (1) end try \
                begin catch insert behind (n) values (2) end catch \
                insert step (n) values (3)";
    talk.cancelled(text, "hanging").await;
    assert_eq!(talk.sent(), "hanging 1, hanging cancelled");
    // and no TRY block remains open
    let answer = talk.batch("insert failing (n) values (1) insert step (n) values (4)").await;
    assert_eq!((talk.sent().as_str(), answer.messages.len()), ("failing 1, step 4", 1));
}

#[tokio::test]
async fn a_cancel_in_a_transaction_undoes_the_statement_alone() {
    let mut talk = talk(script()).await;
    talk.batch("begin transaction insert step (n) values (1)").await;
    talk.sent();
    talk.cancelled("insert hanging (n) values (2)", "hanging").await;
    let undo = "rollback to savepoint ringlog_statement; release savepoint ringlog_statement";
    // the table's columns are queried first
    let sent = talk.sent();
    assert!(
        sent.ends_with(&format!(", savepoint ringlog_statement, hanging 2, hanging cancelled, {undo}")),
        "{sent}"
    );
    assert_eq!(talk.depth().await, "1");
    talk.batch("commit").await;
    assert_eq!(talk.sent(), "commit");
}

#[tokio::test]
async fn a_loop_ends_by_a_cancel_between_two_statements() {
    let mut talk = talk(script()).await;
    talk.cancelled("while exists (select 1 from more) insert step (n) values (1)", "step").await;
    talk.sent();
    talk.batch("insert behind (n) values (2)").await;
    assert_eq!(talk.sent(), "behind 2");
}

#[tokio::test]
async fn the_statement_of_a_client_that_has_left_is_cancelled() {
    let mut talk = talk(script()).await;
    talk.send("insert hanging (n) values (1)").await;
    talk.postgres.until("hanging").await;
    let Talk { stream, postgres, _stopping, .. } = talk;
    drop(stream);
    postgres.until("hanging cancelled").await;
}

#[tokio::test]
async fn a_lost_connection_is_an_error_of_its_statement() {
    let mut talk = talk(script()).await;
    let text =
        "begin try insert dying (n) values (1) end try begin catch insert behind (n) values (2) end catch";
    let answer = talk.batch(text).await;
    assert_eq!((talk.sent().as_str(), answer.messages.len()), ("dying 1, behind 2", 0));
    // without a TRY block it ends the batch, not the session
    let answer = talk.batch("insert dying (n) values (1) insert step (n) values (2)").await;
    assert_eq!((talk.sent().as_str(), answer.messages.len()), ("dying 1", 1));
    talk.batch("insert step (n) values (3)").await;
    assert_eq!(talk.sent(), "step 3");
}

#[tokio::test]
async fn an_idle_session_does_not_notice_that_its_connection_has_ended() {
    let mut talk = talk(Script::default().on("first", [rows([1])]).on("second", [rows([2])])).await;
    talk.batch("select max(n) from first").await;
    talk.postgres.end_connections();
    // whose columns are read first
    let answer = talk.batch("select max(n) from second").await;
    assert_eq!((answer.rows, answer.messages.len()), (vec![String::from("2")], 0));
}
