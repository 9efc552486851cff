//! Cursors of a procedure: they fetch row by row, also backwards if declared so.

use super::{current, message};
use crate::bind::{self, Changes, Translated, Value, Variables, Verb};
use crate::error::Error;
use crate::facts::session;
use crate::facts::types::{INT, UNKNOWN};
use crate::plpgsql::Step;
use crate::postgres::{Listed, Query as Rows, Scalar};
use crate::procedure::context::Context;
use crate::procedure::declared::{missing, Cursor, FETCH_STATUS};
use crate::procedure::run;
use crate::procedure::run::Run;
use crate::procedure::variable::{field, variable, Named, ROW};
use crate::procedure::writer::{BodyWriter, RowCount};
use crate::resolve::names::stored;
use crate::resolve::Scope;
use crate::tree::{CursorName, CursorOption, DeclareCursor, Direction, Fetch, Query, StatementKind as Tree};
use std::collections::HashMap;

/// A cursor returns the rows as of its opening; ASE also reads variables then, SQL Server earlier.
pub(super) fn declare_cursor<'t>(
    writer: &mut BodyWriter<'t>,
    declare: &'t DeclareCursor,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let name = cursor_name(&declare.name, line)?;
    let there = declared_name(&name);
    writer.declare_as(there.as_str(), "boolean", Scalar::Boolean(false));
    let text = format!("A cursor with the name '{name}' already exists.");
    let check = Step::if_(variable(&there), [message::raise_error(writer, 16915, text, line)]);
    run::run_with_end(writer, context, line, Run::new([check, Step::assign(there, Scalar::Boolean(true))]));
    let cursor = format!("@@cursor {}", writer.number());
    writer.declare(cursor.as_str(), "refcursor");
    for status in FETCH_STATUS {
        writer.declare_as(status, "integer", Scalar::number(0));
    }
    let mut copies = HashMap::new();
    if writer.scope.dialect.cursors_copy_variables {
        for used in variables_of(writer, &declare.query)? {
            let copy = format!("{cursor} {}", copies.len() + 1);
            let of = writer.type_of(&used, line)?;
            writer.declare(copy.as_str(), of.sql());
            writer.add(Step::assign(copy.as_str(), variable(&used)));
            copies.insert(used, copy);
        }
    }
    let scrolls = declare.options.iter().any(scrolls);
    let is_changed = writer.changed_cursors.contains(&name);
    let changes = if is_changed { Some(Changes::of(declare)?) } else { None };
    let (query, columns, locations) = (&declare.query, None, Vec::new());
    let is_static = declare.is_static();
    let cursor = Cursor { variable: cursor, query, copies, columns, scrolls, is_static, changes, locations };
    writer.cursors.insert(name, cursor);
    Ok(())
}

/// The procedure's own variables that a query names.
fn variables_of(writer: &BodyWriter<'_>, query: &Query) -> Result<Vec<String>, Error> {
    struct Recorder<'w>(Named<'w>, Vec<String>);
    impl Variables for Recorder<'_> {
        fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
            if !session::is_global(name) && !self.1.iter().any(|known| known == name) {
                self.1.push(name.to_owned());
            }
            self.0.write(name, line)
        }
    }
    let (scope, named) = writer.named();
    let mut recorder = Recorder(named, Vec::new());
    select(query, scope, &mut recorder)?;
    Ok(recorder.1)
}

pub(super) fn open<'t>(
    writer: &mut BodyWriter<'t>,
    name: &CursorName,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let name = cursor_name(name, line)?;
    let cursor = writer.cursors.get_mut(&name).ok_or_else(|| missing(&name, line))?;
    let (variable, query, scrolls) = (cursor.variable.clone(), cursor.query, cursor.scrolls);
    let copies = cursor.copies.clone();
    let before = std::mem::replace(&mut writer.copies, copies);
    let (scope, mut named) = writer.named();
    named.marks_lists = true;
    let translated = select(query, scope, &mut named);
    writer.copies = before;
    let translated = translated?;
    let what = format!("cursor {name}");
    let refused = || Error::refused(&what, "a cursor reads a select", query.at);
    if !translated.assigns.is_empty() || translated.kind != Verb::Select {
        return Err(refused());
    }
    let Some(columns) = &translated.columns else {
        return Err(Error::refused(&what, "name its columns instead of *", query.at));
    };
    let columns = columns.len();
    let (sql, locations) = current::with_locations(writer, &name, translated);
    let Some(rows) = sql.into_query() else { return Err(refused()) };
    let names = (1..=columns).map(|location| format!("c{location}"));
    let names: Vec<_> = names.chain((1..=locations.len()).map(|location| format!("p{location}"))).collect();
    let rows = rows_of(rows, names);
    let mut steps = vec![Step::Open { cursor: variable, scrolls, query: rows.into() }];
    steps.extend(locations.iter().map(|(_, at)| Step::assign(at.as_str(), Scalar::Null)));
    if let Some(cursor) = writer.cursors.get_mut(&name) {
        (cursor.columns, cursor.locations) = (Some(columns), locations);
    }
    run::run_with_end(writer, context, line, Run::new(steps));
    Ok(())
}

