//! Translates queries, changes, definitions and expressions to PostgreSQL's SQL; unknown constructs are refused.
//!
//! The behaviour of operators and functions is in schema `tsql` (`gateway/sql`); the code here chooses them by the
//! known types. `scope` has the variables, `Variables` writes them.

mod aggregates;
mod alter;
mod arithmetic;
mod blanks;
mod bound;
mod calls;
mod change;
mod combined;
mod common_tables;
mod conditions;
mod constraints;
mod conversions;
mod current;
mod declared;
mod declaring;
mod definition;
mod digits;
mod expressions;
mod functions;
mod grouped;
mod growth;
mod insert;
mod item;
mod keyed;
mod kind;
mod locks;
mod merge;
mod nulls;
mod numbers;
mod order;
mod outer_join;
mod output;
mod partial;
mod pointers;
mod precision;
mod select;
mod sources;
mod stars;
mod tables;
mod texts;
mod through;
mod times;
mod title;
mod top;
mod translation;
mod value;
mod variables;
mod walk;
mod width;
mod xml;

pub use value::{assigned, converted, scaled_to, Value};
pub use variables::{Clock, NoVariables, Numbered, Variables};

use crate::error::Error;
use crate::facts::types::Type;
use crate::program::{Filled, FilledBy, RowSource};
use crate::resolve::Scope;
use crate::tree::{Expression, Insert, StatementKind};
use translation::Translation;

/// A query or change.
#[derive(Clone, Debug)]
pub struct Translated {
    pub sql: String,
    pub kind: Verb,
    /// The names to be shown, "" for a nameless one; None where PostgreSQL's names are to be shown ("?column?" is
    /// nameless).
    pub columns: Option<Vec<Title>>,
    /// `select @a = …`: the variables, by name, that take the last row's values, in the order of the columns,
    /// which have the variables' types.
    pub assigns: Vec<String>,
    /// `where current of`: its SQL returns the place of the row as it is then.
    pub current: Option<Current>,
    /// The table that an insert fills, in SQL.
    pub into: Option<String>,
    /// The table of which it changes, or makes, no more rows than `set rowcount` says.
    pub limited: Option<String>,
    /// The table that `select … into` makes.
    pub made: Option<Made>,
    /// That table again, when the insert names no columns and the scope does not know which take values.
    pub unlisted: Option<String>,
    /// Of a select that gives rows.
    pub items: Vec<ListItem>,
    pub filled: Option<FilledBy>,
    /// Of a select whose rows are each one of some tables: where its list ends, in bytes, and these.
    pub row_sources: Option<(usize, Vec<RowSource>)>,
}

/// A select, insert, update or delete; None for any other statement.
pub fn statement(
    statement: &StatementKind,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Option<Translated>, Error> {
    let mut translation = Translation::new(scope, variables);
    let (kind, sql) = match statement {
        StatementKind::Select(query) => translation.outermost(query)?,
        StatementKind::Insert(insert) => (Verb::Insert, translation.insert(insert)?),
        StatementKind::Update(update) => (Verb::Update, translation.update(update)?),
        StatementKind::Delete(delete) => (Verb::Delete, translation.delete(delete)?),
        StatementKind::Merge(merge) => (Verb::Merge, translation.merge(merge)?),
        StatementKind::Readtext(read) => {
            translation.columns = Some(vec![Title::given(&read.column.column)]);
            (Verb::Select, translation.readtext(read)?)
        }
        _ => return Ok(None),
    };
    let Translation {
        columns,
        assigns,
        current,
        into,
        limited,
        made,
        unlisted,
        items,
        filled,
        row_sources,
        ..
    } = translation;
    Ok(Some(Translated {
        sql,
        kind,
        columns,
        assigns,
        current,
        into,
        limited,
        made,
        unlisted,
        items,
        filled,
        row_sources,
    }))
}

/// A value. `target`: it is converted to this type as T-SQL assigns a value to a variable of it.
pub fn value(
    expression: &Expression,
    scope: &Scope,
    variables: &mut dyn Variables,
    target: Option<Type>,
) -> Result<Value, Error> {
    let line = expression.at().line;
    if let Expression::Variable(variable) = expression {
        let of = scope.type_of(&variable.name, line)?;
        if of.is_some() && (target.is_none() || target == of) {
            return Ok(Value::of(variables.write(&variable.name, line)?, of));
        }
    }
    let value = Translation::new(scope, variables).value(expression)?;
    match target {
        Some(target) => value::assigned(value, target, line, scope.sybase),
        None if value.is_null() => {
            Ok(Value { sql: "null::varchar".into(), of: Some(crate::facts::types::VARCHAR), ..value })
        }
        None => Ok(value),
    }
}

/// A condition, as an expression of type boolean: null is T-SQL's unknown.
pub fn condition(
    expression: &Expression,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<String, Error> {
    Translation::new(scope, variables).condition(expression)
}

/// The table and columns that `insert … execute` fills, and the table again when the insert names no columns and the
/// scope does not know which take values.
pub fn filled(insert: &Insert, scope: &Scope) -> Result<(Filled, Option<String>), Error> {
    let mut variables = NoVariables("the target of an insert");
    let mut translation = Translation::new(scope, &mut variables);
    let filled = translation.filled(insert)?;
    Ok((filled, translation.unlisted))
}

pub use current::{place_of, Changes, Current};
pub use definition::{create_view, definition};
pub use insert::{insert_of_rows, mismatch};
pub use keyed::{of_table, OfTable};
pub use order::refuse_order;
pub use pointers::{change_of_text, check_of_text, text_change};
pub(crate) use select::first_select;
pub use tables::{column_type, forgotten, note_columns};
pub use title::{ListItem, ResultType, Title};
pub use translation::{Made, Verb};
pub(crate) use walk::any;
