//! Transactions: the statements sent to PostgreSQL, and the state after errors. The scripted PostgreSQL refuses
//! statements in a failed transaction, as the real one does.

use super::*;
use crate::postgres::script::{inserted, rows, Answer as Answered};

const SAVE: &str = "savepoint ringlog_statement";
const KEEP: &str = "release savepoint ringlog_statement";
const UNDO: &str = "rollback to savepoint ringlog_statement; release savepoint ringlog_statement";
const BEGIN: &str = "begin; set local tsql.trancount = 1; savepoint ringlog_statement";

fn script() -> Script {
    Script::default()
        .on("failing", [Answered::Fails("22012", "division by zero")])
        .on("dying", [Answered::Dies])
        .on("step", inserted())
        .on("read_one", [rows([1])])
}

#[tokio::test]
async fn a_transaction_begins_with_its_first_statement() {
    let mut talk = talk(script()).await;
    talk.batch("begin transaction").await;
    assert_eq!((talk.sent(), talk.depth().await), (String::new(), String::from("1")));
    talk.batch("insert step (n) values (1)").await;
    assert_eq!(talk.sent(), [BEGIN, "step 1", KEEP].join(", "));
    assert_eq!(talk.depth().await, "1");
    talk.batch("insert step (n) values (2) commit").await;
    assert_eq!(talk.sent(), [SAVE, "step 2", KEEP, "commit"].join(", "));
    assert_eq!(talk.depth().await, "0");
    talk.batch("begin transaction commit").await;
    assert_eq!(talk.sent(), "");
}

#[tokio::test]
async fn a_failed_statement_is_undone_and_the_transaction_goes_on() {
    let mut talk = talk(script()).await;
    let answer = talk
        .batch("begin transaction insert failing (n) values (1) insert step (n) values (2) commit select @@trancount")
        .await;
    assert_eq!(talk.sent(), [BEGIN, "failing 1", UNDO, SAVE, "step 2", KEEP, "commit"].join(", "));
    assert_eq!((answer.messages.len(), answer.rows), (1, vec![String::from("0")]));
}

#[tokio::test]
async fn only_the_outermost_commit_commits() {
    let mut talk = talk(script()).await;
    let text = "begin transaction begin transaction insert step (n) values (1) select @@trancount commit \
                select @@trancount";
    let answer = talk.batch(text).await;
    assert!(!talk.sent().contains("commit"));
    assert_eq!(answer.rows, ["2", "1"]);
    let answer = talk.batch("commit select @@trancount commit").await;
    assert_eq!((talk.sent().as_str(), answer.rows), ("commit", vec![String::from("0")]));
    assert_eq!(answer.messages, ["3902, severity 16"]);
}

#[tokio::test]
async fn rollback_undoes_all_levels_or_what_follows_a_savepoint() {
    let mut talk = talk(script()).await;
    talk.batch("begin transaction insert step (n) values (1) begin transaction").await;
    talk.sent();
    let answer = talk.batch("rollback select @@trancount rollback").await;
    assert_eq!((talk.sent().as_str(), answer.rows), ("rollback", vec![String::from("0")]));
    assert_eq!(answer.messages, ["3903, severity 16"]);

    let text =
        "begin transaction save transaction a insert step (n) values (1) rollback transaction a commit";
    talk.batch(text).await;
    let sent = talk.sent();
    let (begin, end) = sent.split_once(", step 1, ").unwrap();
    assert_eq!(begin, format!("begin, savepoint client_savepoint_0, set local tsql.trancount = 1; {SAVE}"));
    assert_eq!(end, format!("{KEEP}, rollback to savepoint client_savepoint_0, commit"));
}

/// An idle client that has received its rows does not block changes of their table.
#[tokio::test]
async fn who_has_only_read_leaves_no_transaction_at_postgresql() {
    let mut talk = talk(script()).await;
    talk.batch("begin transaction select 1 from read_one").await;
    assert_eq!(talk.sent(), "read_one");
    assert_eq!(talk.depth().await, "1");
}

#[tokio::test]
async fn a_transaction_that_a_catch_block_gets_under_xact_abort_can_only_be_undone() {
    let mut talk = talk(script().on("?column?", [rows([-1])])).await;
    let failing = "begin transaction insert step (n) values (1) \
                   begin try insert failing (n) values (2) end try";
    let text = format!("set xact_abort on {failing} begin catch select xact_state() end catch");
    let answer = talk.batch(&text).await;
    let sent = talk.sent();
    assert!(sent.contains("failing 2") && sent.contains("set transaction read only"), "{sent}");
    // a batch does not leave such a transaction open
    assert!(sent.ends_with(", ?column? -1, release savepoint ringlog_statement, rollback"), "{sent}");
    assert_eq!(answer.messages, ["3998, severity 16"]);

    let answer =
        talk.batch(&format!("{failing} begin catch commit end catch insert step (n) values (3)")).await;
    let sent = talk.sent();
    assert!(sent.ends_with("rollback") && !sent.contains("step 3"), "{sent}");
    assert_eq!(answer.messages, ["3930, severity 16"]);
    assert_eq!(talk.depth().await, "0");

    let answer =
        talk.batch(&format!("{failing} begin catch rollback insert step (n) values (3) end catch")).await;
    let sent = talk.sent();
    assert!(sent.ends_with("rollback, step 3"), "{sent}");
    assert_eq!(answer.messages, [""; 0]);
}

#[tokio::test]
async fn under_xact_abort_an_error_undoes_the_transaction() {
    let mut talk = talk(script()).await;
    let text = "set xact_abort on begin transaction insert failing (n) values (1) insert step (n) values (2)";
    talk.batch(text).await;
    let sent = talk.sent();
    assert!(sent.ends_with("rollback") && !sent.contains("step"), "{sent}");
    assert_eq!(talk.depth().await, "0");
}

#[tokio::test]
async fn a_commit_that_fails_has_ended_the_transaction() {
    let script = script().on("commit", [Answered::Fails("23503", "a deferred constraint")]);
    let mut talk = talk(script).await;
    let answer = talk.batch("begin transaction insert step (n) values (1) commit select @@trancount").await;
    assert!(talk.sent().ends_with("step 1, release savepoint ringlog_statement, commit"));
    assert_eq!(answer.rows, ["0"], "{answer:?}");
    talk.batch("insert step (n) values (2)").await;
    assert_eq!(talk.sent(), "step 2");
}

#[tokio::test]
async fn a_lost_connection_ends_the_transaction_and_the_next_statement_has_another_one() {
    let mut talk = talk(script()).await;
    let answer = talk
        .batch("begin transaction insert step (n) values (1) insert dying (n) values (2) select @@trancount")
        .await;
    let sent = talk.sent();
    assert!(sent.ends_with("dying 2"), "{sent}");
    assert!(!answer.messages.is_empty(), "{answer:?}");
    assert_eq!(talk.depth().await, "0");
    let answer = talk.batch("insert step (n) values (3)").await;
    assert_eq!(talk.sent(), "step 3");
    assert_eq!((answer.messages.len(), answer.counts), (0, vec![1]));
}
