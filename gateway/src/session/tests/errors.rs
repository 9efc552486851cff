//! Errors: which statements follow, and which code handles the error.

use super::*;
use crate::postgres::script::{holds, inserted, row, Answer as Answered, Cell};

/// The error of a division by zero (SQL Server: "Database Engine events and errors").
const DIVIDED: &str = "8134, severity 16";

fn divides() -> [Answered; 1] {
    [Answered::Fails("22012", "division by zero")]
}

/// The error of a missing table when a statement is prepared.
fn missing() -> [Answered; 1] {
    [Answered::Refused("42P01", "relation \"lacking\" does not exist")]
}

fn script() -> Script {
    Script::default()
        .on("failing", divides())
        .on("doubled", [Answered::Fails("23505", "duplicate key value violates unique constraint")])
        .on("lacking", missing())
        .on("step", inserted())
        .on("behind", inserted())
        .on("more", holds([true]))
}

#[tokio::test]
async fn an_error_ends_its_statement() {
    for version in [Version::Tds50, Version::Tds74] {
        let mut talk = talk_at(version, script()).await;
        let answer = talk.batch("insert doubled (n) values (1) insert step (n) values (2)").await;
        assert_eq!(talk.sent(), "doubled 1, step 2", "{version:?}");
        assert!(answer.messages[0].starts_with("26"), "{answer:?}");
        assert_eq!(answer.counts, [1]);
    }
}

#[tokio::test]
async fn its_number_is_there_for_the_next_statement() {
    let mut talk = talk(script()).await;
    let answer = talk.batch("insert failing (n) values (1) select @@error, @@rowcount select @@error").await;
    assert_eq!(answer.rows, ["8134|0", "0"]);
}

#[tokio::test]
async fn a_catch_block_gets_it_and_the_client_does_not() {
    let mut talk = talk(script()).await;
    let text = "begin try \
                  insert step (n) values (1) insert failing (n) values (2) insert step (n) values (3) \
                end try \
                begin catch insert behind (n) values (4) end catch \
                insert step (n) values (5)";
    let answer = talk.batch(text).await;
    assert_eq!(talk.sent(), "step 1, failing 2, behind 4, step 5");
    assert_eq!(answer.messages, [""; 0]);
    // the failed statement has no rows; the batch has not failed
    assert_eq!(answer.counts, [1, 0, 1, 1]);
}

#[tokio::test]
async fn triggers_of_a_change_in_a_try_block_know_of_it() {
    let mut talk = talk(script()).await;
    let text = "begin try insert step (n) values (1) end try begin catch print 'caught' end catch \
                insert step (n) values (2)";
    talk.batch(text).await;
    assert_eq!(talk.postgres.sent(), ["set tsql.try = on", "step 1", "set tsql.try = off", "step 2"]);
}

#[tokio::test]
async fn a_catch_block_without_an_error_does_not_run() {
    let mut talk = talk(script()).await;
    talk.batch(
        "begin try insert step (n) values (1) end try begin catch insert behind (n) values (2) end catch",
    )
    .await;
    assert_eq!(talk.sent(), "step 1");
}

#[tokio::test]
async fn an_error_in_a_catch_block_is_the_outer_ones() {
    let mut talk = talk(script()).await;
    let text = "begin try \
                  begin try insert failing (n) values (1) end try \
                  begin catch insert failing (n) values (2) insert step (n) values (3) end catch \
                  insert step (n) values (4) \
                end try \
                begin catch insert behind (n) values (5) end catch";
    let answer = talk.batch(text).await;
    assert_eq!(talk.sent(), "failing 1, failing 2, behind 5");
    assert_eq!(answer.messages, [""; 0]);
    let text = "begin try insert failing (n) values (1) end try \
                begin catch insert failing (n) values (2) insert step (n) values (3) end catch";
    let answer = talk.batch(text).await;
    assert_eq!(talk.sent(), "failing 1, failing 2, step 3");
    assert_eq!(answer.messages, [DIVIDED]);
}

