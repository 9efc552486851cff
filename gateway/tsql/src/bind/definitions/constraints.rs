//! Constraints of tables and defaults of columns.

use crate::bind::binder::variables::{NoVariables, Variables, NO_VARIABLES};
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::functions::next_value;
use crate::error::Error;
use crate::facts::types::Type;
use crate::plpgsql::{self, Rule};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{all_folded, folded, schema_of, table};
use crate::resolve::Scope;
use crate::tree::{
    Constraint, ConstraintKind, Expression, KeyAction, Name, ObjectName, Position, TableElement,
};
use std::collections::HashMap;

/// A constraint; `own` is the column that it follows, `types` are those of the columns created with it.
pub fn constraint(
    constraint: &Constraint,
    own: &[Name],
    types: &HashMap<String, Type>,
    scope: &Scope,
) -> Result<plpgsql::Constraint, Error> {
    let keys = |columns: &[Name]| match columns {
        [] if own.len() == 1 => Ok(Vec::new()),
        columns => all_folded(columns),
    };
    let rule = match &constraint.kind {
        ConstraintKind::Key { primary: true, columns, .. } => Rule::PrimaryKey(keys(columns)?),
        ConstraintKind::Key { columns, .. } => Rule::Unique(keys(columns)?),
        ConstraintKind::Check(condition) => {
            if let ([column], true) = (own, scope.dialect.is_strict) {
                let is_other = |one: &Expression| matches!(one, Expression::Column(other) if !other.column.eq_ignore_ascii_case(&column.text));
                if walk::any(condition, &mut is_other.clone()) {
                    let text = format!(
                        "Column CHECK constraint for column '{}' references another column: it must be a constraint \
                         of the table.",
                        column.text
                    );
                    return Err(Error::new(8141, text, constraint.at).with_severity(16));
                }
            }
            let scope = Scope { definition: true, ..scope.clone() };
            let mut none = NoVariables(NO_VARIABLES);
            let mut binder = Binder::new(&scope, &mut none);
            binder.column_types.clone_from(types);
            let numbers = binder.around.next_values;
            let condition = conditions::condition(&mut binder, condition)?;
            next_value::refuse_next_value(&binder, numbers, 11719, constraint.at.line)?;
            Rule::Check(condition)
        }
        ConstraintKind::ForeignKey { columns, references } => {
            let actions = [("delete", references.on_delete), ("update", references.on_update)];
            let actions = actions.into_iter().filter_map(|(event, action)| {
                let words = match action {
                    KeyAction::NoAction => return None,
                    KeyAction::Cascade => "cascade",
                    KeyAction::SetNull => "set null",
                    KeyAction::SetDefault => "set default",
                };
                Some((event, words))
            });
            Rule::ForeignKey {
                columns: keys(columns)?,
                table: table(&references.table)?,
                referenced: all_folded(&references.columns)?,
                actions: actions.collect(),
            }
        }
        ConstraintKind::Default { .. } => return Err(Error::syntax("default", constraint.at)),
    };
    let name = constraint.name.as_ref().map(|name| folded(&name.text, name.at.line)).transpose()?;
    Ok(plpgsql::Constraint { name, rule })
}

/// The constraints of a table and of its columns.
pub fn constraints(elements: &[TableElement]) -> impl Iterator<Item = &Constraint> {
    elements.iter().flat_map(|element| match element {
        TableElement::Column(column) => column.constraints.as_slice(),
        TableElement::Constraint(constraint) => std::slice::from_ref(constraint),
    })
}

/// The position of the first foreign key.
pub fn foreign_key(elements: &[TableElement]) -> Option<Position> {
    let is_foreign = |one: &&Constraint| matches!(one.kind, ConstraintKind::ForeignKey { .. });
    constraints(elements).find(is_foreign).map(|one| one.at)
}

/// Error 1785: a table whose rows refer to each other.
fn cyclic(constraint: &Constraint, of: &str) -> Error {
    let name = constraint.name.as_ref().map_or("FK", |name| &name.text);
    let text = format!(
        "Introducing FOREIGN KEY constraint '{name}' on table '{of}' may cause cycles or multiple cascade paths. Specify ON \
         DELETE NO ACTION or ON UPDATE NO ACTION, or modify other FOREIGN KEY constraints."
    );
    Error::new(1785, text, constraint.at).with_severity(16)
}

/// The columns and tables that foreign keys require, for errors of SQL Server: ASE has others.
pub struct ForeignColumns<'a> {
    /// Their columns that are not defined in the same statement.
    pub referring: Vec<&'a Name>,
    /// Other tables, by PostgreSQL's names, and their columns.
    referenced: Vec<(String, Option<&'a Name>)>,
}

