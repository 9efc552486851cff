//! The sources of queries: tables, joins, subqueries.

use super::{begins_no_statement, json, pivot};
use crate::error::Error;
use crate::lexer::Token;
use crate::parser::{expression, function, names, query, Parser, LONGEST_CHAIN};
use crate::tree::{JoinKind, Locks, Name, ObjectName, Query, QueryBody, TableSource};

/// Hints without effect here.
const HARMLESS: [&str; 9] = [
    "nolock",
    "readuncommitted",
    "readcommitted",
    "readcommittedlock",
    "rowlock",
    "paglock",
    "noexpand",
    "forceseek",
    "forcescan",
];
/// SQL Server's others.
const REFUSED: [&str; 6] =
    ["ignore_constraints", "ignore_triggers", "keepdefaults", "keepidentity", "repeatableread", "snapshot"];
const LOCKING: [&str; 8] =
    ["holdlock", "updlock", "tablock", "tablockx", "xlock", "readpast", "serializable", "nowait"];
/// Hints that prevent others from inserting matching rows, or from writing to the whole table.
const OF_TABLES: [&str; 3] = ["holdlock", "serializable", "tablockx"];
const WHY: &str = "it changes what is locked or read";

/// The use of the table with the hints.
#[derive(Clone, Copy, PartialEq)]
enum Hinted {
    Read,
    Changed,
    /// A table of the catalogue, which is never locked.
    System,
}

fn has_condition(kind: JoinKind) -> bool {
    !matches!(kind, JoinKind::Cross | JoinKind::CrossApply | JoinKind::OuterApply)
}

/// A table and those joined to it.
pub(in crate::parser) fn table_source(parser: &mut Parser<'_>) -> Result<TableSource, Error> {
    let source = joined_source(parser)?;
    refuse_pivot(parser)?;
    Ok(source)
}

/// Whether the next table is joined to another before its own ON.
fn joins_before_on(parser: &Parser<'_>) -> bool {
    let mut depth = 0_u32;
    for token in &parser.tokens[parser.at..] {
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            let Some(less) = depth.checked_sub(1) else { return false };
            depth = less;
        } else if depth == 0 {
            if token.is_any(&["join", "apply"]) {
                return true;
            }
            if token.is_any(&["on", "where", "select", "order", "group"]) || token.is_symbol(",") {
                return false;
            }
        }
    }
    false
}

/// A table with the joins whose ON precedes the next one.
fn joined_source(parser: &mut Parser<'_>) -> Result<TableSource, Error> {
    let mut left = table_factor(parser)?;
    let mut chain = 0;
    while let Some(kind) = join(parser)? {
        chain += 1;
        if chain > LONGEST_CHAIN {
            return Err(Error::nested_too_deeply(parser.position()));
        }
        let conditional = has_condition(kind);
        // a join b join c on … on …
        let nested = conditional && joins_before_on(parser);
        let right = if nested { parser.deeper(joined_source)? } else { parser.deeper(table_factor)? };
        let condition = match conditional {
            true => {
                parser.expect_word("on")?;
                Some(expression::condition(parser)?)
            }
            false => None,
        };
        left = TableSource::Join { kind, left: Box::new(left), right: Box::new(right), condition };
    }
    Ok(left)
}

fn join(parser: &mut Parser<'_>) -> Result<Option<JoinKind>, Error> {
    let Some(token) = parser.peek() else { return Ok(None) };
    let kind = if token.is("join") {
        JoinKind::Inner
    } else if token.is("inner") {
        parser.at += 1;
        JoinKind::Inner
    } else if token.is("left") {
        parser.at += 1;
        parser.word("outer");
        JoinKind::Left
    } else if token.is("right") {
        parser.at += 1;
        parser.word("outer");
        JoinKind::Right
    } else if token.is("full") {
        parser.at += 1;
        parser.word("outer");
        JoinKind::Full
    } else if token.is("cross") {
        parser.at += 1;
        if parser.word("apply") {
            return Ok(Some(JoinKind::CrossApply));
        }
        JoinKind::Cross
    } else if token.is("outer") {
        parser.at += 1;
        parser.expect_word("apply")?;
        return Ok(Some(JoinKind::OuterApply));
    } else {
        return Ok(None);
    };
    // hints of the join method
    if parser.next_is_any(&["hash", "loop", "merge", "remote"]) && parser.ahead_is(1, "join") {
        parser.at += 1;
    }
    parser.expect_word("join")?;
    Ok(Some(kind))
}

