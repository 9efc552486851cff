//! ALTER TABLE.

use super::blanks::{declared as declared_type, stored, stripped, typed, DEFAULT_LENGTH};
use super::constraints::{carried_constant, named_default, ForeignColumns};
use super::declaring::{declaration, finest, shown_constraints, with_declarations, Declaration, Shown};
use super::tables::{collated, column_type, elements, of_place};
use super::value::implicit;
use crate::error::Error;
use crate::facts::types::{self, Type};
use crate::postgres::Scalar;
use crate::resolve::names::{self, folded, table};
use crate::resolve::Scope;
use crate::tree::{
    AlterTable, ColumnDefinition, Constraint, ConstraintKind, Dropped, Name, ObjectName, TableElement,
};

pub fn alter(name: &ObjectName, action: &AlterTable, scope: &Scope) -> Result<String, Error> {
    let scope = &of_place(name, scope)?;
    let actions = match action {
        AlterTable::Add { elements: added, check_existing } => {
            added_elements(added, &name.name, *check_existing, scope)?
        }
        AlterTable::Drop(dropped) => {
            dropped.iter().map(|one| self::dropped(one, scope)).collect::<Result<_, _>>()?
        }
        AlterTable::AlterColumn { column, type_, collation, nullable } => {
            let of =
                collated(types::of_name(type_, DEFAULT_LENGTH, scope.dialect)?, collation.as_ref(), scope)?;
            if of.is_row_version() {
                let text = format!("Cannot alter column '{}' to be data type timestamp.", column.text);
                return Err(Error::new(4927, text, column.at).with_severity(16));
            }
            altered_column(column, of, *nullable, scope)?
        }
        AlterTable::ReplaceDefault { column, value } => {
            vec![format!(
                "alter column {} set default {}",
                names::name(column)?,
                carried_constant(value, scope)?
            )]
        }
        AlterTable::Check { enabled, check_existing, constraints } => {
            let folded = constraints.iter().map(|one| folded(&one.text, one.at.line));
            let folded = folded.collect::<Result<Vec<_>, _>>()?;
            let listed = names::array(folded.iter().map(|one| names::literal(one)), "text");
            let table = names::literal(&table(name)?);
            return Ok(format!(
                "call tsql.switch_constraints({table}, {listed}, {enabled}, {check_existing})"
            ));
        }
        AlterTable::Trigger { enabled, triggers } => {
            let verb = if *enabled { "enable" } else { "disable" };
            if triggers.is_empty() {
                vec![format!("{verb} trigger user")]
            } else {
                let one = |trigger: &Name| Ok(format!("{verb} trigger {}", names::name(trigger)?));
                triggers.iter().map(one).collect::<Result<_, Error>>()?
            }
        }
    };
    let mut declared = Vec::new();
    let mut shown = Shown::default();
    let mut further = checked(name, action, scope)?;
    match action {
        AlterTable::Add { elements, .. } => {
            shown.constraints = shown_constraints(elements);
            further.extend(stripped(typed(elements), scope)?);
            further.extend(finest(typed(elements), name, scope)?);
            for element in elements {
                if let TableElement::Column(column) = element {
                    declared.push(declaration(column, scope)?);
                }
            }
            declared.retain(Declaration::says_more);
        }
        // replaces its previous declaration; its name keeps its case
        AlterTable::AlterColumn { column, type_, nullable, .. } => {
            further.extend(stripped([(column, type_, *nullable)], scope)?);
            further.extend(finest([(column, type_, *nullable)], name, scope)?);
            declared.push(Declaration {
                column: folded(&column.text, column.at.line)?,
                shown: String::new(),
                type_: declared_type(type_, *nullable, scope),
            });
        }
        _ => {}
    }
    let table = table(name)?;
    let sql = format!("alter table {table} {}", actions.join(", "));
    Ok(with_declarations("alter_table", sql, &table, &declared, &shown, further))
}

