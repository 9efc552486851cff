//! Cursors of a procedure: they fetch row by row, also backwards if declared so.

use super::context::Context;
use super::declared::{missing, Cursor, FETCH_STATUS};
use super::run::Run;
use super::variable::ROW;
use super::writer::{quoted, BodyWriter};
use crate::error::Error;
use crate::facts::session;
use crate::facts::types::INT;
use crate::postgres::Scalar;
use crate::resolve::names::{literal, stored};
use crate::resolve::Scope;
use crate::translate::{self, Changes, Translated, Value, Variables, Verb};
use crate::tree::{CursorName, CursorOption, DeclareCursor, Direction, Fetch, Query, StatementKind as Tree};
use std::collections::HashMap;

impl<'t> BodyWriter<'t> {
    /// A cursor returns the rows as of its opening; ASE also reads variables then, SQL Server earlier.
    pub(super) fn declare_cursor(
        &mut self,
        declare: &'t DeclareCursor,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let name = cursor_name(&declare.name, line)?;
        let there = declared_name(&name);
        self.declare(there.clone(), "boolean := false");
        let there = quoted(&there);
        let text = literal(&format!("A cursor with the name '{name}' already exists."));
        let own = literal(&self.name);
        let check =
            format!("if {there} then perform tsql.raise(16915, 16, 1, {text}, {line}, {own}); end if;");
        self.run_with_end(context, line, Run::new(vec![check, format!("{there} := true;")]));
        let variable = format!("@@cursor {}", self.number());
        self.declare(variable.clone(), "refcursor");
        for status in FETCH_STATUS {
            self.declare(status, "integer := 0");
        }
        let mut copies = HashMap::new();
        if self.scope.dialect.cursors_copy_variables {
            for used in self.variables_of(&declare.query)? {
                let copy = format!("{variable} {}", copies.len() + 1);
                let of = self.type_of(&used, line)?;
                self.declare(copy.clone(), of.sql());
                self.add(format!("{} := {};", quoted(&copy), quoted(&used)));
                copies.insert(used, copy);
            }
        }
        let scrolls = declare.options.iter().any(scrolls);
        let is_changed = self.changed_cursors.contains(&name);
        let changes = if is_changed { Some(Changes::of(declare)?) } else { None };
        let (query, columns, places) = (&declare.query, None, Vec::new());
        let is_static = declare.is_static();
        let cursor = Cursor { variable, query, copies, columns, scrolls, is_static, changes, places };
        self.cursors.insert(name, cursor);
        Ok(())
    }

