//! `where current of` in a procedure: variables hold ctid and xmin of the row fetched last.

use super::message;
use crate::bind::{location_of, Changes, Current, Translated};
use crate::error::Error;
use crate::plpgsql::{Body, Step};
use crate::postgres::{Listed, Scalar, Statement};
use crate::procedure::declared::{location_in, missing};
use crate::procedure::variable::variable;
use crate::procedure::writer::BodyWriter;

/// The query of a cursor with ctid and xmin of each row as an additional column per table; with their tables and
/// variables.
pub(super) fn with_locations(
    writer: &mut BodyWriter<'_>,
    name: &str,
    translated: Translated,
) -> (Statement, Vec<(String, String)>) {
    let (mut sql, sources) = (translated.sql, translated.row_sources);
    let list = sql.close_list();
    let cursor = writer.cursors.get(name);
    let variable =
        cursor.filter(|cursor| matches!(&cursor.changes, Some(changes) if *changes != Changes::None));
    let Some(cursor) = variable.filter(|_| !sources.is_empty()) else {
        return (sql, Vec::new());
    };
    let variable = cursor.variable.clone();
    if let Some(list) = list {
        list.extend(sources.iter().map(|source| Listed::from(location_of(&source.qualifier))));
    }
    let at = |number| format!("{variable} place {number}");
    let locations: Vec<_> = (1..).zip(sources).map(|(number, source)| (source.table, at(number))).collect();
    for (_, at) in &locations {
        writer.declare(at.clone(), "text");
    }
    (sql, locations)
}

/// The steps of a change, which fails if the row no longer exists.
pub(super) fn change_current(
    writer: &BodyWriter<'_>,
    current: &Current,
    change: Statement,
    line: u32,
) -> Result<Body, Error> {
    let cursor = writer.cursors.get(&current.cursor).ok_or_else(|| missing(&current.cursor, line))?;
    let allowed = cursor.changes.as_ref().unwrap_or(&Changes::None).allow(&current.columns);
    allowed.map_err(|(number, text)| Error::new(number, text, line).with_severity(16))?;
    let location = location_in(&writer.cursors, &current.cursor, &current.table, line)?;
    let none = message::raise_error(writer, 16931, "There are no rows in the current fetch buffer.", line);
    let text = "Optimistic concurrency check failed. The row was modified outside of this cursor.";
    let changed = message::raise_error(writer, 16934, text, line);
    let is_missing = Scalar::column("found").negated_if(true);
    Ok(vec![
        Step::if_(variable(&location).is_null(true), [none]),
        Step::SqlInto(change, location),
        Step::if_(is_missing, [changed]),
    ])
}
