//! Translates queries, changes, definitions and expressions to PostgreSQL's SQL; unknown constructs are refused.
//!
//! The behaviour of operators and functions is in schema `tsql` (`gateway/sql`); the code here chooses them by the
//! known types. `scope` contains the variables, `Variables` writes them.
//!
//! Each folder uses those before it: `values`, `binder`, then `expressions`, `functions`, `query` and `structured`, which
//! contain each other as their constructs do, `changes`, `definitions`.

mod binder;
mod changes;
mod definitions;
mod expressions;
mod functions;
mod query;
mod structured;
mod values;

pub use binder::item::named_twice;
pub use binder::title::{ListItem, ResultType, Title};
pub use binder::variables::{Clock, Met, NoVariables, Numbered, Variables};
pub use binder::{Current, Translated, Verb};
pub use changes::current::{location_of, Changes};
pub use changes::insert::{insert_of_rows, mismatch};
pub use changes::pointers::{change_of_text, check_of_text, text_change};
pub use changes::targets::Filled;
pub use definitions::tables::{declared_table, forgotten};
pub use definitions::{create_bindable, create_view, defined};
pub use functions::next_value::next_value_in;
pub use query::keyed::{of_table, OfTable};
pub use query::order::refuse_order;
pub use values::assignments::{assigned, scaled_to, stored};
pub use values::column_type::{collated, column_type};
pub use values::{converted, Value};

use crate::error::Error;
use crate::facts::types::{Type, VARCHAR};
use crate::postgres::Scalar;
use crate::resolve::Scope;
use crate::tree::{Expression, Insert, StatementKind};
use binder::Binder;
use changes::{change, insert, merge, pointers};
use expressions::conditions;
use query::select;
use values::assignments;

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