    /// The procedure's own variables that a query names.
    fn variables_of(&self, query: &Query) -> Result<Vec<String>, Error> {
        struct Recorder<'w>(super::variable::Named<'w>, Vec<String>);
        impl Variables for Recorder<'_> {
            fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
                if !session::is_global(name) && !self.1.iter().any(|known| known == name) {
                    self.1.push(name.to_owned());
                }
                self.0.write(name, line)
            }
        }
        let (scope, named) = self.named();
        let mut recorder = Recorder(named, Vec::new());
        select(query, scope, &mut recorder)?;
        Ok(recorder.1)
    }

    pub(super) fn open(&mut self, name: &CursorName, line: u32, context: &Context<'t>) -> Result<(), Error> {
        let name = cursor_name(name, line)?;
        let cursor = self.cursors.get_mut(&name).ok_or_else(|| missing(&name, line))?;
        let (variable, query) = (cursor.variable.clone(), cursor.query);
        let scroll = if cursor.scrolls { "scroll" } else { "no scroll" };
        let copies = cursor.copies.clone();
        let before = std::mem::replace(&mut self.copies, copies);
        let (scope, mut named) = self.named();
        named.marks_lists = true;
        let translated = select(query, scope, &mut named);
        self.copies = before;
        let translated = translated?;
        let what = format!("cursor {name}");
        if !translated.assigns.is_empty() || translated.kind != Verb::Select {
            return Err(Error::refused(&what, "a cursor reads a select", query.at));
        }
        let Some(columns) = &translated.columns else {
            return Err(Error::refused(&what, "name its columns instead of *", query.at));
        };
        let columns = columns.len();
        let (sql, places) = self.with_places(&name, translated);
        let names = (1..=columns).map(|place| format!("c{place}"));
        let names: Vec<_> = names.chain((1..=places.len()).map(|place| format!("p{place}"))).collect();
        let open = format!(
            "open {} {scroll} for select * from ({sql}) as \"@@r\" ({});",
            quoted(&variable),
            names.join(", ")
        );
        let mut lines = vec![open];
        lines.extend(places.iter().map(|(_, at)| format!("{} := null;", quoted(at))));
        if let Some(cursor) = self.cursors.get_mut(&name) {
            (cursor.columns, cursor.places) = (Some(columns), places);
        }
        self.run_with_end(context, line, Run::new(lines));
        Ok(())
    }

    /// Assigns a row's values to the variables, which remain unchanged after the last row.
    pub(super) fn fetch(&mut self, fetch: &Fetch, line: u32, context: &Context<'t>) -> Result<(), Error> {
        let name = cursor_name(&fetch.cursor, line)?;
        if fetch.into.is_empty() {
            let why = "read rows for the client with a select";
            return Err(Error::refused("fetch without into", why, line));
        }
        let cursor = self.cursors.get(&name).ok_or_else(|| missing(&name, line))?;
        if cursor.columns.is_some_and(|columns| columns != fetch.into.len()) {
            let text = "Cursorfetch: The number of variables declared in the INTO list must match that of \
                        selected columns.";
            return Err(Error::new(16924, text, line).with_severity(16));
        }
        if cursor.changes.is_some() && cursor.columns.is_none() {
            return Err(Error::refused("fetch before open", "open the cursor further up", line));
        }
        let places: Vec<_> = cursor.places.iter().map(|(_, at)| quoted(at)).collect();
        let variable = quoted(&cursor.variable);
        if fetch.direction != Direction::Next && !cursor.scrolls {
            let text = format!(
                "fetch: The fetch type {} cannot be used with forward only cursors.",
                word(&fetch.direction)
            );
            return Err(Error::new(16911, text, line).with_severity(16));
        }
        let direction = match &fetch.direction {
            Direction::Absolute(place) | Direction::Relative(place) => {
                format!("{} ({})", word(&fetch.direction), self.value(place, INT)?)
            }
            direction => word(direction).to_owned(),
        };
        self.declare(ROW, "record");
        let row = quoted(ROW);
        let [status, sybase] = FETCH_STATUS.map(quoted);
        let mut lines = vec![
            // also after an error, if the procedure continues
            format!("{status} := -1; {sybase} := 1;"),
            format!("fetch {direction} from {variable} into {row};"),
            String::from("if found then"),
        ];
        for (column, into) in (1..).zip(&fetch.into) {
            let of = self.type_of(&into.name, line)?;
            let fetched = Value::unknown(Scalar::Column(Some(row.clone()), format!("c{column}")));
            let value = translate::assigned(fetched, of, line, self.scope.dialect)?.sql;
            lines.push(format!("  {} := {value}::{};", quoted(&into.name), of.sql()));
        }
        lines.extend((1..).zip(&places).map(|(number, at)| format!("  {at} := {row}.p{number};")));
        lines.push(format!("  {status} := 0; {sybase} := 0;"));
        lines.push(String::from("else"));
        lines.extend(places.iter().map(|at| format!("  {at} := null;")));
        lines.push(format!("  {sybase} := 2;"));
        lines.push(String::from("end if;"));
        let rows = format!("case {status} when 0 then 1 else 0 end");
        self.run_with_end(context, line, Run::leaving(lines, rows));
        Ok(())
    }

    pub(super) fn close(&mut self, name: &CursorName, line: u32, context: &Context<'t>) -> Result<(), Error> {
        let variable = self.cursor_variable(name, line)?;
        self.run_with_end(
            context,
            line,
            Run::new(vec![format!("close {variable};"), format!("{variable} := null;")]),
        );
        Ok(())
    }

    pub(super) fn deallocate(
        &mut self,
        name: &CursorName,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let variable = self.cursor_variable(name, line)?;
        let lines = vec![
            format!("if {variable} is not null then close {variable}; {variable} := null; end if;"),
            format!("{} := false;", quoted(&declared_name(&cursor_name(name, line)?))),
        ];
        self.run_with_end(context, line, Run::new(lines));
        Ok(())
    }

    fn cursor_variable(&self, name: &CursorName, line: u32) -> Result<String, Error> {
        let name = cursor_name(name, line)?;
        let cursor = self.cursors.get(&name).ok_or_else(|| missing(&name, line))?;
        Ok(quoted(&cursor.variable))
    }
}

fn select(query: &Query, scope: &Scope, variables: &mut dyn Variables) -> Result<Translated, Error> {
    let statement = Tree::Select(Box::new(query.clone()));
    translate::statement(&statement, scope, variables)?.ok_or_else(|| Error::keyword("cursor", query.at))
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
