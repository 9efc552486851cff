//! Texts and images by their pointers. A pointer contains the version of a row and the column in it
//! (`gateway/sql/texts/pointers.sql`): a statement finds the row by both, or fails.

use super::insert;
use crate::bind::binder::variables::Variables;
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::query::sources;
use crate::bind::values::converted;
use crate::error::Error;
use crate::facts::session::SENT_TEXT;
use crate::facts::types::{Family, INT, VARBINARY};
use crate::postgres::{call, Listed, Query, Scalar, Select, Source};
use crate::resolve::names::{folded, quoted};
use crate::resolve::Scope;
use crate::tree::{
    ColumnName, Expression, Readtext, StatementKind, TextSource, Updatetext, Writetext, WritetextBulk,
};

/// The names of the statements in messages.
const READ: &str = "ReadText";
const WRITE: &str = "WriteText";
const UPDATE: &str = "UpdateText";

/// The column and row of a pointer.
struct TextColumn {
    table: String,
    column: String,
    pointer: Scalar,
    /// The row's ctid. Error 7123 and others if there is none.
    found: Scalar,
    /// The condition that finds the row.
    is_row: Scalar,
}

/// The SQL of writetext and updatetext; None for other statements.
pub fn text_change(
    statement: &StatementKind,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Option<String>, Error> {
    let mut binder = Binder::new(scope, variables);
    Ok(match statement {
        StatementKind::Writetext(write) => Some(writetext(&mut binder, write)?),
        StatementKind::Updatetext(update) => Some(updatetext(&mut binder, update)?),
        _ => None,
    })
}

/// The check that a text sent later can be written.
pub fn check_of_text(
    text: &WritetextBulk,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<String, Error> {
    let mut binder = Binder::new(scope, variables);
    let line = text.column.at.line;
    let location = location(&mut binder, &text.column, &text.pointer, WRITE)?;
    let timestamp = match &text.timestamp {
        None => Scalar::Null.cast("bytea"),
        Some(timestamp) => {
            let value = expressions::value(&mut binder, timestamp)?;
            converted(value, VARBINARY, line, scope.dialect)?.sql
        }
    };
    let TextColumn { found, pointer, .. } = location;
    Ok(format!("select {found}::text, tsql.check_text_timestamp({pointer}, {timestamp})"))
}

/// A query of its column, and the statement that writes it.
pub fn change_of_text(
    text: &WritetextBulk,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<(String, String), Error> {
    let mut binder = Binder::new(scope, variables);
    let location = location(&mut binder, &text.column, &text.pointer, WRITE)?;
    let value = binder.variables.write(SENT_TEXT, text.column.at.line)?;
    let column = format!("select {} from {}", location.column, location.table);
    Ok((column, location.changed(&value)))
}

pub fn readtext(binder: &mut Binder<'_>, read: &Readtext) -> Result<Query, Error> {
    binder.note(|facts| facts.reads = true);
    let location = location(binder, &read.column, &read.pointer, READ)?;
    let (offset, size) = (number(binder, &read.offset)?, number(binder, &read.size)?);
    let counts_bytes = binder.dialect().readtext_counts_bytes && !read.by_characters;
    let TextColumn { table, column, is_row, .. } = location;
    let flags = [binder.dialect().is_ase, counts_bytes].map(Scalar::Boolean);
    let [is_ase, counts_bytes] = flags;
    let arguments = [Scalar::column(&column), offset, size, is_ase, counts_bytes];
    Ok(Query::from(Select {
        list: vec![Listed::named(call("tsql.text_part", arguments), column)],
        from: vec![Source::Table(table, None)],
        conditions: vec![is_row],
        ..Select::default()
    }))
}

fn writetext(binder: &mut Binder<'_>, write: &Writetext) -> Result<String, Error> {
    let location = location(binder, &write.column, &write.pointer, WRITE)?;
    let value = expressions::value(binder, &write.value)?;
    let column = folded(&write.column.column, write.column.at.line)?;
    let targets = insert::target_column(binder, &location.table, Some(column));
    let value = targets.stored(binder, 0, &value, write.column.at.line)?;
    Ok(location.changed(&value))
}

fn updatetext(binder: &mut Binder<'_>, update: &Updatetext) -> Result<String, Error> {
    let location = location(binder, &update.column, &update.pointer, UPDATE)?;
    let (offset, length) = (number(binder, &update.offset)?, number(binder, &update.length)?);
    let put = match &update.source {
        TextSource::Nothing => None,
        TextSource::Value(value) => {
            let line = value.at().line;
            let value = expressions::value(binder, value)?;
            match value.family() {
                _ if value.is_null() => None,
                Family::Text | Family::Binary => Some(value.sql),
                _ => return Err(Error::refused("updatetext", "the value is no text and no binary", line)),
            }
        }
        TextSource::Column { column, pointer } => {
            let TextColumn { table, column, is_row, .. } = self::location(binder, column, pointer, UPDATE)?;
            let rows = Select {
                list: vec![Listed::from(Scalar::Column(None, column))],
                from: vec![Source::Table(table, None)],
                conditions: vec![is_row],
                ..Select::default()
            };
            Some(Scalar::Query(Box::new(rows.into())))
        }
    };
    let arguments = [Scalar::column(&location.column), offset, length].into_iter().chain(put);
    Ok(location.changed(&call("tsql.text_spliced", arguments.collect::<Vec<_>>())))
}

fn location(
    binder: &mut Binder<'_>,
    column: &ColumnName,
    pointer: &Expression,
    statement: &str,
) -> Result<TextColumn, Error> {
    let line = column.at.line;
    let of = column.table.as_deref().ok_or_else(|| Error::syntax(&column.column, line))?;
    let table = sources::table(binder, of)?;
    let own = folded(&column.column, line)?;
    let pointer = expressions::value(binder, pointer)?;
    let pointer = converted(pointer, VARBINARY, line, binder.dialect())?.sql;
    let (table_name, named) = (Scalar::text(&table), Scalar::text(&own));
    let found = call("tsql.text_place", [table_name, named, pointer.clone(), Scalar::text(statement)]);
    let is_found = Scalar::column("ctid").infix("=", found.clone());
    let writer = call("tsql.text_writer", [pointer.clone()]);
    let is_row = is_found.and(Scalar::column("xmin").infix("=", writer));
    Ok(TextColumn { table, column: quoted(&own), pointer, found, is_row })
}

fn number(binder: &mut Binder<'_>, value: &Expression) -> Result<Scalar, Error> {
    let line = value.at().line;
    let value = expressions::value(binder, value)?;
    Ok(converted(value, INT, line, binder.dialect())?.sql)
}

impl TextColumn {
    /// The statement that sets the column, and notes the row's new version.
    fn changed(&self, value: &Scalar) -> String {
        let TextColumn { table, column, pointer, is_row, .. } = self;
        format!(
            "with written as (update {table} set {column} = {value} where {is_row} \
             returning tidsend(ctid) || xidsend(xmin) as version) \
             select tsql.text_written({pointer}, (select version from written))"
        )
    }
}
