//! Inserts.

use super::filled::{Filled, FilledBy};
use super::item::{numbered, Item, Stands, Written};
use super::json::not_allowed;
use super::translation::{ChangedRows, Translation};
use super::value::{carried, carried_into, implicit, is_finer_than_money, Value};
use super::variables::{NoVariables, Variables, NO_VARIABLES};
use crate::error::Error;
use crate::facts::types::{unified, Family, Type, IMAGE, SQL_VARIANT};
use crate::fragments::variable;
use crate::resolve::names::{self, folded, literal, quoted_list, table};
use crate::schema::Table;
use crate::tree::{
    Expression, Insert, InsertSource, Name, ObjectName, Query, QueryBody, TableSource, Target,
};
use crate::Dialect;
use std::sync::Arc;

/// For rows of values, whether the last of them may be omitted: a single row always fits the limit, and DEFAULT is not
/// a value of a query.
fn may_be_cut(rows: &[Vec<Expression>]) -> bool {
    let is_default = |value: &Expression| matches!(value, Expression::Default(_));
    rows.len() > 1 && !rows.iter().flatten().any(is_default)
}

impl Translation<'_> {
    pub fn insert(&mut self, insert: &Insert) -> Result<String, Error> {
        let target = self.target(&insert.target)?;
        let line = target.at.line;
        if insert.locks_table {
            self.lock_table(&target)?;
        }
        let into = self.table(&target)?;
        let max_recursion = match &insert.source {
            InsertSource::Query(query) => query.max_recursion,
            _ => None,
        };
        let with = self.with(&insert.with, max_recursion)?;
        let columns = self.inserted_columns(&into, &insert.columns, line)?;
        let mut sql = format!("insert into {into}");
        let only_defaults = insert.source == InsertSource::DefaultValues && insert.columns.is_empty();
        if let (Some(columns), false) = (&columns, only_defaults) {
            sql.push_str(&format!(" ({})", quoted_list(columns)));
        }
        if self.scope.identity_insert.as_ref() == Some(&into) && !insert.columns.is_empty() {
            sql.push_str(" overriding system value");
        }
        let width = columns.as_ref().map(Vec::len);
        let unlisted = insert.columns.is_empty();
        let top = match &insert.top {
            None => None,
            Some(top) if top.percent || top.with_ties => {
                return Err(Error::refused("insert top … percent", "put the top into the select", top.at));
            }
            Some(top) => Some(self.changed_at_most(top)?),
        };
        let rows = match &insert.source {
            InsertSource::Values(rows) if top.is_none() && !may_be_cut(rows) => {
                self.result.limited = (self.scope.limits_rows && rows.len() == 1).then(|| into.clone());
                None
            }
            InsertSource::DefaultValues if top.is_none() => {
                self.result.limited = self.scope.limits_rows.then(|| into.clone());
                None
            }
            _ => self.rows_within(top, &into, line)?,
        };
        let limit = rows.map_or_else(String::new, |rows| format!(" limit {rows}"));
        // without columns all of them are filled
        let guard = |number: usize| match &columns {
            Some(_) => None,
            None => Some(takes(&into, number)),
        };
        let targets = self.targets(&into, columns.as_deref());
        match &insert.source {
            InsertSource::DefaultValues if only_defaults => sql.push_str(" default values"),
            InsertSource::DefaultValues => {
                let values = vec!["default"; insert.columns.len()].join(", ");
                sql.push_str(&format!(" values ({values})"));
            }
            InsertSource::Values(rows) => {
                if let [row] = rows.as_slice() {
                    self.result.filled = FilledBy::new(&into, columns.as_deref(), row.iter());
                }
                let are_variants = self.variant_columns(&into, columns.as_deref());
                let of_columns = (are_variants.as_slice(), &targets);
                let values = self.values_of(rows, width, guard, of_columns, (&into, unlisted, line))?;
                sql.push_str(&if limit.is_empty() {
                    format!(" {values}")
                } else {
                    format!(" select * from ({values}) as \"source\"{limit}")
                });
            }
            InsertSource::Query(query) => {
                if query.for_json.is_some() {
                    return Err(not_allowed("INSERT", query.at));
                }
                let are_variants = self.variant_columns(&into, columns.as_deref());
                let of_columns = (are_variants.as_slice(), &targets);
                let rows = self.rows_from(query, &target, columns.as_deref(), guard, of_columns, unlisted)?;
                sql.push_str(&format!(" {rows}{limit}"));
            }
            InsertSource::Execute(execute) => return Err(refused_execute(execute.at.line)),
            InsertSource::ExecuteText(execute) => return Err(refused_execute(execute.at.line)),
        }
        let new = names::qualifier(&target)?;
        // a sql_variant keeps the type that a value is cast to
        let is_cast = |value: &Expression| matches!(value, Expression::Cast(_));
        let says_types = match &insert.source {
            InsertSource::Values(rows) => {
                self.dialect().has_sql_variant && rows.iter().flatten().any(is_cast)
            }
            _ => false,
        };
        let is_known = columns.is_some() && !says_types || self.scope.filled.contains_key(&into);
        if !is_known && insert.source != InsertSource::DefaultValues {
            self.result.unlisted = Some(into.clone());
        }
        self.result.into = Some(into);
        let rows = ChangedRows { inserted: Some(new), ..ChangedRows::default() };
        self.with_output((with, sql), insert.output.as_ref(), line, rows)
    }

    /// The table filled by `insert … execute`.
    pub fn filled(&mut self, insert: &Insert) -> Result<Filled, Error> {
        let target = self.target(&insert.target)?;
        let into = table(&target)?;
        if insert.locks_table {
            let why = "the procedure runs before it";
            return Err(Error::refused("with (holdlock) of insert … execute", why, target.at));
        }
        if let Some(with) = insert.with.first() {
            return Err(Error::refused(
                "with … insert … execute",
                "the procedure does not see it",
                with.name.at,
            ));
        }
        let columns = self.inserted_columns(&into, &insert.columns, target.at.line)?;
        if columns.is_none() && !self.scope.filled.contains_key(&into) {
            self.result.unlisted = Some(into.clone());
        }
        let with_identity = self.scope.identity_insert.as_ref() == Some(&into) && !insert.columns.is_empty();
        Ok(Filled { table: into, columns, with_identity })
    }

    /// The table that a statement changes.
    pub fn target(&self, target: &Target) -> Result<ObjectName, Error> {
        match target {
            Target::Table(name) => Ok(name.clone()),
            Target::Variable(variable) if self.scope.given_tables.contains(&variable.name) => {
                let text = format!(
                    "The table-valued parameter \"{}\" is READONLY and cannot be modified.",
                    variable.name
                );
                Err(Error::new(10700, text, variable.at).with_severity(16))
            }
            Target::Variable(variable) => self.table_variable(variable),
        }
    }

    /// The named columns, or those that take a value if these are not all.
    pub fn inserted_columns(
        &self,
        into: &str,
        columns: &[Name],
        line: u32,
    ) -> Result<Option<Vec<String>>, Error> {
        if !columns.is_empty() {
            let folded = columns.iter().map(|column| folded(&column.text, column.at.line));
            return folded.collect::<Result<_, _>>().map(Some);
        }
        let Some(Some(filled)) = self.scope.filled.get(into) else { return Ok(None) };
        filled.iter().map(|column| folded(column, line)).collect::<Result<_, _>>().map(Some)
    }

    /// Which of the columns are known to be of type sql_variant.
    fn variant_columns(&self, into: &str, columns: Option<&[String]>) -> Vec<bool> {
        let Some(variants) = self.scope.variants.get(into) else { return Vec::new() };
        columns.unwrap_or_default().iter().map(|column| variants.contains(column)).collect()
    }

    pub fn targets<'t>(&self, table: &'t str, columns: Option<&'t [String]>) -> Targets<'t> {
        Targets { table, columns, known: self.scope.table(table) }
    }

    /// VALUES and its rows; `guard` returns the condition of an insert with this many values.
    fn values_of(
        &mut self,
        rows: &[Vec<Expression>],
        width: Option<usize>,
        guard: impl Fn(usize) -> Option<String>,
        (are_variants, targets): (&[bool], &Targets),
        (into, unlisted, line): (&str, bool, u32),
    ) -> Result<String, Error> {
        let given = rows.first().map_or(0, Vec::len);
        if let Some(width) = width.filter(|width| *width != given) {
            return match unlisted {
                true => Ok(self.unfit(into, width, given)),
                false => Err(mismatch(width, given, line)),
            };
        }
        let mut rows = self.rows(rows, line)?;
        for row in &mut rows {
            for (value, is_variant) in row.iter_mut().zip(are_variants) {
                if let Some(known) = value.take_if(|value| *is_variant && value.of.is_some()) {
                    *value = Some(implicit(known, SQL_VARIANT, line, self.dialect())?);
                }
            }
        }
        let Some(guard) = guard(given) else {
            return Ok(format!(
                "values {}",
                rows_sql(&rows, targets, self.scope.dialect, self.variables, |_, _, sql| sql)
            ));
        };
        self.note(|facts| facts.guards.push(guard.clone()));
        let all = || rows.iter().flatten();
        if all().all(|value| value.as_ref().is_some_and(Value::is_null)) {
            let nulls = vec!["null"; given].join(", ");
            return Ok(format!("select {nulls} from generate_series(1, {}) where {guard}", rows.len()));
        }
        // the guard is around one of the values, a null only if all are nulls or defaults
        let is_given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
        let place = all().position(is_given).or_else(|| all().position(Option::is_some));
        let guarded = |row: usize, column: usize, sql: String| match place {
            Some(place) if place == row * given + column => {
                let value = if sql == "null" { "tsql.carry(null::text)" } else { &sql };
                format!("case when {guard} then {value} end")
            }
            _ => sql,
        };
        Ok(format!("values {}", rows_sql(&rows, targets, self.scope.dialect, self.variables, guarded)))
    }

    /// Rows for an insert without columns and with a wrong number of values: PostgreSQL reports the error.
    fn unfit(&mut self, into: &str, width: usize, given: usize) -> String {
        let guard = takes(into, given);
        self.note(|facts| facts.guards.push(guard.clone()));
        format!("select {} where {guard}", vec!["null"; width].join(", "))
    }

    /// The values of rows; those of one column have one type. None represents DEFAULT.
    pub fn rows(&mut self, rows: &[Vec<Expression>], line: u32) -> Result<Vec<Vec<Option<Value>>>, Error> {
        let width = rows.first().map_or(0, Vec::len);
        let mut read = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != width {
                let text =
                    "The number of columns for each row in a table value constructor must be the same.";
                return Err(Error::new(10709, text, line).with_severity(16));
            }
            let mut values = Vec::with_capacity(width);
            for value in row {
                values.push(match value {
                    Expression::Default(_) => None,
                    value => Some(self.value(value)?),
                });
            }
            read.push(values);
        }
        if read.len() < 2 {
            return Ok(read);
        }
        for place in 0..width {
            let known = |row: &Vec<Option<Value>>| {
                row[place].as_ref().filter(|value| !value.is_null()).map(|value| value.of)
            };
            let Some(of) = unified(read.iter().filter_map(known)) else { continue };
            for row in &mut read {
                if let Some(value) = row[place].take_if(|value| !value.is_null() && value.of != Some(of)) {
                    row[place] = Some(implicit(value, of, line, self.dialect())?);
                }
            }
        }
        Ok(read)
    }

    /// The rows of a select, converted for columns.
    fn rows_from(
        &mut self,
        query: &Query,
        target: &ObjectName,
        columns: Option<&[String]>,
        guard: impl Fn(usize) -> Option<String>,
        (are_variants, targets): (&[bool], &Targets),
        unlisted: bool,
    ) -> Result<String, Error> {
        let width = columns.map(<[String]>::len);
        let Written { sql, items } = self.query(query, Stands::Inside)?;
        let line = target.at.line;
        if items.iter().any(|item| item.name.is_none()) {
            let guard = self.same_columns(query, target, columns)?;
            self.note(|facts| facts.guards.push(guard.clone()));
            return Ok(format!("select * from ({sql}) as \"source\" where {guard}"));
        }
        if let Some(width) = width.filter(|width| *width != items.len()) {
            return match unlisted {
                true => Ok(self.unfit(&table(target)?, width, items.len())),
                false => Err(mismatch_of_query(width, items.len(), line)),
            };
        }
        let names = numbered(&items);
        let mut values = Vec::with_capacity(names.len());
        for (place, (name, item)) in names.iter().zip(&items).enumerate() {
            // the others of several selects have their own types
            let is_one = matches!(query.body, QueryBody::Select(_));
            let known = item.result_type.filter(|_| is_one).map(|known| known.of);
            values.push(match (known, are_variants.get(place)) {
                (Some(of), Some(true)) => {
                    let value = implicit(Value::new(name.as_str(), of), SQL_VARIANT, line, self.dialect())?;
                    carried(&value, self.dialect())
                }
                _ => targets.carried(place, name, item, known, self.scope.dialect, &mut *self.variables),
            });
        }
        let guard = guard(items.len());
        self.note(|facts| facts.guards.extend(guard.clone()));
        let condition = guard.map_or_else(String::new, |guard| format!(" where {guard}"));
        let (values, names) = (values.join(", "), names.join(", "));
        Ok(format!("select {values} from ({sql}) as \"source\" ({names}){condition}"))
    }

    /// For `insert … select * from one table`: the condition that its columns have the types of the target's.
    fn same_columns(
        &self,
        query: &Query,
        target: &ObjectName,
        columns: Option<&[String]>,
    ) -> Result<String, Error> {
        let source = match &query.body {
            QueryBody::Select(select) if select.items.len() == 1 => match select.from.as_slice() {
                [TableSource::Table { name, .. }] => Some(table(name)?),
                [TableSource::Variable { variable, .. }] => Some(table(&self.table_variable(variable)?)?),
                _ => None,
            },
            _ => None,
        };
        let Some(source) = source else {
            return Err(Error::refused("insert … select *", "name the columns", target.at));
        };
        let columns = match columns {
            None => "null".to_owned(),
            Some(columns) => {
                format!(
                    "array[{}]",
                    columns.iter().map(|column| literal(column)).collect::<Vec<_>>().join(", ")
                )
            }
        };
        Ok(format!("tsql.same_columns({}, {columns}, {})", literal(&table(target)?), literal(&source)))
    }
}

