//! Tables and their columns.

use super::blanks::{stored, stripped, typed, DEFAULT_LENGTH};
use super::constraints::{
    constant, constraint, foreign_key, keys, named_default, nullable_key, ForeignColumns,
};
use super::declaring::{
    declaration, finest, is_stored_otherwise, shown_constraints, with_declarations, Declaration, Shown,
};
use crate::bind::binder::variables::{NoVariables, NO_VARIABLES};
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::values::column_type::{collated, column_type};
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::{self, Family, Type, BIT, UNKNOWN};
use crate::plpgsql::{self, Definition, Element, Step};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{folded, identifier, schema_of, table};
use crate::resolve::Scope;
use crate::schema::{Column, Table};
use crate::tree::{
    ColumnDefinition, ColumnKind, Constraint, ConstraintKind, CreateTable, Expression, Identity, KeyAction,
    Name, ObjectName, Position, TableElement,
};
use std::collections::{HashMap, HashSet};

pub fn create(create: &CreateTable, scope: &Scope) -> Result<Definition, Error> {
    let name = &create.table;
    let scope = &of_place(name, scope)?;
    if let Some(at) = foreign_key(&create.elements).filter(|_| name.is_draft) {
        let why = "SQL Server has none on temporary tables: it skips them with a message";
        return Err(Error::refused("a foreign key", why, at));
    }
    let elements = elements(&create.elements, &name.name, scope)?;
    let foreign = ForeignColumns::of(&create.elements, name, scope)?;
    if let Some(column) = foreign.referring.first() {
        let text = format!(
            "Foreign key references invalid column '{}' in referencing table '{}'.",
            column.text, name.name
        );
        return Err(Error::new(1769, text, column.at).with_severity(16));
    }
    // refuses a name that a table cannot have
    let whole = table(name)?;
    let is_temporary = name.is_temporary();
    let own = if is_temporary { identifier(&name.name, name.at.line)? } else { whole.clone() };
    let definition = Definition::Table { name: own, is_temporary, elements };
    let mut declared = Vec::new();
    for element in &create.elements {
        if let TableElement::Column(column) = element {
            declared.push(declaration(column, scope)?);
        }
    }
    declared.retain(Declaration::says_more);
    let shown = Shown {
        table: Some(name.name.as_str()).filter(|name| is_stored_otherwise(name)),
        constraints: shown_constraints(&create.elements),
    };
    let mut further = foreign.arguments()?;
    further.extend(stripped(typed(&create.elements), scope)?);
    further.extend(finest(typed(&create.elements), name, scope)?);
    let is_plain = declared.is_empty() && further.is_empty() && foreign_key(&create.elements).is_none();
    if is_plain && shown.table.is_none() && shown.constraints.is_empty() {
        return Ok(definition);
    }
    Ok(with_declarations("tsql.create_table", &definition, &whole, &declared, &shown, further))
}

/// The columns of a new table, as queries know them.
pub fn declared_table(create: &CreateTable, scope: &Scope) -> Result<Table, Error> {
    let mut declared = Table::default();
    declared.has_own_rows = true;
    for element in &create.elements {
        let TableElement::Column(column) = element else { continue };
        let of = match &column.kind {
            ColumnKind::Typed(of) => {
                let of = type_names::of_name(of, DEFAULT_LENGTH, scope.dialect)?;
                collated(stored(of, column.nullable, scope), column.collation.as_ref(), scope)?
            }
            ColumnKind::Computed { .. } => UNKNOWN,
        };
        let of = match of {
            of if of.name == types::CHAR.name && of.oid == types::VARCHAR.oid => types::varchar(of.length),
            // the numbers of a numeric are a bigint's
            of if column.identity.is_some() && of.family == Family::Decimal => UNKNOWN,
            of => of,
        };
        let name = folded(&column.name.text, column.name.at.line)?;
        declared.add(Column {
            name,
            of,
            is_identity: column.identity.is_some(),
            is_computed: matches!(column.kind, ColumnKind::Computed { .. }),
            ..Column::default()
        });
    }
    Ok(declared)
}

/// Drops a temporary table if it exists, without PostgreSQL's notice if it does not.
pub fn forgotten(name: &ObjectName) -> Result<Definition, Error> {
    let name = table(name)?;
    let exists = call("to_regclass", [Scalar::text(name.as_str())]).is_null(false);
    let drop = Step::Define(Definition::DropTable(name));
    Ok(Definition::Do(vec![Step::if_(exists, [drop])]))
}

