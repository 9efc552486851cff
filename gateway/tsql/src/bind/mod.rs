//! Translates queries, changes, definitions and expressions to PostgreSQL's SQL; unknown constructs are refused.
//!
//! The behaviour of operators and functions is in schema `tsql` (`gateway/sql`); the code here chooses them by the
//! known types. `scope` contains the variables, `Variables` writes them.

mod aggregates;
mod alter;
mod arithmetic;
mod assignments;
mod binder;
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
mod filled;
mod functions;
mod group_by;
mod growth;
mod insert;
mod item;
mod json;
mod json_property;
mod json_rows;
mod keyed;
mod lengths;
mod literals;
mod locks;
mod merge;
mod named;
mod nulls;
mod numbers;
mod order;
mod outer_join;
mod output;
mod partial;
mod pointers;
mod select;
mod sequence;
mod sources;
mod stars;
mod tables;
mod targets;
mod texts;
mod through;
mod times;
mod title;
mod top;
mod value;
mod variables;
mod walk;
mod xml;

pub use assignments::{assigned, scaled_to, stored};
pub use value::{converted, Value};
pub use variables::{Clock, Met, NoVariables, Numbered, Variables};

use crate::error::Error;
use crate::facts::types::{Type, VARCHAR};
use crate::postgres::Scalar;
use crate::resolve::Scope;
use crate::tree::{Expression, Insert, StatementKind};
use binder::Binder;

/// A select, insert, update or delete; None for any other statement.
pub fn statement(
    statement: &StatementKind,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Option<Translated>, Error> {
    let mut binder = Binder::new(scope, variables);
    let (kind, sql) = match statement {
        StatementKind::Select(query) => select::outermost(&mut binder, query)?,
        StatementKind::Insert(insert) => (Verb::Insert, insert::insert(&mut binder, insert)?.into()),
        StatementKind::Update(update) => (Verb::Update, change::update(&mut binder, update)?.into()),
        StatementKind::Delete(delete) => (Verb::Delete, change::delete(&mut binder, delete)?.into()),
        StatementKind::Merge(merge) => (Verb::Merge, merge::merge(&mut binder, merge)?.into()),
        StatementKind::Readtext(read) => {
            binder.result.columns = Some(vec![Title::given(&read.column.column)]);
            (Verb::Select, pointers::readtext(&mut binder, read)?.into())
        }
        _ => return Ok(None),
    };
    if !matches!(kind, Verb::Select | Verb::SelectInto) {
        binder.note(|facts| facts.adds_nulls = true);
    }
    Ok(Some(Translated { sql, kind, ..binder.result }))
}

/// A value. `target`: it is converted to this type by the rules of assignment.
pub fn value(
    expression: &Expression,
    scope: &Scope,
    variables: &mut dyn Variables,
    target: Option<Type>,
) -> Result<Value, Error> {
    let line = expression.at().line;
    if let Expression::Variable(variable) = expression {
        let of = scope.type_of(&variable.name, line)?;
        if of.is_tsql() && (target.is_none() || target == Some(of)) {
            return Ok(Value::new(variables.write(&variable.name, line)?, of));
        }
    }
    let value = expressions::value(&mut Binder::new(scope, variables), expression)?;
    match target {
        Some(target) => assignments::assigned(value, target, line, scope.dialect),
        None if value.is_null() => {
            Ok(Value { constant: value.constant, ..Value::cast(Scalar::Null, VARCHAR) })
        }
        None => Ok(value),
    }
}

/// A condition, as an expression of type boolean: null is T-SQL's unknown.
pub fn condition(
    expression: &Expression,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Scalar, Error> {
    conditions::condition(&mut Binder::new(scope, variables), expression)
}

/// The table and the named columns that `insert … execute` fills.
pub fn filled(insert: &Insert, scope: &Scope) -> Result<Filled, Error> {
    let mut variables = NoVariables("the target of an insert");
    insert::filled(&mut Binder::new(scope, &mut variables), insert)
}

pub use binder::{Translated, Verb};
pub use current::{location_of, Changes, Current};
pub use definition::{create_bindable, create_view, defined};
pub use filled::Filled;
pub use insert::{insert_of_rows, mismatch};
pub use item::named_twice;
pub use keyed::{of_table, OfTable};
pub use order::refuse_order;
pub use pointers::{change_of_text, check_of_text, text_change};
pub use sequence::next_value_in;
pub use tables::{collated, column_type, declared_table, forgotten};
pub use title::{ListItem, ResultType, Title};