/// The columns that a change fills.
pub struct Targets<'a> {
    pub table: &'a str,
    /// Names in PostgreSQL; None: all of the table.
    pub columns: Option<&'a [String]>,
    /// The declaration of the table, if known.
    known: Option<Arc<Table>>,
}

impl Targets<'_> {
    /// The SQL for whether a column is national, an image or money: from its declaration, on which the statement then
    /// depends, or from PostgreSQL's catalogue.
    pub fn kind(&self, place: usize, variables: &mut dyn Variables) -> String {
        let name = self.columns.and_then(|columns| columns.get(place));
        let column = self.known.as_ref().and_then(|known| match name {
            Some(name) => known.column(name),
            None => known.columns().get(place),
        });
        variables.note_use(self.table, column.map(|column| column.name.as_str()));
        match column.and_then(|column| column.of) {
            // the column of a view does not show whether it is an image
            Some(of) if of.family != Family::Binary || of.name == IMAGE.name => {
                let is_one = of.is_national() || of.name == IMAGE.name || of.family == Family::Money;
                is_one.to_string()
            }
            _ => {
                let column = name.map_or_else(|| (place + 1).to_string(), |name| literal(name));
                format!("(select tsql.is_national_or_image({}::regclass, {column}))", literal(self.table))
            }
        }
    }

    /// A column of a query, named `name` there, converted for the column at this index.
    pub fn carried(
        &self,
        place: usize,
        name: &str,
        item: &Item,
        known: Option<Type>,
        dialect: &Dialect,
        variables: &mut dyn Variables,
    ) -> String {
        let of = known.filter(says_more);
        let value = Value { declared_digits: item.digits.clone(), ..Value::of(name, of) };
        let says = |of: Type| match dialect.money_rounds {
            true => is_finer_than_money(of),
            false => matches!(of.family, Family::Binary | Family::Text),
        };
        match known.is_none_or(says) {
            true => carried_into(&value, || self.kind(place, variables), dialect),
            // values of other types need no check
            false => carried(&value, dialect),
        }
    }
}