impl ForeignColumns<'_> {
    pub fn of<'a>(
        elements: &'a [TableElement],
        own: &ObjectName,
        scope: &Scope,
    ) -> Result<ForeignColumns<'a>, Error> {
        let mut found = ForeignColumns { referring: Vec::new(), referenced: Vec::new() };
        let is_own = |other: &ObjectName| -> Result<bool, Error> {
            let is_near = schema_of(other).is_empty() && other.name.eq_ignore_ascii_case(&own.name);
            Ok(is_near || table(other)? == table(own)?)
        };
        let is_defined = |name: &Name| {
            elements.iter().any(|element| match element {
                TableElement::Column(column) => column.name.text.eq_ignore_ascii_case(&name.text),
                TableElement::Constraint(_) => false,
            })
        };
        for constraint in constraints(elements).filter(|_| scope.dialect.checks_foreign_columns) {
            let ConstraintKind::ForeignKey { columns, references } = &constraint.kind else { continue };
            found.referring.extend(columns.iter().filter(|name| !is_defined(name)));
            if is_own(&references.table)? {
                let acts = |action| action != KeyAction::NoAction;
                if acts(references.on_delete) || acts(references.on_update) {
                    return Err(cyclic(constraint, &own.name));
                }
                continue;
            }
            let other = table(&references.table)?;
            match references.columns.as_slice() {
                [] => found.referenced.push((other, None)),
                columns => {
                    found.referenced.extend(columns.iter().map(|column| (other.clone(), Some(column))))
                }
            }
        }
        Ok(found)
    }

    /// The arguments of the procedure that runs the definition.
    pub fn arguments(&self) -> Result<Vec<Scalar>, Error> {
        if self.referenced.is_empty() {
            return Ok(Vec::new());
        }
        let column = |name: &Name| Ok(Scalar::Text(folded(&name.text, name.at.line)?));
        let columns = self.referenced.iter().map(|(_, name)| name.map_or(Ok(Scalar::Null), column));
        let columns = Scalar::Array(columns.collect::<Result<_, Error>>()?, "text");
        let tables = Scalar::texts(self.referenced.iter().map(|(table, _)| table.as_str()));
        Ok(vec![tables.named("referenced"), columns.named("referenced_columns")])
    }
}

/// The keys: whether each is primary, its columns, and whether it says that it is clustered or not.
pub fn keys(
    elements: &[TableElement],
) -> impl Iterator<Item = (bool, impl Iterator<Item = &Name>, Option<bool>)> {
    elements.iter().flat_map(|element| {
        let (own, constraints) = match element {
            TableElement::Column(column) => (Some(&column.name), column.constraints.as_slice()),
            TableElement::Constraint(constraint) => (None, std::slice::from_ref(constraint)),
        };
        constraints.iter().filter_map(move |constraint| match &constraint.kind {
            ConstraintKind::Key { primary, columns, clustered } => {
                Some((*primary, columns.iter().chain(own.filter(|_| columns.is_empty())), *clustered))
            }
            _ => None,
        })
    })
}

/// What notes which key is clustered, which PostgreSQL does not keep: the primary key, unless it or another one says
/// otherwise. Keys of a table that exists (`is_new`: false) may find a clustered index there.
pub fn clustering(
    elements: &[TableElement],
    of: &ObjectName,
    is_new: bool,
) -> Result<Vec<plpgsql::Definition>, Error> {
    let clustered = |is_primary| {
        keys(elements)
            .filter(move |(primary, _, clustered)| *primary == is_primary && *clustered == Some(true))
            .count()
    };
    let others = clustered(false);
    if others + clustered(true).min(1) > 1 {
        let text =
            format!("Cannot add more than one clustered index for constraints on table '{}'.", of.name);
        return Err(Error::new(8112, text, of.at).with_severity(16));
    }
    let target = table(of)?;
    let mut found = Vec::new();
    for (primary, columns, clustered) in keys(elements) {
        let clustered = clustered.or((others > 0).then_some(false));
        let is_default =
            if is_new { clustered != Some(!primary) } else { !primary && clustered != Some(true) };
        if is_default {
            continue;
        }
        let columns = match primary {
            true => Scalar::Null,
            false => Scalar::texts(all_folded(columns)?),
        };
        let key = call("tsql.index_of_key", [Scalar::text(target.as_str()), columns]);
        let clustered = clustered.map_or(Scalar::Null, Scalar::Boolean);
        found.push(plpgsql::Definition::Call(call("tsql.cluster", [key, clustered])));
    }
    Ok(found)
}

/// The line of a column of the primary key that is declared NULL.
pub fn nullable_key(elements: &[TableElement]) -> Option<u32> {
    let keys = |constraint: &Constraint| match &constraint.kind {
        ConstraintKind::Key { primary: true, columns, .. } => Some(columns.clone()),
        _ => None,
    };
    let of_table: Vec<Name> = elements
        .iter()
        .filter_map(|element| match element {
            TableElement::Constraint(constraint) => keys(constraint),
            TableElement::Column(_) => None,
        })
        .flatten()
        .collect();
    elements.iter().find_map(|element| match element {
        TableElement::Column(column) if column.nullable == Some(true) => {
            let is_key = column.constraints.iter().any(|one| keys(one).is_some())
                || of_table.iter().any(|name| name.text.eq_ignore_ascii_case(&column.name.text));
            is_key.then_some(column.name.at.line)
        }
        _ => None,
    })
}

/// The session values that a default may use.
struct OfDefault;

impl Variables for OfDefault {
    fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
        match name {
            "@@suser_name" | "@@user_name" => Ok(call("tsql.caller", [])),
            _ => NoVariables(NO_VARIABLES).write(name, line),
        }
    }
}

pub fn constant(value: &Expression, of: Type, scope: &Scope) -> Result<Scalar, Error> {
    let scope = Scope { definition: true, ..scope.clone() };
    let value = crate::bind::value(value, &scope, &mut OfDefault, Some(of))?;
    Ok(value.sql)
}

/// A default whose column's type PostgreSQL looks up (`tsql.converted_for`).
pub fn untyped_default(value: &Expression, scope: &Scope) -> Result<Scalar, Error> {
    let scope = Scope { definition: true, ..scope.clone() };
    Ok(expressions::value(&mut Binder::new(&scope, &mut OfDefault), value)?.sql)
}

/// Adds the default's name, which PostgreSQL cannot store, to its value.
pub fn named_default(value: Scalar, constraint: &Constraint) -> Scalar {
    match &constraint.name {
        // null alone has no type
        Some(name) if value != Scalar::Null => call("tsql.named_default", [value, Scalar::text(&name.text)]),
        _ => value,
    }
}