fn table_factor(parser: &mut Parser<'_>) -> Result<TableSource, Error> {
    if parser.next_is_symbol("(") {
        return parser.deeper(source_in_parentheses);
    }
    if names::next_is_variable(parser) {
        let variable = names::own_variable(parser)?;
        expression::refuse_method(parser)?;
        let alias = table_alias(parser)?;
        harmless_hints(parser)?;
        return Ok(TableSource::Variable { variable, alias });
    }
    // SQL Server 2000: a function of the system
    if parser.ahead_is_symbol(2, "(") {
        parser.symbol("::");
    }
    expression::refuse_method(parser)?;
    let name = names::object_name(parser)?;
    if parser.next_is_symbol("(") && !bare_hints(parser, &name)? {
        let of = if name.is_bare() { name.name.to_lowercase() } else { String::new() };
        if ["containstable", "freetexttable", "openxml"].contains(&&*of) {
            return Err(Error::refused(&format!("{of}()"), "ringlog has no such function", name.at));
        }
        let call = Box::new(parser.deeper(|parser| function::function_call(parser, name, &of))?);
        if of == "openjson" {
            return json::opened_json(parser, call);
        }
        let alias = table_alias(parser)?;
        let columns = alias_columns(parser, alias.as_ref())?;
        return Ok(TableSource::Function { call, schema: Vec::new(), alias, columns });
    }
    let of_system =
        name.owner.eq_ignore_ascii_case("sys") || name.owner.eq_ignore_ascii_case("information_schema");
    let mut is_held = holds(parser);
    let alias = table_alias(parser)?;
    is_held |= holds(parser);
    if parser.next_is_symbol("(") && !bare_hints(parser, &name)? {
        return Err(parser.wrong());
    }
    is_held |= holds(parser);
    let mut locks = hints(parser, if of_system { Hinted::System } else { Hinted::Read })?;
    is_held |= holds(parser);
    locks.table |= is_held;
    Ok(TableSource::Table { name, alias, locks })
}

/// ASE's words after a table: returns whether `holdlock` is among them. `noholdlock` and `shared` describe the
/// usual behaviour here.
fn holds(parser: &mut Parser<'_>) -> bool {
    let mut is_held = false;
    loop {
        if parser.word("holdlock") {
            is_held = true;
        } else if !parser.any_word(&["noholdlock", "shared"]) {
            return is_held;
        }
    }
}

/// `(select …) alias`, `(values …) alias (columns)`, `(a join b on …)`.
fn source_in_parentheses(parser: &mut Parser<'_>) -> Result<TableSource, Error> {
    let start = parser.position();
    let query = if parser.ahead_is(1, "values") {
        parser.at += 2;
        let rows = parser.list(|parser| parser.in_parentheses(expression::value_or_default))?;
        parser.expect_symbol(")")?;
        Query::of(QueryBody::Values(rows), parser.since(start))
    } else if opens_query(parser) && !opens_join(parser) {
        query::subquery(parser)?
    } else {
        parser.at += 1;
        let source = table_source(parser)?;
        parser.expect_symbol(")")?;
        if parser.is_strict() && matches!(source, TableSource::Table { .. }) {
            return Err(parser.wrong_before());
        }
        return Ok(source);
    };
    let alias = table_alias(parser)?;
    let columns = alias_columns(parser, alias.as_ref())?;
    pivot::pivoted(parser, TableSource::Query { query: Box::new(query), alias, columns })
}

/// Whether the following parentheses contain a select.
pub(in crate::parser) fn opens_query(parser: &Parser<'_>) -> bool {
    let opened = parser.tokens[parser.at..].iter().take_while(|token| token.is_symbol("(")).count();
    opened > 0 && parser.ahead(opened).is_some_and(|token| token.is_any(&["select", "with"]))
}

/// Whether the following parentheses contain a query in parentheses with a name, to which others are joined.
fn opens_join(parser: &Parser<'_>) -> bool {
    let mut depth = 0_u32;
    for (ahead, token) in parser.tokens[parser.at + 1..].iter().enumerate() {
        depth += u32::from(token.is_symbol("("));
        if token.is_symbol(")") {
            depth = depth.saturating_sub(1);
            let next = parser.ahead(ahead + 2);
            if depth == 0 {
                return next.is_some_and(|next| next.is("as") || next.is_name() && begins_no_statement(next));
            }
        }
        if depth == 0 {
            return false;
        }
    }
    false
}

pub(super) fn alias_columns(parser: &mut Parser<'_>, alias: Option<&Name>) -> Result<Vec<Name>, Error> {
    if alias.is_some() && parser.next_is_symbol("(") {
        return names::names_in_parentheses(parser);
    }
    Ok(Vec::new())
}

pub(in crate::parser) fn table_alias(parser: &mut Parser<'_>) -> Result<Option<Name>, Error> {
    if parser.word("as") {
        return names::name(parser).map(Some);
    }
    match parser.peek() {
        // a word before a colon is a label
        Some(_) if parser.ahead_is_symbol(1, ":") => Ok(None),
        Some(token) if token.is_name() && begins_no_statement(token) && !is_clause(parser, token) => {
            names::name(parser).map(Some)
        }
        _ => Ok(None),
    }
}

/// Words that are not aliases in this position, though they are not reserved.
fn is_clause(parser: &Parser<'_>, token: &Token<'_>) -> bool {
    token.is_any(&["noholdlock", "shared", "lock"])
        || (token.is("at") && parser.ahead_is(1, "isolation"))
        || (token.is("output") && !parser.ahead_is_symbol(1, ","))
}