/// Types whose values contain more than PostgreSQL's type shows.
fn says_more(of: &Type) -> bool {
    of.is_national() || matches!(of.name, "datetime2" | "time" | "tinyint")
}

/// The insert of `number` rows of values, which have the types of their parameters: the first `width` are the first
/// row.
pub fn insert_of_rows(filled: &Filled, width: usize, number: usize, dialect: &Dialect) -> String {
    let columns =
        filled.columns.as_ref().map_or_else(String::new, |columns| format!(" ({})", quoted_list(columns)));
    let overriding = if filled.with_identity { " overriding system value" } else { "" };
    let names: Vec<String> = (1..=width).map(|place| format!("c{place}")).collect();
    let targets = Targets { table: &filled.table, columns: filled.columns.as_deref(), known: None };
    let carry = |(place, name): (usize, &String)| {
        let kind = || targets.kind(place, &mut NoVariables(NO_VARIABLES));
        carried_into(&Value::unknown(name.as_str()), kind, dialect)
    };
    let values: Vec<String> = names.iter().enumerate().map(carry).collect();
    let row = |row: usize| {
        let places: Vec<String> = (0..width).map(|place| variable(row * width + place)).collect();
        format!("({})", places.join(", "))
    };
    let rows: Vec<String> = (0..number).map(row).collect();
    format!(
        "insert into {}{columns}{overriding} select {} from (values {}) as \"source\" ({})",
        filled.table,
        values.join(", "),
        rows.join(", "),
        names.join(", ")
    )
}

