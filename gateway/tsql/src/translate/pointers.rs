//! Texts and images by their pointers. A pointer contains the version of a row and the column in it
//! (`gateway/sql/texts/pointers.sql`): a statement finds the row by both, or fails.

use super::calls::CallTranslation;
use super::translation::Translation;
use super::value::{carried_into, converted, Value};
use crate::error::Error;
use crate::facts::session::SENT_TEXT;
use crate::facts::types::{Family, Type, INT, VARBINARY};
use crate::postgres::{call, Listed, Query, Scalar, Select, Source};
use crate::resolve::names::{folded, quoted};
use crate::resolve::Scope;
use crate::translate::Variables;
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
    let mut translation = Translation::new(scope, variables);
    Ok(match statement {
        StatementKind::Writetext(write) => Some(translation.writetext(write)?),
        StatementKind::Updatetext(update) => Some(translation.updatetext(update)?),
        _ => None,
    })
}

/// The check that a text sent later can be written.
pub fn check_of_text(
    text: &WritetextBulk,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<String, Error> {
    let mut translation = Translation::new(scope, variables);
    let line = text.column.at.line;
    let place = translation.place(&text.column, &text.pointer, WRITE)?;
    let timestamp = match &text.timestamp {
        None => Scalar::Null.cast("bytea"),
        Some(timestamp) => {
            let value = translation.value(timestamp)?;
            converted(value, VARBINARY, line, scope.dialect)?.sql
        }
    };
    let TextColumn { found, pointer, .. } = place;
    Ok(format!("select {found}::text, tsql.check_text_timestamp({pointer}, {timestamp})"))
}

/// A query of its column, and the statement that writes it.
pub fn change_of_text(
    text: &WritetextBulk,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<(String, String), Error> {
    let mut translation = Translation::new(scope, variables);
    let place = translation.place(&text.column, &text.pointer, WRITE)?;
    let value = translation.variables.write(SENT_TEXT, text.column.at.line)?;
    let column = format!("select {} from {}", place.column, place.table);
    Ok((column, place.changed(&value)))
}

impl Translation<'_> {
    pub fn readtext(&mut self, read: &Readtext) -> Result<Query, Error> {
        self.note(|facts| facts.reads = true);
        let place = self.place(&read.column, &read.pointer, READ)?;
        let (offset, size) = (self.number(&read.offset)?, self.number(&read.size)?);
        let counts_bytes = self.dialect().readtext_counts_bytes && !read.by_characters;
        let TextColumn { table, column, is_row, .. } = place;
        let flags = [self.dialect().is_ase, counts_bytes].map(Scalar::Boolean);
        let [is_ase, counts_bytes] = flags;
        let arguments = [Scalar::column(&column), offset, size, is_ase, counts_bytes];
        Ok(Query::from(Select {
            list: vec![Listed::named(call("tsql.text_part", arguments), column)],
            from: vec![Source::Table(table, None)],
            conditions: vec![is_row],
            ..Select::default()
        }))
    }

    fn writetext(&mut self, write: &Writetext) -> Result<String, Error> {
        let place = self.place(&write.column, &write.pointer, WRITE)?;
        let value = self.value(&write.value)?;
        let column = folded(&write.column.column, write.column.at.line)?;
        let targets = self.target_column(&place.table, Some(column));
        let value = carried_into(&value, || targets.kind(0, self.variables), self.scope.dialect);
        Ok(place.changed(&value))
    }

    fn updatetext(&mut self, update: &Updatetext) -> Result<String, Error> {
        let place = self.place(&update.column, &update.pointer, UPDATE)?;
        let (offset, length) = (self.number(&update.offset)?, self.number(&update.length)?);
        let put = match &update.source {
            TextSource::Nothing => None,
            TextSource::Value(value) => {
                let line = value.at().line;
                let value = self.value(value)?;
                match value.family() {
                    _ if value.is_null() => None,
                    Some(Family::Text | Family::Binary) => Some(value.sql),
                    _ => {
                        return Err(Error::refused("updatetext", "the value is no text and no binary", line))
                    }
                }
            }
            TextSource::Column { column, pointer } => {
                let TextColumn { table, column, is_row, .. } = self.place(column, pointer, UPDATE)?;
                let rows = Select {
                    list: vec![Listed::from(Scalar::Column(None, column))],
                    from: vec![Source::Table(table, None)],
                    conditions: vec![is_row],
                    ..Select::default()
                };
                Some(Scalar::Query(Box::new(rows.into())))
            }
        };
        let arguments = [Scalar::column(&place.column), offset, length].into_iter().chain(put);
        Ok(place.changed(&call("tsql.text_spliced", arguments.collect::<Vec<_>>())))
    }

    fn place(
        &mut self,
        column: &ColumnName,
        pointer: &Expression,
        statement: &str,
    ) -> Result<TextColumn, Error> {
        let line = column.at.line;
        let of = column.table.as_deref().ok_or_else(|| Error::syntax(&column.column, line))?;
        let table = self.table(of)?;
        let own = folded(&column.column, line)?;
        let pointer = self.value(pointer)?;
        let pointer = converted(pointer, VARBINARY, line, self.dialect())?.sql;
        let (table_name, named) = (Scalar::text(&table), Scalar::text(&own));
        let found = call("tsql.text_place", [table_name, named, pointer.clone(), Scalar::text(statement)]);
        let is_found = Scalar::column("ctid").infix("=", found.clone());
        let writer = call("tsql.text_writer", [pointer.clone()]);
        let is_row = is_found.and(Scalar::column("xmin").infix("=", writer));
        Ok(TextColumn { table, column: quoted(&own), pointer, found, is_row })
    }

    fn number(&mut self, value: &Expression) -> Result<Scalar, Error> {
        let line = value.at().line;
        let value = self.value(value)?;
        Ok(converted(value, INT, line, self.dialect())?.sql)
    }

    /// `textptr(column)`: in the table of FROM that has the column.
    fn pointer(&mut self, column: &ColumnName) -> Result<Scalar, Error> {
        let line = column.at.line;
        let filled = self.column_sql(column)?.is_null(false);
        let own = Scalar::Text(folded(&column.column, line)?);
        let of_row = |row: &str| {
            let [table, place, writer] = ["tableoid", "ctid", "xmin"]
                .map(|system| Scalar::Column(Some(row.to_owned()), system.to_owned()));
            call("tsql.textptr", [table, own.clone(), place, writer, filled.clone()])
        };
        if let Some(table) = &column.table {
            return Ok(of_row(&self.qualifier(table)?));
        }
        let named = self.names.sources.last().into_iter().flatten();
        let rows: Vec<_> =
            named.filter(|one| !one.tables.is_empty()).map(|one| of_row(&quoted(&one.name))).collect();
        match rows.as_slice() {
            [] => {
                let text = "Only base table columns are allowed in the TEXTPTR function.";
                Err(Error::new(280, text, line).with_severity(16))
            }
            [row] => Ok(row.clone()),
            rows => Ok(call("coalesce", rows)),
        }
    }
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

impl CallTranslation<'_, '_, '_> {
    pub fn text_pointer(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let Expression::Column(column) = self.arguments[0].without_collation() else {
            return Err(self.fail(280, "Only base table columns are allowed in the TEXTPTR function."));
        };
        Ok(Value::new(self.translation.pointer(column)?, Type { length: Some(16), ..VARBINARY }))
    }

    pub fn text_valid(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let (column, pointer) = (self.text(0)?, self.of_type(1, VARBINARY)?);
        Ok(Value::new(call("tsql.textvalid", [column, pointer]), INT))
    }
}
