//! Cursors of a batch, which the session opens and reads row by row.

use super::compiler::{selected, Compiler};
use super::written;
use super::{statement, value};
use crate::bind::{self, Numbered, Value};
use crate::error::Error;
use crate::facts::types::{Type, INT, UNKNOWN};
use crate::postgres::Scalar;
use crate::program::{Action, Changes, CursorAction, Expression, FetchFrom, Query, Sql, Tree as Bindable};
use crate::tree::{CursorOption, DeclareCursor, Direction, Fetch, StatementKind as Tree};

pub(super) fn declare_cursor(compiler: &mut Compiler<'_>, declare: &DeclareCursor) -> Result<Action, Error> {
    let name = declare.name.known();
    let select = Tree::Select(Box::new(declare.query.clone()));
    let is_plain = |query: &Query| query.only_reads() && query.assigns.is_empty();
    let written = written::statement(&select, &compiler.scope)?.filter(|written| is_plain(&written.query));
    let written = written.ok_or_else(|| {
        Error::refused(&format!("cursor {name}"), "a cursor reads a select", declare.query.at)
    })?;
    let has = |wanted: &[CursorOption]| declare.options.iter().any(|option| wanted.contains(option));
    use CursorOption::{Dynamic, FastForward, ForwardOnly, Insensitive, Keyset, Local, Scroll, Static};
    let scrolls = has(&[Scroll, Static, Insensitive, Keyset, Dynamic]) && !has(&[ForwardOnly, FastForward]);
    let query = written::bound(compiler, written, declare.query.at, || Bindable::Statement(select));
    Ok(Action::Cursor(CursorAction::Declare {
        is_local: has(&[Local]) || name.starts_with('@'),
        name,
        query: Box::new(query),
        scrolls,
        is_filled: has(&[Static, Insensitive, Keyset]),
        is_static: declare.is_static(),
        changes: Changes::of(declare)?,
    }))
}

pub(super) fn fetch(compiler: &mut Compiler<'_>, fetch: &Fetch) -> Result<Action, Error> {
    let from = match &fetch.direction {
        Direction::Next => FetchFrom::Next,
        Direction::Prior => FetchFrom::Prior,
        Direction::First => FetchFrom::First,
        Direction::Last => FetchFrom::Last,
        Direction::Absolute(row) => FetchFrom::Absolute(self::row(compiler, row)?),
        Direction::Relative(rows) => FetchFrom::Relative(row(compiler, rows)?),
    };
    let mut into = Vec::with_capacity(fetch.into.len());
    let mut types = Vec::with_capacity(fetch.into.len());
    for variable in &fetch.into {
        types.push(statement::declared(compiler, variable)?);
        into.push(variable.name.clone());
    }
    let taken = if into.is_empty() { None } else { Some(taken(compiler, &types, fetch_line(fetch))?) };
    Ok(Action::Cursor(CursorAction::Fetch { name: fetch.cursor.known(), from, into, taken }))
}

/// Converts values of any types to `types`.
pub(super) fn taken(compiler: &Compiler<'_>, types: &[Type], line: u32) -> Result<Sql, Error> {
    let mut values = Vec::with_capacity(types.len());
    for (index, of) in types.iter().enumerate() {
        let value = Value::new(Scalar::Parameter(index), UNKNOWN);
        values.push(match of.is_tsql() {
            true => bind::assigned(value, *of, line, compiler.scope.dialect)?.sql,
            false => value.sql,
        });
    }
    let names = (1..=types.len()).map(|index| format!("#taken_{index}")).collect();
    let numbered = Numbered { names, ..Numbered::default() };
    Ok(selected(&values, numbered))
}

fn row(compiler: &mut Compiler<'_>, row: &crate::tree::Expression) -> Result<Expression, Error> {
    value::value(compiler, row, Some(INT))
}

fn fetch_line(fetch: &Fetch) -> u32 {
    fetch.into.first().map_or(1, |variable| variable.at.line)
}