/// Assigns a row's values to the variables, which remain unchanged after the last row.
pub(super) fn fetch<'t>(
    writer: &mut BodyWriter<'t>,
    fetch: &Fetch,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let name = cursor_name(&fetch.cursor, line)?;
    if fetch.into.is_empty() {
        let why = "read rows for the client with a select";
        return Err(Error::refused("fetch without into", why, line));
    }
    let cursor = writer.cursors.get(&name).ok_or_else(|| missing(&name, line))?;
    if cursor.columns.is_some_and(|columns| columns != fetch.into.len()) {
        let text = "Cursorfetch: The number of variables declared in the INTO list must match that of \
                        selected columns.";
        return Err(Error::new(16924, text, line).with_severity(16));
    }
    if cursor.changes.is_some() && cursor.columns.is_none() {
        return Err(Error::refused("fetch before open", "open the cursor further up", line));
    }
    let locations: Vec<_> = cursor.locations.iter().map(|(_, at)| at.clone()).collect();
    let cursor_variable = cursor.variable.clone();
    if fetch.direction != Direction::Next && !cursor.scrolls {
        let text = format!(
            "fetch: The fetch type {} cannot be used with forward only cursors.",
            word(&fetch.direction)
        );
        return Err(Error::new(16911, text, line).with_severity(16));
    }
    let count = match &fetch.direction {
        Direction::Absolute(count) | Direction::Relative(count) => Some(writer.value(count, INT)?),
        _ => None,
    };
    writer.declare(ROW, "record");
    let direction = word(&fetch.direction);
    let statuses = |values: [i32; 2]| {
        (FETCH_STATUS.iter().zip(values)).map(|(of, value)| Step::assign(*of, Scalar::number(value)))
    };
    let mut found = Vec::new();
    for (column, into) in (1..).zip(&fetch.into) {
        let of = writer.type_of(&into.name, line)?;
        let fetched = Value::new(field(ROW, format!("c{column}")), UNKNOWN);
        let value = bind::assigned(fetched, of, line, writer.scope.dialect)?.sql;
        found.push(Step::assign(into.name.as_str(), value.cast(of.sql())));
    }
    let row_locations =
        (1..).zip(&locations).map(|(number, at)| Step::assign(at.as_str(), field(ROW, format!("p{number}"))));
    found.extend(row_locations);
    found.extend(statuses([0, 0]));
    let mut none: Vec<_> = locations.iter().map(|at| Step::assign(at.as_str(), Scalar::Null)).collect();
    none.push(Step::assign(FETCH_STATUS[1], Scalar::number(2)));
    // also after an error, if the procedure continues
    let mut steps: Vec<_> = statuses([-1, 1]).collect();
    steps.push(Step::Fetch { direction, count, cursor: cursor_variable, into: ROW.to_owned() });
    steps.push(Step::If(vec![(Scalar::column("found"), found)], none));
    let is_row = variable(FETCH_STATUS[0]).infix("=", Scalar::number(0));
    let rows = Scalar::either(is_row, Scalar::number(1), Scalar::number(0));
    run::run_with_end(writer, context, line, Run::leaving(steps, RowCount::Value(rows)));
    Ok(())
}

pub(super) fn close<'t>(
    writer: &mut BodyWriter<'t>,
    name: &CursorName,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let steps = closing(cursor_variable(writer, name, line)?);
    run::run_with_end(writer, context, line, Run::new(steps));
    Ok(())
}

pub(super) fn deallocate<'t>(
    writer: &mut BodyWriter<'t>,
    name: &CursorName,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let cursor = cursor_variable(writer, name, line)?;
    let is_declared = declared_name(&cursor_name(name, line)?);
    let steps = [
        Step::if_(variable(cursor).is_null(false), closing(cursor)),
        Step::assign(is_declared, Scalar::Boolean(false)),
    ];
    run::run_with_end(writer, context, line, Run::new(steps));
    Ok(())
}

fn cursor_variable<'w>(writer: &'w BodyWriter<'_>, name: &CursorName, line: u32) -> Result<&'w str, Error> {
    let name = cursor_name(name, line)?;
    Ok(&writer.cursors.get(&name).ok_or_else(|| missing(&name, line))?.variable)
}

fn closing(cursor: &str) -> [Step; 2] {
    [Step::Close(cursor.to_owned()), Step::assign(cursor, Scalar::Null)]
}

/// The rows of a query, with these names of columns.
pub(super) fn rows_of(query: Rows, columns: Vec<String>) -> Rows {
    Rows::of([Listed::from(Scalar::Star)], query.named("\"@@r\"", columns))
}

fn select(query: &Query, scope: &Scope, variables: &mut dyn Variables) -> Result<Translated, Error> {
    let statement = Tree::Select(Box::new(query.clone()));
    bind::statement(&statement, scope, variables)?.ok_or_else(|| Error::keyword("cursor", query.at))
}

fn scrolls(option: &CursorOption) -> bool {
    use CursorOption::{Dynamic, Insensitive, Keyset, Scroll, Static};
    matches!(option, Scroll | Static | Insensitive | Keyset | Dynamic)
}

fn word(direction: &Direction) -> &'static str {
    match direction {
        Direction::Next => "next",
        Direction::Prior => "prior",
        Direction::First => "first",
        Direction::Last => "last",
        Direction::Absolute(_) => "absolute",
        Direction::Relative(_) => "relative",
    }
}

/// The variable that is true while a cursor of this name exists.
fn declared_name(name: &str) -> String {
    format!("@@declared {name}")
}

fn cursor_name(name: &CursorName, line: u32) -> Result<String, Error> {
    match name {
        CursorName::Name { name, .. } => Ok(stored(&name.text)),
        CursorName::Variable(variable) => {
            Err(Error::refused(&variable.name, "a cursor is named without a variable", line))
        }
    }
}