fn at_first_key(elements: &[TableElement]) -> Position {
    let mut columns = keys(elements).flat_map(|(_, columns, _)| columns);
    columns.next().map(|column| column.at).unwrap_or_default()
}

/// What SQL Server refuses of a table's keys and checks: several primary keys (8110) or rowversions (2738); of one column
/// several checks (8148) or a primary key and a unique one (8151); checks, foreign keys and NOT NULL of a computed column that
/// is not persisted (8183, 1764).
fn demand_one_of_each(elements: &[TableElement], of: &str) -> Result<(), Error> {
    let fail = |number, text: String, at: Position| Err(Error::new(number, text, at).with_severity(16));
    if keys(elements).filter(|(is_primary, ..)| *is_primary).count() > 1 {
        let text = format!("Cannot add multiple PRIMARY KEY constraints to table '{of}'.");
        return fail(8110, text, at_first_key(elements));
    }
    let mut versions = 0;
    let mut computed = Vec::new();
    for element in elements {
        let TableElement::Column(column) = element else { continue };
        let (name, at) = (&column.name.text, column.name.at);
        let number =
            |is: fn(&ConstraintKind) -> bool| column.constraints.iter().filter(|one| is(&one.kind)).count();
        let checks = number(|kind| matches!(kind, ConstraintKind::Check(_)));
        let primary = number(|kind| matches!(kind, ConstraintKind::Key { primary: true, .. }));
        let unique = number(|kind| matches!(kind, ConstraintKind::Key { primary: false, .. }));
        if checks > 1 {
            let text =
                format!("More than one column CHECK constraint specified for column '{name}', table '{of}'.");
            return fail(8148, text, at);
        }
        if primary > 0 && unique > 0 {
            let text = format!(
                "Both a PRIMARY KEY and UNIQUE constraint have been defined for column '{name}', table '{of}'. Only one is \
                 allowed."
            );
            return fail(8151, text, at);
        }
        match &column.kind {
            ColumnKind::Typed(type_) if type_.name == "timestamp" || type_.name == "rowversion" => {
                versions += 1;
                if versions > 1 {
                    let text = format!(
                        "A table can only have one timestamp column. Because table '{of}' already has one, the column \
                         '{name}' cannot be added."
                    );
                    return fail(2738, text, at);
                }
            }
            ColumnKind::Computed { persisted: false, .. } => {
                let refers = number(|kind| matches!(kind, ConstraintKind::ForeignKey { .. }));
                if checks + refers > 0 || column.nullable == Some(false) {
                    let text = "Only UNIQUE or PRIMARY KEY constraints can be created on computed columns, while CHECK, FOREIGN \
                                KEY, and NOT NULL constraints require that computed columns be persisted.";
                    return fail(8183, text.to_owned(), at);
                }
                computed.push(name);
            }
            _ => {}
        }
    }
    for element in elements {
        let TableElement::Constraint(Constraint { kind: ConstraintKind::Check(condition), at, name }) =
            element
        else {
            continue;
        };
        let names = |own: &&&String| {
            walk::any(
                condition,
                &mut |one| matches!(one, Expression::Column(column) if column.column.eq_ignore_ascii_case(own)),
            )
        };
        if let Some(column) = computed.iter().find(names) {
            let name = name.as_ref().map_or("CHECK", |name| &name.text);
            let text =
                format!("Computed Column '{column}' in table '{of}' is invalid for use in '{name}' because it is not persisted.");
            return fail(1764, text, *at);
        }
    }
    Ok(())
}

/// Error 1761: a column NOT NULL that a foreign key would set to NULL.
fn refuse_null_action(elements: &[TableElement]) -> Result<(), Error> {
    let takes_none = |name: &str| {
        elements.iter().any(|element| {
            matches!(element, TableElement::Column(column) if column.name.is(name) && column.nullable == Some(false))
        })
    };
    let of_column = elements.iter().map(|element| match element {
        TableElement::Column(column) => (Some(&column.name), column.constraints.as_slice()),
        TableElement::Constraint(one) => (None, std::slice::from_ref(one)),
    });
    for (own, constraint) in of_column.flat_map(|(own, all)| all.iter().map(move |one| (own, one))) {
        let ConstraintKind::ForeignKey { columns, references } = &constraint.kind else { continue };
        let mut columns = own.into_iter().chain(columns);
        let sets_null = [references.on_delete, references.on_update].contains(&KeyAction::SetNull);
        if sets_null && columns.any(|column| takes_none(&column.text)) {
            let name = constraint.name.as_ref().map_or("FK", |name| &name.text);
            let text = format!(
                "Cannot create the foreign key \"{name}\" with the SET NULL referential action, because one or more referencing \
                 columns are not nullable."
            );
            return Err(Error::new(1761, text, constraint.at).with_severity(16));
        }
    }
    Ok(())
}