/// `with (hints)` of a table to change, whose rows the change locks. Returns whether the whole table is locked.
pub(in crate::parser) fn hints_of_change(parser: &mut Parser<'_>) -> Result<bool, Error> {
    let at = parser.position();
    match hints(parser, Hinted::Changed)? {
        Locks { skips: false, table, .. } => Ok(table),
        _ => Err(Error::refused("readpast of what is changed", "choose the rows by a query", at)),
    }
}

/// `with (hints)` in a place where hints must not lock.
pub(super) fn harmless_hints(parser: &mut Parser<'_>) -> Result<(), Error> {
    let at = parser.position();
    match hints(parser, Hinted::Read)? == Locks::default() {
        true => Ok(()),
        false => Err(Error::refused("with (…)", WHY, at)),
    }
}

/// `with (hints)`; hints without effect are skipped.
fn hints(parser: &mut Parser<'_>, of: Hinted) -> Result<Locks, Error> {
    let (start, mut locks) = (parser.position(), Locks::default());
    if !parser.next_is("with") || !parser.ahead_is_symbol(1, "(") {
        return Ok(locks);
    }
    parser.at += 2;
    let (mut reads_all, mut at_table) = (false, false);
    let is_target = of == Hinted::Changed && parser.dialect.is_strict;
    loop {
        let token = parser.advance()?;
        if token.is("index") {
            if is_target {
                let text = "Index hints are only allowed in a FROM or OPTION clause.";
                return Err(Error::new(1069, text, start).with_severity(16));
            }
            index_hint(parser)?;
        } else if token.is_any(&["updlock", "xlock"]) {
            locks.rows = true;
        } else if token.is("readpast") {
            locks.skips = true;
        } else if token.is("nowait") {
            locks.fails = true;
        } else if token.is("tablock") {
            at_table = true;
        } else if token.is_any(&OF_TABLES) && of != Hinted::System {
            locks.table = true;
        } else if token.is_any(&HARMLESS) {
            reads_all |= token.is_any(&["nolock", "readuncommitted"]);
        } else if parser.dialect.is_strict && !token.is_any(&REFUSED) {
            let text = format!("\"{}\" is not a recognized table hints option. If it is intended as a parameter to a \
                                table-valued function or to the CHANGETABLE function, ensure that your database compatibility \
                                mode is set to 90.", token.value);
            return Err(Error::new(321, text, token.at));
        } else {
            let what = format!("with ({})", token.shown());
            return Err(Error::refused(&what, WHY, token.at));
        }
        parser.symbol(",");
        if parser.symbol(")") {
            break;
        }
    }
    if (locks.rows || locks.table) && reads_all {
        return Err(Error::new(1047, "Conflicting locking hints specified.", start));
    }
    if is_target && reads_all {
        let text = "The NOLOCK and READUNCOMMITTED lock hints are not allowed for target tables of INSERT, UPDATE, DELETE or \
                    MERGE statements.";
        return Err(Error::new(1065, text, start));
    }
    // TABLOCK alone, on a table that is only read, ends with the statement
    locks.table |= at_table && (locks.rows || of == Hinted::Changed);
    // the catalogue is never locked, and a reader does not wait
    if of == Hinted::System || locks == (Locks { fails: locks.fails, ..Locks::default() }) {
        return Ok(Locks::default());
    }
    if locks.skips && (locks.table || !locks.rows) {
        return Err(Error::refused("with (readpast)", WHY, start));
    }
    Ok(locks)
}

/// `index (i)`, `index = i`, `index i`.
fn index_hint(parser: &mut Parser<'_>) -> Result<(), Error> {
    parser.symbol("=");
    if parser.next_is_symbol("(") {
        parser.in_parentheses(|parser| parser.advance().map(|_| ()))?;
    } else {
        parser.advance()?;
    }
    Ok(())
}

/// Hints without WITH: `t (nolock)`, `t (index i)`; false for anything else in parentheses.
fn bare_hints(parser: &mut Parser<'_>, _table: &ObjectName) -> Result<bool, Error> {
    let Some(inner) = parser.ahead(1) else { return Ok(false) };
    if inner.is_any(&LOCKING) && parser.ahead_is_symbol(2, ")") {
        return Err(Error::refused(&inner.value, "it changes what is locked", inner.at));
    }
    if inner.is_any(&HARMLESS) && (parser.ahead_is_symbol(2, ")") || parser.ahead_is_symbol(2, ",")) {
        parser.at += 1;
        parser.list(|parser| parser.expect_any(&HARMLESS))?;
        parser.expect_symbol(")")?;
        return Ok(true);
    }
    if inner.is("index") {
        parser.at += 2;
        index_hint(parser)?;
        parser.expect_symbol(")")?;
        return Ok(true);
    }
    Ok(false)
}

fn refuse_pivot(parser: &Parser<'_>) -> Result<(), Error> {
    match parser.peek() {
        Some(token) if token.is_any(&["pivot", "unpivot"]) => Err(query::refused_word(parser, token)),
        _ => Ok(()),
    }
}
