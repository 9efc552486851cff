//! Finds the ends of a procedure's transactions.
//!
//! In PL/pgSQL a transaction inside a procedure must be a block: the statements between BEGIN TRANSACTION and the
//! statement by which every path has committed or rolled back become one block, a region. This finds the end of a
//! region, and refuses a transaction without one.

use crate::error::Error;
use crate::tree::{Arguments, BinaryOperator, Expression, LiteralValue, Statement, StatementKind as Tree};

/// The state of a transaction at the end of a path.
const OPEN: u8 = 1;
const ENDED: u8 = 2;
/// Ended, together with the procedure or the loop around the region.
const LEFT: u8 = 4;

const PARTIAL: &str = "a part of a transaction cannot be taken back alone";

/// The index of the statement by which every path through `statements`, which follow a BEGIN TRANSACTION, has ended it.
/// An error if a path has not.
pub fn end_of_region<'t>(
    statements: impl IntoIterator<Item = &'t Statement>,
    line: u32,
) -> Result<usize, Error> {
    for (at, statement) in statements.into_iter().enumerate() {
        let states = after(statement, false)?;
        if states & OPEN == 0 {
            return Ok(at);
        }
        if states & ENDED != 0 {
            return Err(on_some_paths(statement));
        }
    }
    let why = "its COMMIT or ROLLBACK must be in the same block, or in every branch of an IF there";
    Err(Error::refused("begin transaction", why, line))
}

/// Whether every path through `statements`, which begin inside a transaction, ends it or fails.
pub fn ends_everywhere(statements: &[Statement]) -> Result<bool, Error> {
    Ok(through(statements, false)? & OPEN == 0)
}

/// Inside a region: the value of a condition that only tests whether a transaction is open.
pub fn always(condition: &Expression) -> Option<bool> {
    let Expression::Binary { operator, left, right, .. } = condition else { return None };
    let counts = matches!(left.as_ref(), Expression::Variable(variable) if variable.name == "@@trancount");
    // XACT_STATE may be -1
    let tells = matches!(left.as_ref(), Expression::Function(call)
        if call.name.is_bare()
            && call.name.name.eq_ignore_ascii_case("xact_state")
            && matches!(&call.arguments, Arguments::Values(values) if values.is_empty()));
    let Expression::Literal(literal) = right.as_ref() else { return None };
    let LiteralValue::Integer(number) = &literal.value else { return None };
    match (counts, operator, number.as_str()) {
        (_, BinaryOperator::NotEqual, "0") if counts || tells => Some(true),
        (_, BinaryOperator::Equal, "0") if counts || tells => Some(false),
        (true, BinaryOperator::Greater, "0") => Some(true),
        (true, BinaryOperator::GreaterOrEqual, "1") => Some(true),
        (true, BinaryOperator::Less, "1") => Some(false),
        _ => None,
    }
}

/// The states at the end of `statements` that begin inside the transaction. `looped`: inside a loop that began inside
/// it.
fn through(statements: &[Statement], looped: bool) -> Result<u8, Error> {
    let mut left = 0;
    for (at, statement) in statements.iter().enumerate() {
        let states = after(statement, looped)?;
        if states & ENDED != 0 && states & OPEN != 0 {
            return Err(on_some_paths(statement));
        }
        left |= states & LEFT;
        if states & ENDED != 0 {
            return Ok(left | if leaves(&statements[at + 1..], looped) { LEFT } else { ENDED });
        }
        if states == LEFT {
            return Ok(left);
        }
    }
    Ok(left | OPEN)
}

fn on_some_paths(statement: &Statement) -> Error {
    let why = "this statement ends the transaction on some of its paths only";
    Error::refused("begin transaction", why, statement.at)
}

fn after(statement: &Statement, looped: bool) -> Result<u8, Error> {
    Ok(match &statement.kind {
        Tree::Commit(_) | Tree::Rollback(_) => ENDED,
        Tree::Save(_) => return Err(Error::refused("save transaction", PARTIAL, statement.at)),
        Tree::BeginTransaction(_) => {
            return Err(Error::refused("begin transaction", "one inside another", statement.at))
        }
        Tree::Return(_) => {
            let text = "A RETURN inside a transaction leaves it open: COMMIT or ROLLBACK it before.";
            return Err(Error::new(266, text, statement.at));
        }
        Tree::Throw(_) => LEFT,
        Tree::If { condition, then, otherwise } => {
            let otherwise = || otherwise.as_deref().map_or(&[][..], Statement::body);
            match always(condition) {
                Some(true) => through(then.body(), looped)?,
                Some(false) => through(otherwise(), looped)?,
                None => through(then.body(), looped)? | through(otherwise(), looped)?,
            }
        }
        Tree::While { body, .. } => {
            let inside = through(body.body(), true)?;
            if inside & ENDED != 0 {
                let why = "the transaction ends inside the loop and begins outside";
                return Err(Error::refused("while", why, statement.at));
            }
            inside | OPEN
        }
        Tree::Block(body) => through(body, looped)?,
        Tree::TryCatch { body, catch } => through(body, looped)? | through(catch, looped)?,
        _ => OPEN,
    })
}

/// Whether every path through `statements` ends with the procedure, or with a pass of the loop around the transaction.
fn leaves(statements: &[Statement], looped: bool) -> bool {
    for statement in statements {
        match &statement.kind {
            // the label is outside of the transaction, or the procedure is refused
            Tree::Return(_) | Tree::Throw(_) | Tree::Goto(_) => return true,
            Tree::Break | Tree::Continue => return !looped,
            Tree::If { then, otherwise: Some(otherwise), .. }
                if leaves(then.body(), looped) && leaves(otherwise.body(), looped) =>
            {
                return true
            }
            Tree::Block(body) if leaves(body, looped) => return true,
            _ => {}
        }
    }
    false
}