/// The arguments for the checks of an alteration: the columns and constraints that it needs or drops.
fn checked(name: &ObjectName, action: &AlterTable, scope: &Scope) -> Result<Vec<String>, Error> {
    let mut arguments = Vec::new();
    let mut put = |name: &str, value: String| arguments.push(format!("{name} => {value}"));
    let literals = |of: &[&Name]| -> Result<String, Error> {
        let folded: Vec<String> =
            of.iter().map(|name| folded(&name.text, name.at.line)).collect::<Result<_, _>>()?;
        Ok(names::array(folded.iter().map(|name| names::literal(name)), "text"))
    };
    match action {
        AlterTable::AlterColumn { column, type_, nullable, collation } => {
            put("altered", names::literal(&folded(&column.text, column.at.line)?));
            if scope.dialect.alter_resets_nulls {
                if nullable.is_none() {
                    put("takes_nulls", String::from("true"));
                }
                let of = types::of_name(type_, DEFAULT_LENGTH, scope.dialect)?;
                let of = collated(of, collation.as_ref(), scope)?;
                let kept = column_type(stored(of, *nullable, scope), column.at.line)?;
                put("altered_type", names::literal(&kept));
                put("altered_nullable", nullable.unwrap_or(true).to_string());
            }
        }
        AlterTable::Drop(dropped) => {
            let (mut columns, mut constraints) = (Vec::new(), Vec::new());
            for one in dropped {
                match one {
                    Dropped::Column { name, .. } => columns.push(name),
                    Dropped::Bare(name) if scope.dialect.drops_columns => columns.push(name),
                    Dropped::Constraint { name, .. } | Dropped::Bare(name) => constraints.push(name),
                }
            }
            if !columns.is_empty() {
                put("dropped", literals(&columns)?);
            }
            if scope.dialect.drops_columns {
                put("with_defaults", String::from("true"));
            }
            if dropped.iter().any(|one| matches!(one, Dropped::Column { if_exists: true, .. })) {
                put("if_exists", String::from("true"));
            }
            if !constraints.is_empty() {
                put("without", literals(&constraints)?);
            }
        }
        AlterTable::Add { elements, .. } => {
            let key = elements.iter().find_map(|element| match element {
                TableElement::Constraint(Constraint {
                    kind: ConstraintKind::PrimaryKey { columns }, ..
                }) => Some(columns.iter().collect::<Vec<_>>()),
                _ => None,
            });
            if let Some(key) = key {
                put("key", literals(&key)?);
            }
            let foreign = ForeignColumns::of(elements, name, scope)?;
            if !foreign.referring.is_empty() {
                put("referring", literals(&foreign.referring)?);
            }
            arguments.extend(foreign.arguments()?);
        }
        _ => {}
    }
    Ok(arguments)
}

fn added_elements(
    added: &[TableElement],
    of: &str,
    check_existing: bool,
    scope: &Scope,
) -> Result<Vec<String>, Error> {
    let mut actions = Vec::with_capacity(added.len());
    let mut others = Vec::new();
    let mut defaults = Vec::new();
    for element in added {
        match element {
            TableElement::Constraint(
                constraint @ Constraint {
                    kind: ConstraintKind::Default { value, column: Some(column) }, ..
                },
            ) => actions.push(format!(
                "alter column {} set default {}",
                names::name(column)?,
                named_default(carried_constant(value, scope)?, constraint)
            )),
            TableElement::Column(column) if keeps_null(column, scope) => {
                let mut column = column.clone();
                for constraint in &column.constraints {
                    if let ConstraintKind::Default { value, .. } = &constraint.kind {
                        defaults.push(format!(
                            "alter column {} set default {}",
                            names::name(&column.name)?,
                            named_default(carried_constant(value, scope)?, constraint)
                        ));
                    }
                }
                column.constraints.retain(|one| !matches!(one.kind, ConstraintKind::Default { .. }));
                others.push(TableElement::Column(column));
            }
            other => others.push(other.clone()),
        }
    }
    for (element, sql) in others.iter().zip(elements(&others, of, scope)?) {
        actions.push(match element {
            TableElement::Column(_) => format!("add column {sql}"),
            TableElement::Constraint(constraint) => {
                let may_wait =
                    matches!(constraint.kind, ConstraintKind::Check(_) | ConstraintKind::ForeignKey { .. });
                format!("add {sql}{}", if may_wait && !check_existing { " not valid" } else { "" })
            }
        });
    }
    actions.extend(defaults);
    Ok(actions)
}

/// Whether an added column is NULL in existing rows, instead of its default ("ALTER TABLE", WITH VALUES).
fn keeps_null(column: &ColumnDefinition, scope: &Scope) -> bool {
    let is_key = |one: &Constraint| matches!(one.kind, ConstraintKind::PrimaryKey { .. });
    !column.with_values
        && column.nullable.unwrap_or(scope.dialect.columns_take_nulls)
        && !column.constraints.iter().any(is_key)
}

fn dropped(dropped: &Dropped, scope: &Scope) -> Result<String, Error> {
    let (kind, name, if_exists) = match dropped {
        Dropped::Column { name, if_exists } => ("column", name, *if_exists),
        Dropped::Constraint { name, if_exists } => ("constraint", name, *if_exists),
        Dropped::Bare(name) => {
            (if scope.dialect.drops_columns { "column" } else { "constraint" }, name, false)
        }
    };
    Ok(format!("drop {kind} {}{}", if if_exists { "if exists " } else { "" }, names::name(name)?))
}

/// Changes the type of a column, with an implicit conversion of its values. Values that do not fit are an error.
fn altered_column(
    column: &Name,
    of: Type,
    nullable: Option<bool>,
    scope: &Scope,
) -> Result<Vec<String>, Error> {
    let line = column.at.line;
    let name = names::name(column)?;
    let any_length = Type { length: if of.is_text() { None } else { of.length }, ..of };
    let value =
        implicit(super::Value::unknown(Scalar::column(name.as_str())), any_length, line, scope.dialect)?.sql;
    let type_ = column_type(stored(of, nullable, scope), line)?;
    let mut actions = vec![format!("alter column {name} type {type_} using {value}")];
    match nullable {
        Some(false) => actions.push(format!("alter column {name} set not null")),
        Some(true) => actions.push(format!("alter column {name} drop not null")),
        None => {}
    }
    Ok(actions)
}