#[tokio::test]
async fn who_leaves_a_try_block_is_outside_of_it() {
    let mut talk = talk(script()).await;
    let leaves = [
        "while exists (select 1 from more) begin begin try break end try begin catch end catch end",
        "begin try goto further end try begin catch end catch further:",
        "exec ('begin try return end try begin catch end catch')",
    ];
    for leaving in leaves {
        let text = format!("{leaving} insert failing (n) values (1) insert step (n) values (2)");
        let answer = talk.batch(&text).await;
        assert!(talk.sent().ends_with("failing 1, step 2"), "{leaving}");
        assert_eq!(answer.messages, [DIVIDED], "{leaving}");
    }
}

#[tokio::test]
async fn throw_ends_the_batch() {
    let beam = [Cell::Int(50001), Cell::Text("beam lost"), Cell::Int(1)];
    let mut talk = talk(script().on("tsql.thrown_number", [row(beam)])).await;
    let answer = talk
        .batch("insert step (n) values (1); throw 50001, 'beam lost', 1; insert step (n) values (2)")
        .await;
    assert_eq!(talk.sent(), "step 1, tsql.thrown_number");
    assert_eq!(answer.messages, ["50001, severity 16: beam lost"]);
    let text = "begin try insert failing (n) values (1) end try \
                begin catch insert behind (n) values (2); throw; end catch \
                insert step (n) values (3)";
    let answer = talk.batch(text).await;
    assert_eq!(talk.sent(), "failing 1, behind 2");
    assert_eq!(answer.messages, [DIVIDED]);
}

#[tokio::test]
async fn raiserror_goes_on_unless_a_try_block_is_open() {
    let beam = |severity| row([Cell::Int(50000), Cell::Int(severity), Cell::Int(1), Cell::Text("beam lost")]);
    let mut talk = talk(script().on("tsql.severity", [beam(16), beam(10), beam(11)])).await;
    let answer = talk.batch("raiserror ('beam lost', 16, 1) insert step (n) values (1)").await;
    assert_eq!(talk.sent(), "tsql.severity, step 1");
    assert_eq!(answer.messages, ["50000, severity 16: beam lost"]);
    for (severity, sent) in [(10, "tsql.severity, step 1"), (11, "tsql.severity, behind 2")] {
        let text = format!(
            "begin try raiserror ('beam lost', {severity}, 1) insert step (n) values (1) end try \
             begin catch insert behind (n) values (2) end catch"
        );
        talk.batch(&text).await;
        assert_eq!(talk.sent(), sent, "{severity}");
    }
}

/// SQL Server: TRY...CATCH, "Errors unaffected by a TRY...CATCH construct".
#[tokio::test]
async fn a_table_that_is_not_there_is_for_a_catch_block_outside_of_the_text() {
    let mut talk = talk(script()).await;
    let text = "begin try select n from lacking insert step (n) values (2) end try \
                begin catch insert behind (n) values (3) end catch \
                insert step (n) values (4)";
    let answer = talk.batch(text).await;
    let sent = talk.sent();
    assert!(!sent.contains("step") && !sent.contains("behind"), "{sent}");
    assert_eq!(answer.messages, ["208, severity 16"]);
    let text = "begin try exec ('select n from lacking insert step (n) values (2)') end try \
                begin catch insert behind (n) values (3) end catch";
    let answer = talk.batch(text).await;
    let sent = talk.sent();
    assert!(!sent.contains("step") && sent.ends_with("lacking, behind 3"), "{sent}");
    assert_eq!(answer.messages, [""; 0]);
}

#[tokio::test]
async fn under_xact_abort_an_error_ends_the_batch() {
    let mut talk = talk(script()).await;
    let answer =
        talk.batch("set xact_abort on insert failing (n) values (1) insert step (n) values (2)").await;
    assert_eq!(talk.sent(), "failing 1");
    assert_eq!(answer.messages, [DIVIDED]);
}