/// A table has at most one identity column, which is not null.
fn check_identity(elements: &[TableElement], of: &str) -> Result<(), Error> {
    let identities = elements.iter().filter_map(|element| match element {
        TableElement::Column(column) => column.identity.map(|_| column),
        TableElement::Constraint(_) => None,
    });
    for (number, column) in identities.enumerate() {
        let (number, text) = match column.nullable {
            _ if number > 0 => (
                2744,
                format!(
                    "Multiple identity columns specified for table '{of}'. Only one identity column per table is \
                     allowed."
                ),
            ),
            Some(true) => (
                8147,
                format!(
                    "Could not create IDENTITY attribute on nullable column '{}', table '{of}'.",
                    column.name.text
                ),
            ),
            _ => continue,
        };
        return Err(Error::new(number, text, column.name.at).with_severity(16));
    }
    Ok(())
}

pub fn elements(elements: &[TableElement], of: &str, scope: &Scope) -> Result<Vec<Element>, Error> {
    let mut seen = HashSet::new();
    let mut types = HashMap::new();
    for element in elements {
        let TableElement::Column(column) = element else { continue };
        let (name, line) = (&column.name.text, column.name.at.line);
        let folded = folded(name, line)?;
        if let ColumnKind::Typed(type_) = &column.kind {
            let of = type_names::of_name(type_, DEFAULT_LENGTH, scope.dialect)?;
            types.insert(folded.clone(), collated(of, column.collation.as_ref(), scope)?);
        }
        if !seen.insert(folded) {
            let text = format!(
                "Column names in each table must be unique. Column name '{name}' in table '{of}' is specified \
                 more than once."
            );
            return Err(Error::new(2705, text, line).with_severity(16));
        }
    }
    if let Some(line) = nullable_key(elements) {
        let text = format!("Cannot define PRIMARY KEY constraint on nullable column in table '{of}'.");
        return Err(Error::new(8111, text, line).with_severity(16));
    }
    check_identity(elements, of)?;
    if scope.dialect.is_strict {
        demand_one_of_each(elements, of)?;
        refuse_null_action(elements)?;
        for (_, mut columns, _) in keys(elements) {
            let known = |column: &&Name| types.get(&column.text.to_lowercase()).copied();
            if let Some(column) = columns.find(|column| known(column).is_some_and(|of| !of.is_indexable())) {
                let text = format!(
                    "Column '{}' in table '{of}' is of a type that is invalid for use as a key column in an index.",
                    column.text
                );
                return Err(Error::new(1919, text, column.at).with_severity(16));
            }
        }
    }
    let write = |element: &TableElement| match element {
        TableElement::Column(column) => Ok(Element::Column(self::column(column, of, &types, scope)?)),
        TableElement::Constraint(one) => Ok(Element::Constraint(constraint(one, &[], &types, scope)?)),
    };
    elements.iter().map(write).collect()
}

