//! ALTER TABLE.

use super::blanks::{declared as declared_type, stored, stripped, typed, DEFAULT_LENGTH};
use super::constraints::{untyped_default, ForeignColumns};
use super::declaring::{declaration, finest, shown_constraints, with_declarations, Declaration, Shown};
use super::tables::{elements, of_place};
use crate::bind::values::assignments::implicit;
use crate::bind::values::column_type::{collated, column_type};
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::{Type, UNKNOWN};
use crate::plpgsql::{Alteration, Definition, Element, Rule, Step};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{self, all_folded, folded, table};
use crate::resolve::Scope;
use crate::tree::{
    AlterTable, ColumnDefinition, Constraint, ConstraintKind, Dropped, Expression, Name, ObjectName,
    TableElement,
};

pub fn alter(name: &ObjectName, action: &AlterTable, scope: &Scope) -> Result<Definition, Error> {
    let scope = &of_place(name, scope)?;
    let mut defaults = Vec::new();
    let actions = match action {
        AlterTable::Add { elements: added, check_existing } => {
            defaults.extend(added_defaults(name, added, scope)?);
            added_elements(added, &name.name, *check_existing, scope)?
        }
        AlterTable::Drop(dropped) => {
            dropped.iter().map(|one| self::dropped(one, scope)).collect::<Result<_, _>>()?
        }
        AlterTable::AlterColumn { column, type_, collation, nullable } => {
            let of = collated(
                type_names::of_name(type_, DEFAULT_LENGTH, scope.dialect)?,
                collation.as_ref(),
                scope,
            )?;
            if of.is_row_version() {
                let text = format!("Cannot alter column '{}' to be data type timestamp.", column.text);
                return Err(Error::new(4927, text, column.at).with_severity(16));
            }
            altered_column(column, of, *nullable, scope)?
        }
        AlterTable::ReplaceDefault { column, value } => {
            return Ok(Definition::Call(default(name, column, value, None, scope)?));
        }
        AlterTable::Check { enabled, check_existing, constraints } => {
            let constraints = Scalar::texts(all_folded(constraints)?);
            let [enabled, check_existing] = [*enabled, *check_existing].map(Scalar::Boolean);
            let arguments = [Scalar::Text(table(name)?), constraints, enabled, check_existing];
            return Ok(Definition::Call(call("tsql.switch_constraints", arguments)));
        }
        AlterTable::Trigger { enabled, triggers } => {
            let switch = |name| Alteration::Trigger { enabled: *enabled, name };
            match triggers.is_empty() {
                true => vec![switch(None)],
                false => all_folded(triggers)?.into_iter().map(|name| switch(Some(name))).collect(),
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
    let altered = (!actions.is_empty()).then(|| {
        let definition = Definition::Alter { table: table.clone(), actions };
        with_declarations("tsql.alter_table", &definition, &table, &declared, &shown, further)
    });
    let mut all: Vec<Definition> =
        altered.into_iter().chain(defaults.into_iter().map(Definition::Call)).collect();
    match all.len() {
        1 => Ok(all.remove(0)),
        _ => Ok(Definition::Do(all.into_iter().map(Step::Define).collect())),
    }
}

/// Gives an existing column a default. `constraint`: of this name; None: in place of another.
fn default(
    table: &ObjectName,
    column: &Name,
    value: &Expression,
    constraint: Option<&Constraint>,
    scope: &Scope,
) -> Result<Scalar, Error> {
    let value = Scalar::Text(untyped_default(value, scope)?.to_string());
    let column = Scalar::Text(folded(&column.text, column.at.line)?);
    let name = constraint.and_then(|one| one.name.as_ref());
    let name = name.map_or(Scalar::Null, |name| Scalar::text(&name.text));
    let replaces = Scalar::Boolean(constraint.is_none());
    Ok(call("tsql.set_default", [Scalar::Text(names::table(table)?), column, value, name, replaces]))
}

fn added_defaults(table: &ObjectName, added: &[TableElement], scope: &Scope) -> Result<Vec<Scalar>, Error> {
    let of_column = |element: &TableElement| match element {
        TableElement::Constraint(
            constraint @ Constraint { kind: ConstraintKind::Default { value, column: Some(column) }, .. },
        ) => Some(default(table, column, value, Some(constraint), scope)),
        _ => None,
    };
    added.iter().filter_map(of_column).collect()
}

/// The arguments for the checks of an alteration: the columns and constraints that it needs or drops.
fn checked(name: &ObjectName, action: &AlterTable, scope: &Scope) -> Result<Vec<Scalar>, Error> {
    let mut arguments = Vec::new();
    let mut put = |name, value: Scalar| arguments.push(value.named(name));
    let texts = |names: Vec<&Name>| Ok::<_, Error>(Scalar::texts(all_folded(names)?));
    match action {
        AlterTable::AlterColumn { column, type_, nullable, collation } => {
            put("altered", Scalar::Text(folded(&column.text, column.at.line)?));
            if scope.dialect.alter_resets_nulls {
                if nullable.is_none() {
                    put("takes_nulls", Scalar::Boolean(true));
                }
                let of = type_names::of_name(type_, DEFAULT_LENGTH, scope.dialect)?;
                let of = collated(of, collation.as_ref(), scope)?;
                let kept = column_type(stored(of, *nullable, scope), column.at.line)?;
                put("altered_type", Scalar::Text(kept));
                put("altered_nullable", Scalar::Boolean(nullable.unwrap_or(true)));
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
                put("dropped", texts(columns)?);
            }
            if scope.dialect.drops_columns {
                put("with_defaults", Scalar::Boolean(true));
            }
            if dropped.iter().any(|one| matches!(one, Dropped::Column { if_exists: true, .. })) {
                put("if_exists", Scalar::Boolean(true));
            }
            if !constraints.is_empty() {
                put("without", texts(constraints)?);
            }
        }
        AlterTable::Add { elements, .. } => {
            let is_new = |column: &&Name| {
                let is_it = |element: &TableElement| matches!(element, TableElement::Column(new) if new.name.is(&column.text));
                elements.iter().any(is_it)
            };
            let key = elements.iter().find_map(|element| match element {
                TableElement::Constraint(Constraint {
                    kind: ConstraintKind::Key { primary: true, columns, .. },
                    ..
                }) => Some(columns.iter().filter(|column| !is_new(column)).collect()),
                _ => None,
            });
            if let Some(key) = key {
                put("key", texts(key)?);
            }
            let foreign = ForeignColumns::of(elements, name, scope)?;
            if !foreign.referring.is_empty() {
                put("referring", texts(foreign.referring.clone())?);
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
) -> Result<Vec<Alteration>, Error> {
    let is_default = |one: &&Constraint| matches!(one.kind, ConstraintKind::Default { column: Some(_), .. });
    let is_part =
        |element: &&TableElement| !matches!(element, TableElement::Constraint(one) if is_default(&one));
    let parts: Vec<TableElement> = added.iter().filter(is_part).cloned().collect();
    let (mut actions, mut defaults) = (Vec::with_capacity(parts.len()), Vec::new());
    for (part, mut element) in parts.iter().zip(elements(&parts, of, scope)?) {
        if let (TableElement::Column(column), Element::Column(made)) = (part, &mut element) {
            // existing rows would have it
            if has_default(column) && keeps_null(column, scope) {
                let default = made.default.take();
                defaults.extend(default.map(|value| Alteration::SetDefault(made.name.clone(), value)));
            }
        }
        let may_wait = match &element {
            Element::Column(_) => false,
            Element::Constraint(one) => matches!(one.rule, Rule::Check(_) | Rule::ForeignKey { .. }),
        };
        actions.push(Alteration::Add { element, valid: check_existing || !may_wait });
    }
    actions.extend(defaults);
    Ok(actions)
}

fn has_default(column: &ColumnDefinition) -> bool {
    column.constraints.iter().any(|one| matches!(one.kind, ConstraintKind::Default { .. }))
}

/// Whether an added column is NULL in existing rows, instead of its default ("ALTER TABLE", WITH VALUES).
fn keeps_null(column: &ColumnDefinition, scope: &Scope) -> bool {
    let is_key = |one: &Constraint| matches!(one.kind, ConstraintKind::Key { primary: true, .. });
    !column.with_values
        && column.nullable.unwrap_or(scope.dialect.columns_take_nulls)
        && !column.constraints.iter().any(is_key)
}

fn dropped(dropped: &Dropped, scope: &Scope) -> Result<Alteration, Error> {
    let (kind, name, if_exists) = match dropped {
        Dropped::Column { name, if_exists } => ("column", name, *if_exists),
        Dropped::Constraint { name, if_exists } => ("constraint", name, *if_exists),
        Dropped::Bare(name) => {
            (if scope.dialect.drops_columns { "column" } else { "constraint" }, name, false)
        }
    };
    Ok(Alteration::Drop { kind, name: folded(&name.text, name.at.line)?, if_exists })
}

/// Changes the type of a column, with an implicit conversion of its values. Values that do not fit are an error.
fn altered_column(
    column: &Name,
    of: Type,
    nullable: Option<bool>,
    scope: &Scope,
) -> Result<Vec<Alteration>, Error> {
    let line = column.at.line;
    let (column, name) = (names::name(column)?, folded(&column.text, line)?);
    let any_length = Type { length: if of.is_text() { None } else { of.length }, ..of };
    let value = implicit(Value::new(Scalar::column(column), UNKNOWN), any_length, line, scope.dialect)?.sql;
    let type_ = column_type(stored(of, nullable, scope), line)?;
    let mut actions = vec![Alteration::Type { column: name.clone(), type_, value }];
    actions.extend(nullable.map(|nullable| Alteration::NotNull(name, !nullable)));
    Ok(actions)
}
