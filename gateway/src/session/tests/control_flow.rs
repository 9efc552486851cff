//! IF, WHILE, BREAK, CONTINUE, GOTO, RETURN. Conditions are queries, for which the script returns rows or none.

use super::*;
use crate::postgres::script::{holds, inserted, rows, Answer as Answered};

#[tokio::test]
async fn a_condition_selects_the_branch() {
    let script = Script::default()
        .on("is_open", holds([true, false, true]))
        .on("made_yes", inserted())
        .on("made_no", inserted());
    let mut talk = talk(script).await;
    let text = "if exists (select 1 from is_open) insert made_yes (n) values (1) \
                else insert made_no (n) values (2)";
    talk.batch(text).await;
    assert_eq!(talk.sent(), "is_open, made_yes 1");
    talk.batch(text).await;
    assert_eq!(talk.sent(), "is_open, made_no 2");
    talk.batch("if not exists (select 1 from is_open) insert made_no (n) values (2)").await;
    assert_eq!(talk.sent(), "is_open, made_no 2");
}

#[tokio::test]
async fn a_loop_runs_as_long_as_its_condition_holds() {
    let script = Script::default()
        .on("more", holds([true, true, false]))
        .on("next_one", [rows([7]), rows([8])])
        .on("step", inserted());
    let mut talk = talk(script).await;
    let text = "declare @n int \
                while exists (select 1 from more) begin \
                  select @n = count(*) from next_one \
                  insert step (n) values (@n) \
                end \
                select @n";
    let answer = talk.batch(text).await;
    assert_eq!(talk.sent(), "more, next_one, step 7, more, next_one, step 8, more");
    assert_eq!((answer.rows, answer.counts), (vec![String::from("8")], vec![1; 5]));
}

#[tokio::test]
async fn break_leaves_a_loop_and_continue_its_turn() {
    let script = Script::default()
        .on("more", holds([true]))
        .on("at_end", holds([false, false, true]))
        .on("skipped", holds([true, false]))
        .on("step", inserted())
        .on("behind", inserted());
    let mut talk = talk(script).await;
    let text = "while exists (select 1 from more) begin \
                  if exists (select 1 from at_end) break \
                  if exists (select 1 from skipped) continue \
                  insert step (n) values (1) \
                end \
                insert behind (n) values (2)";
    talk.batch(text).await;
    let turns = ["more, at_end, skipped", "more, at_end, skipped, step 1", "more, at_end", "behind 2"];
    assert_eq!(talk.sent(), turns.join(", "));
}

#[tokio::test]
async fn break_leaves_the_inner_loop_alone() {
    let script = Script::default()
        .on("outer_one", holds([true, true, false]))
        .on("inner_one", holds([true]))
        .on("step", inserted());
    let mut talk = talk(script).await;
    let text = "while exists (select 1 from outer_one) begin \
                  while exists (select 1 from inner_one) begin insert step (n) values (1) break end \
                end";
    talk.batch(text).await;
    assert_eq!(talk.sent(), "outer_one, inner_one, step 1, outer_one, inner_one, step 1, outer_one");
}

#[tokio::test]
async fn goto_goes_to_its_label_also_out_of_a_loop() {
    let script = Script::default()
        .on("more", holds([true, false, true]))
        .on("step", inserted())
        .on("behind", inserted());
    let mut talk = talk(script).await;
    talk.batch(
        "again: insert step (n) values (1) if exists (select 1 from more) goto again insert behind (n) values (2)",
    )
    .await;
    assert_eq!(talk.sent(), "step 1, more, step 1, more, behind 2");
    let text = "while exists (select 1 from more) begin insert step (n) values (1) goto further end \
                insert step (n) values (3) \
                further: insert behind (n) values (2)";
    talk.batch(text).await;
    assert_eq!(talk.sent(), "more, step 1, behind 2");
}

#[tokio::test]
async fn return_ends_its_own_text() {
    let script = Script::default().on("step", inserted()).on("behind", inserted());
    let mut talk = talk(script).await;
    talk.batch("insert step (n) values (1) return insert step (n) values (2)").await;
    assert_eq!(talk.sent(), "step 1");
    talk.batch(
        "exec ('insert step (n) values (1) return insert step (n) values (2)') insert behind (n) values (3)",
    )
    .await;
    assert_eq!(talk.sent(), "step 1, behind 3");
}

#[tokio::test]
async fn what_statements_leave_is_there_for_the_next_one() {
    let script = Script::default().on("changed", [Answered::Done("UPDATE 3")]);
    let mut talk = talk(script).await;
    let answer = talk.batch("update changed set n = 1 select @@rowcount select @@rowcount, @@error").await;
    assert_eq!(answer.rows, ["3", "1|0"]);
    assert_eq!(answer.counts, [3, 1, 1]);
    let answer = talk.batch("set nocount on update changed set n = 1 select @@rowcount").await;
    assert_eq!((answer.rows, answer.counts), (vec![String::from("3")], Vec::new()));
}