/// Rows converted for columns; `write` produces each value.
fn rows_sql(
    rows: &[Vec<Option<Value>>],
    targets: &Targets,
    dialect: &Dialect,
    variables: &mut dyn Variables,
    write: impl Fn(usize, usize, String) -> String,
) -> String {
    let row_sql = |(row, values): (usize, &Vec<Option<Value>>)| {
        let values = values.iter().enumerate().map(|(column, value)| match value {
            None => "default".to_owned(),
            Some(value) => {
                let kind = || targets.kind(column, &mut *variables);
                write(row, column, carried_into(value, kind, dialect))
            }
        });
        format!("({})", values.collect::<Vec<_>>().join(", "))
    };
    rows.iter().enumerate().map(row_sql).collect::<Vec<_>>().join(", ")
}

/// The condition that an insert without columns has as many values as the table takes.
fn takes(into: &str, given: usize) -> String {
    format!("tsql.takes({}, {given})", literal(into))
}

pub fn mismatch(columns: usize, values: usize, line: u32) -> Error {
    let (number, fewer, more) =
        if columns < values { (110, "columns", "values") } else { (109, "values", "columns") };
    let text = format!("There are fewer {fewer} in the INSERT statement than {more} specified.");
    Error::new(number, text, line)
}

fn mismatch_of_query(columns: usize, items: usize, line: u32) -> Error {
    let (number, how_many) = if columns < items { (121, "more") } else { (120, "fewer") };
    let text = format!(
        "The select list for the INSERT statement contains {how_many} items than the insert list. The number of \
         SELECT values must match the number of INSERT columns."
    );
    Error::new(number, text, line)
}

fn refused_execute(line: u32) -> Error {
    Error::refused("insert … execute", "it is not a query", line)
}
