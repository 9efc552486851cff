//! `where current of` in a procedure: variables hold ctid and xmin of the row fetched last.

use super::declared::{missing, place_in};
use super::writer::BodyWriter;
use crate::error::Error;
use crate::postgres::{Listed, Statement};
use crate::resolve::names::literal;
use crate::translate::{place_of, Changes, Current, Translated};

impl BodyWriter<'_> {
    /// The query of a cursor with ctid and xmin of each row as an additional column per table; with their tables and
    /// variables.
    pub(super) fn with_places(
        &mut self,
        name: &str,
        translated: Translated,
    ) -> (Statement, Vec<(String, String)>) {
        let (mut sql, sources) = (translated.sql, translated.row_sources);
        let list = sql.close_list();
        let cursor = self.cursors.get(name);
        let variable =
            cursor.filter(|cursor| matches!(&cursor.changes, Some(changes) if *changes != Changes::None));
        let Some(cursor) = variable.filter(|_| !sources.is_empty()) else {
            return (sql, Vec::new());
        };
        let variable = cursor.variable.clone();
        if let Some(list) = list {
            list.extend(sources.iter().map(|source| Listed::from(place_of(&source.qualifier))));
        }
        let at = |number| format!("{variable} place {number}");
        let places: Vec<_> = (1..).zip(sources).map(|(number, source)| (source.table, at(number))).collect();
        for (_, at) in &places {
            self.declare(at.clone(), "text");
        }
        (sql, places)
    }

    /// The lines of a change, which fails if the row no longer exists.
    pub(super) fn change_current(
        &self,
        current: &Current,
        sql: &str,
        line: u32,
    ) -> Result<Vec<String>, Error> {
        let cursor = self.cursors.get(&current.cursor).ok_or_else(|| missing(&current.cursor, line))?;
        let allowed = cursor.changes.as_ref().unwrap_or(&Changes::None).allow(&current.columns);
        allowed.map_err(|(number, text)| Error::new(number, text, line).with_severity(16))?;
        let place = place_in(&self.cursors, &current.cursor, &current.table, line)?;
        let own = literal(&self.name);
        let raise = |number: i32, text: &str| {
            format!("perform tsql.raise({number}, 16, 1, {}, {line}, {own}); end if;", literal(text))
        };
        let none = raise(16931, "There are no rows in the current fetch buffer.");
        let changed =
            raise(16934, "Optimistic concurrency check failed. The row was modified outside of this cursor.");
        Ok(vec![
            format!("if {place} is null then {none}"),
            format!("{sql} into {place};"),
            format!("if not found then {changed}"),
        ])
    }
}