fn column(
    column: &ColumnDefinition,
    of_table: &str,
    types: &HashMap<String, Type>,
    scope: &Scope,
) -> Result<plpgsql::Column, Error> {
    let line = column.name.at.line;
    let name = folded(&column.name.text, line)?;
    let is_typed = matches!(column.kind, ColumnKind::Typed(_));
    let is_default = |one: &&Constraint| is_typed && matches!(one.kind, ConstraintKind::Default { .. });
    let constraints = column.constraints.iter().filter(|one| !is_default(one));
    let constraints =
        constraints.map(|one| constraint(one, std::slice::from_ref(&column.name), types, scope));
    let constraints = constraints.collect::<Result<_, Error>>()?;
    let of = match &column.kind {
        ColumnKind::Typed(type_) => collated(
            type_names::of_name(type_, DEFAULT_LENGTH, scope.dialect)?,
            column.collation.as_ref(),
            scope,
        )?,
        ColumnKind::Computed { value, .. } => {
            let kind = computed(&column.name.text, value, types, scope)?;
            return Ok(plpgsql::Column { name, kind, not_null: false, default: None, constraints });
        }
    };
    let kind = match &column.identity {
        Some(identity) => identity_of(&column.name.text, *identity, of, line)?,
        None => plpgsql::ColumnKind::Typed(column_type(stored(of, column.nullable, scope), line)?),
    };
    let is_key = |one: &Constraint| matches!(one.kind, ConstraintKind::Key { primary: true, .. });
    // sysname is not null unless the column specifies otherwise
    let is_name =
        matches!(&column.kind, ColumnKind::Typed(of) if of.name == "sysname") && column.nullable.is_none();
    let is_version = of.is_row_version();
    let takes_none =
        is_name || is_version && !scope.dialect.row_versions_take_nulls && column.nullable.is_none();
    let not_null = column.nullable == Some(false) || takes_none || column.constraints.iter().any(is_key);
    let not_null =
        not_null || (column.nullable.is_none() && !scope.dialect.columns_take_nulls && !is_version);
    // for existing rows: later ones get theirs from a trigger
    let mut default = is_version.then(|| call("tsql.next_rowversion", []));
    for one in column.constraints.iter().filter(is_default) {
        let ConstraintKind::Default { value, .. } = &one.kind else { continue };
        if is_version {
            let text = "Defaults cannot be created on columns of data type timestamp.";
            let text = format!("{text} Table '{of_table}', column '{}'.", column.name.text);
            return Err(Error::new(1755, text, one.at).with_severity(16));
        }
        if default.is_some() {
            let text = format!(
                "More than one column DEFAULT constraint specified for column '{}', table '{of_table}'.",
                column.name.text
            );
            return Err(Error::new(8148, text, one.at).with_severity(16));
        }
        default = Some(named_default(constant(value, of, scope)?, one));
    }
    Ok(plpgsql::Column { name, kind, not_null, default, constraints })
}

/// The scope of a table's columns, which have the collation of its database.
pub fn of_place(table: &ObjectName, scope: &Scope) -> Result<Scope, Error> {
    Ok(match schema_of(table) {
        schema if schema.is_empty() || table.is_temporary() => scope.clone(),
        schema => scope.in_schema(&folded(schema, table.at.line)?),
    })
}

fn identity_of(name: &str, identity: Identity, of: Type, line: u32) -> Result<plpgsql::ColumnKind, Error> {
    let digits = of.digits().filter(|(_, scale)| *scale == 0 && of != BIT);
    let Some((digits, _)) = digits else {
        let text = format!(
            "Identity column '{name}' must be of data type int, bigint, smallint, tinyint, or decimal or numeric \
             with a scale of 0."
        );
        return Err(Error::new(2749, text, line).with_severity(16));
    };
    let is_decimal = of.name == "decimal";
    let Identity { seed, increment } = identity;
    let (low, high) = match of.name {
        "tinyint" => (0, 255),
        "smallint" => (i64::from(i16::MIN), i64::from(i16::MAX)),
        "int" => (i64::from(i32::MIN), i64::from(i32::MAX)),
        "bigint" => (i64::MIN, i64::MAX),
        // a bigint's range if it has more digits than one
        _ => 10_i64.checked_pow(u32::from(digits)).map_or((i64::MIN, i64::MAX), |end| (1 - end, end - 1)),
    };
    if increment == 0 || !(low..=high).contains(&seed) {
        let text = format!("Identity column '{name}' has an invalid seed or increment.");
        return Err(Error::new(2750, text, line).with_severity(16));
    }
    let type_ = if is_decimal { "bigint".to_owned() } else { of.sql() };
    // PostgreSQL's default: from 1 to the greatest value of its type
    let is_usual = seed > 0 && increment > 0 && ["smallint", "int", "bigint"].contains(&of.name);
    let bounds = (!is_usual).then_some((low, high));
    Ok(plpgsql::ColumnKind::Identity { type_, start: seed, increment, bounds })
}

/// `name as value`: its type is the value's, which follows from the types of the table's columns.
fn computed(
    name: &str,
    value: &Expression,
    types: &HashMap<String, Type>,
    scope: &Scope,
) -> Result<plpgsql::ColumnKind, Error> {
    let line = value.at().line;
    let mut none = NoVariables(NO_VARIABLES);
    let scope = Scope { definition: true, stored: true, ..scope.clone() };
    let mut binder = Binder::new(&scope, &mut none);
    binder.column_types.clone_from(types);
    let value = expressions::value(&mut binder, value)?;
    let value = conditions::collated_by_default(&binder, value);
    if !value.of.is_tsql() {
        let what = format!("{name} as …");
        return Err(Error::refused(&what, "its type is not known: convert the value to one", line));
    }
    Ok(plpgsql::ColumnKind::Computed(column_type(value.of, line)?, value.sql))
}
