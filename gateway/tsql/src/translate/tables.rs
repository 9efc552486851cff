//! Tables: their columns and constraints.

use super::blanks::{stored, stripped, typed};
use super::translation::Translation;
use super::value::{carried, converted};
use super::variables::{NoVariables, Variables};
use crate::error::Error;
use crate::facts::collations::{self, Collation};
use crate::facts::types::{self, Type, BIT, DATETIME2};
use crate::resolve::names::{self, folded, identifier, in_parentheses, table};
use crate::resolve::Scope;
use crate::tree::{
    AlterTable, ColumnDefinition, ColumnKind, Constraint, ConstraintKind, CreateTable, Dropped, Expression,
    Identity, KeyAction, Name, ObjectName, Position, References, TableElement,
};
use std::collections::{HashMap, HashSet};

const NO_VARIABLES: &str = "a definition names no variables";
/// Digits that a bigint holds.
const WIDEST_IDENTITY: u8 = 18;
/// Characters and bytes of a column that says no length.
pub const DEFAULT_LENGTH: u32 = 1;

pub fn create(create: &CreateTable, scope: &Scope) -> Result<String, Error> {
    let name = &create.table;
    if let Some(at) = foreign_key(&create.elements).filter(|_| name.is_global()) {
        let why = "SQL Server has none on temporary tables: it skips them with a message";
        return Err(Error::refused("a foreign key", why, at));
    }
    let parts = elements(&create.elements, &name.name, scope)?.join(", ");
    // refuses a name that no table can have
    let whole = table(name)?;
    let create_sql = if name.is_global() {
        format!("create unlogged table {whole} ({parts})")
    } else if name.is_temporary() {
        format!("create temporary table {} ({parts})", identifier(&name.name, name.at.line)?)
    } else {
        format!("create table {whole} ({parts})")
    };
    let mut declared = Vec::new();
    for element in &create.elements {
        if let TableElement::Column(column) = element {
            declared.push(declaration(column)?);
        }
    }
    declared.retain(Declaration::says_more);
    let shown = Shown {
        table: Some(name.name.as_str()).filter(|name| has_capitals(name)),
        constraints: shown_constraints(&create.elements),
    };
    if name.is_global() {
        return Ok(with_declarations("create_global", create_sql, &whole, &declared, &shown, Vec::new()));
    }
    let stripped = stripped(typed(&create.elements), scope)?;
    if declared.is_empty() && stripped.is_none() && shown.table.is_none() && shown.constraints.is_empty() {
        return Ok(create_sql);
    }
    Ok(with_declarations(
        "create_table",
        create_sql,
        &whole,
        &declared,
        &shown,
        stripped.into_iter().collect(),
    ))
}

/// Where the first foreign key stands.
fn foreign_key(elements: &[TableElement]) -> Option<Position> {
    let constraints = elements.iter().flat_map(|element| match element {
        TableElement::Column(column) => column.constraints.as_slice(),
        TableElement::Constraint(constraint) => std::slice::from_ref(constraint),
    });
    let is_foreign = |one: &&Constraint| matches!(one.kind, ConstraintKind::ForeignKey { .. });
    constraints.clone().find(is_foreign).map(|one| one.at)
}

/// Names as they are shown, which PostgreSQL has in small letters.
#[derive(Default)]
struct Shown<'a> {
    table: Option<&'a str>,
    constraints: Vec<&'a str>,
}

fn has_capitals(name: &str) -> bool {
    name.to_lowercase() != name
}

/// The names of the constraints of a table's columns and of its own that PostgreSQL has in small letters; defaults are no
/// constraints there.
fn shown_constraints(elements: &[TableElement]) -> Vec<&str> {
    let constraints = elements.iter().flat_map(|element| match element {
        TableElement::Column(column) => column.constraints.as_slice(),
        TableElement::Constraint(constraint) => std::slice::from_ref(constraint),
    });
    let kept = constraints.filter(|constraint| !matches!(constraint.kind, ConstraintKind::Default { .. }));
    let names = kept.filter_map(|constraint| Some(constraint.name.as_ref()?.text.as_str()));
    names.filter(|name| has_capitals(name)).collect()
}

/// The part of a column's T-SQL declaration that PostgreSQL does not keep.
struct Declaration {
    /// As PostgreSQL has it.
    column: String,
    /// As it is written.
    shown: String,
    /// The declared type; "" where it follows from PostgreSQL's.
    type_: String,
}

impl Declaration {
    fn says_more(&self) -> bool {
        !self.type_.is_empty() || self.shown != self.column
    }
}

fn declaration(column: &ColumnDefinition) -> Result<Declaration, Error> {
    let shown = column.name.text.clone();
    let folded = folded(&shown, column.name.at.line)?;
    let type_ = match &column.kind {
        ColumnKind::Typed(type_) => types::declared_type(type_, DEFAULT_LENGTH),
        _ => String::new(),
    };
    Ok(Declaration { column: folded, shown, type_ })
}

/// The definition and, in the same statement, what is declared: as comments on the columns, which go where the
/// columns go. `further`: other arguments of the procedure, by name.
fn with_declarations(
    procedure: &str,
    sql: String,
    table: &str,
    declared: &[Declaration],
    shown: &Shown,
    further: Vec<String>,
) -> String {
    let mut arguments = vec![declaring(sql, table, declared)];
    if shown.table.is_some() || !shown.constraints.is_empty() {
        arguments.push(shown.table.map_or_else(|| String::from("null"), names::literal));
        let both = shown.constraints.iter().flat_map(|name| [name.to_lowercase(), (*name).to_owned()]);
        arguments.push(names::array(both.map(|name| names::literal(&name)), "text"));
    }
    arguments.extend(further);
    format!("call tsql.{procedure}({})", arguments.join(", "))
}

/// The arguments of a procedure that runs a definition and keeps what is declared.
fn declaring(sql: String, table: &str, declared: &[Declaration]) -> String {
    let listed = |of: &dyn Fn(&Declaration) -> String| {
        names::array(declared.iter().map(|one| names::literal(&of(one))), "text")
    };
    let columns = listed(&|one| one.column.clone());
    let types = listed(&|one| match one.shown.as_str() {
        "" => one.type_.clone(),
        shown => format!("{} {}", names::quoted(shown), one.type_).trim_end().to_owned(),
    });
    let (sql, table) = (names::literal(&sql), names::literal(table));
    format!("{sql}, {table}, {columns}, {types}")
}

/// The arguments for a view whose columns are shown in the case in which they are given, with the types that are known of
/// them; "" for one that is shown as the table's.
pub fn declaring_view(
    sql: String,
    view: &str,
    given: &[(String, Option<Type>)],
    line: u32,
) -> Result<String, Error> {
    let mut declared = Vec::new();
    for (shown, of) in given.iter().filter(|(shown, _)| !shown.is_empty()) {
        // PostgreSQL keeps no digits of these
        let fine = of.filter(|of| matches!(of.name, "datetime2" | "time"));
        declared.push(Declaration {
            column: folded(shown, line)?,
            shown: shown.clone(),
            type_: fine.map(|of| of.declared()).unwrap_or_default(),
        });
    }
    declared.retain(Declaration::says_more);
    Ok(declaring(sql, view, &declared))
}

/// What an insert must know of a new table.
pub fn note_columns(scope: &mut Scope, table: String, create: &CreateTable) {
    let is_variant = |element: &TableElement| match element {
        TableElement::Column(column) => match &column.kind {
            ColumnKind::Typed(of) if of.name == types::SQL_VARIANT.name => {
                Some(column.name.text.to_lowercase())
            }
            _ => None,
        },
        TableElement::Constraint(_) => None,
    };
    let variants: Vec<String> = create.elements.iter().filter_map(is_variant).collect();
    scope.filled.insert(table.clone(), filled_columns(create, !variants.is_empty()));
    scope.variants.insert(table, variants);
}

/// The columns that an insert without columns fills, when those are not all or `must_name` says so.
fn filled_columns(create: &CreateTable, must_name: bool) -> Option<Vec<String>> {
    let (mut filled, mut number) = (Vec::new(), 0);
    for element in &create.elements {
        let TableElement::Column(column) = element else { continue };
        number += 1;
        if column.identity.is_none() && matches!(column.kind, ColumnKind::Typed(_)) {
            filled.push(column.name.text.clone());
        }
    }
    (must_name || filled.len() < number).then_some(filled)
}

/// Drops a temporary table if it is there, without PostgreSQL's word that it is not.
pub fn forgotten(name: &ObjectName) -> Result<String, Error> {
    let name = table(name)?;
    let there = names::literal(&name);
    let drop = format!("begin if to_regclass({there}) is not null then drop table {name}; end if; end");
    Ok(format!("do {}", names::literal(&drop)))
}

/// The line of a column that says NULL and is of the primary key.
fn nullable_key(elements: &[TableElement]) -> Option<u32> {
    let keys = |constraint: &Constraint| match &constraint.kind {
        ConstraintKind::PrimaryKey { columns } => Some(columns.clone()),
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

/// A table has one identity column, which takes no nulls.
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

fn elements(elements: &[TableElement], of: &str, scope: &Scope) -> Result<Vec<String>, Error> {
    let mut seen = HashSet::new();
    let mut types = HashMap::new();
    for element in elements {
        let TableElement::Column(column) = element else { continue };
        let (name, line) = (&column.name.text, column.name.at.line);
        let folded = folded(name, line)?;
        if let ColumnKind::Typed(type_) = &column.kind {
            types.insert(folded.clone(), types::of_name(type_, DEFAULT_LENGTH, scope.sybase)?);
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
    let write = |element: &TableElement| match element {
        TableElement::Column(column) => self::column(column, &types, scope),
        TableElement::Constraint(constraint) => self::constraint(constraint, &[], scope),
    };
    elements.iter().map(write).collect()
}

fn column(column: &ColumnDefinition, types: &HashMap<String, Type>, scope: &Scope) -> Result<String, Error> {
    let line = column.name.at.line;
    let name = names::name(&column.name)?;
    if let Some(collation) = column.collation.as_ref().filter(|name| !is_the_databases(name)) {
        return Err(Error::refused("collate", "texts are compared as the database has it", collation.at));
    }
    let mut parts = vec![name];
    let of = match &column.kind {
        ColumnKind::Typed(type_) => types::of_name(type_, DEFAULT_LENGTH, scope.sybase)?,
        ColumnKind::Computed { value, .. } => {
            parts.push(computed(&column.name.text, value, types, scope)?);
            for one in &column.constraints {
                parts.push(constraint(one, std::slice::from_ref(&column.name), scope)?);
            }
            return Ok(parts.join(" "));
        }
        ColumnKind::RowVersion(at) => {
            return Err(Error::refused(
                "timestamp",
                "rows have no versions: write the time of a change",
                *at,
            ));
        }
    };
    match &column.identity {
        Some(identity) => parts.push(identity_sql(&column.name.text, *identity, of, line)?),
        None => parts.push(column_type(stored(of, column.nullable, scope), line)?),
    }
    let is_key = |one: &Constraint| matches!(one.kind, ConstraintKind::PrimaryKey { .. });
    // a name is there unless the column says otherwise
    let is_name =
        matches!(&column.kind, ColumnKind::Typed(of) if of.name == "sysname") && column.nullable.is_none();
    let not_null = column.nullable == Some(false) || is_name || column.constraints.iter().any(is_key);
    // a column that says neither takes nulls in SQL Server and takes none in ASE
    if not_null || (column.nullable.is_none() && scope.sybase) {
        parts.push("not null".into());
    }
    for one in &column.constraints {
        parts.push(match &one.kind {
            ConstraintKind::Default { value, .. } => {
                format!("default ({})", named_default(constant(value, of, scope)?, one))
            }
            _ => constraint(one, std::slice::from_ref(&column.name), scope)?,
        });
    }
    Ok(parts.join(" "))
}

/// Whether the collation is the database's own: comparison by code points.
fn is_the_databases(collation: &Name) -> bool {
    collations::named(&collation.text) == Some(Collation::Binary)
}

/// The PostgreSQL type of a column of this T-SQL type: domains distinguish types that PostgreSQL has as one.
pub fn column_type(of: Type, line: u32) -> Result<String, Error> {
    if of.oid == DATETIME2.oid && matches!(of.fraction, Some(1 | 4)) {
        // digits that mark datetime and smalldatetime
        let what = format!("a column of {}({})", of.name, of.fraction.unwrap_or(0));
        return Err(Error::refused(&what, "take datetime2 without digits", line));
    }
    if of.name == "datetimeoffset" && of.fraction.is_some_and(|digits| digits < 6) {
        let what = format!("a column of datetimeoffset({})", of.fraction.unwrap_or(0));
        return Err(Error::refused(
            &what,
            "PostgreSQL rounds nothing on its way into one: take datetimeoffset",
            line,
        ));
    }
    if let Some((domain, _)) = of.domain_from_zero() {
        return Ok(format!("tsql.{domain}"));
    }
    Ok(match of.name {
        "tinyint" | "money" | "smallmoney" | "datetime" | "smalldatetime" => format!("tsql.{}", of.name),
        _ => of.sql(),
    })
}

fn identity_sql(name: &str, identity: Identity, of: Type, line: u32) -> Result<String, Error> {
    let digits = of.digits().filter(|(_, scale)| *scale == 0 && of != BIT);
    let Some((digits, _)) = digits else {
        let text = format!(
            "Identity column '{name}' must be of data type int, bigint, smallint, tinyint, or decimal or numeric \
             with a scale of 0."
        );
        return Err(Error::new(2749, text, line).with_severity(16));
    };
    let is_decimal = of.name == "decimal";
    if is_decimal && digits > WIDEST_IDENTITY {
        let what = format!("decimal({digits}, 0) identity");
        return Err(Error::refused(&what, "it has at most 18 digits", line));
    }
    let Identity { seed, increment } = identity;
    let (low, high) = match of.name {
        "tinyint" => (0, 255),
        "smallint" => (i64::from(i16::MIN), i64::from(i16::MAX)),
        "int" => (i64::from(i32::MIN), i64::from(i32::MAX)),
        "bigint" => (i64::MIN, i64::MAX),
        _ => (1 - 10_i64.pow(u32::from(digits)), 10_i64.pow(u32::from(digits)) - 1),
    };
    if increment == 0 || !(low..=high).contains(&seed) {
        let text = format!("Identity column '{name}' has an invalid seed or increment.");
        return Err(Error::new(2750, text, line).with_severity(16));
    }
    let kind = if is_decimal { "bigint".to_owned() } else { of.sql() };
    // PostgreSQL's own: from 1 to the greatest of its type
    let is_usual = seed > 0 && increment > 0 && ["smallint", "int", "bigint"].contains(&of.name);
    let bounds = if is_usual { String::new() } else { format!(" minvalue {low} maxvalue {high}") };
    Ok(format!("{kind} generated always as identity (start with {seed} increment by {increment}{bounds})"))
}

/// `name as value`: its type is the value's, which follows from the types of the table's columns.
fn computed(
    name: &str,
    value: &Expression,
    types: &HashMap<String, Type>,
    scope: &Scope,
) -> Result<String, Error> {
    let line = value.at().line;
    let mut none = NoVariables(NO_VARIABLES);
    let scope = Scope { definition: true, stored: true, ..scope.clone() };
    let mut translation = Translation::new(&scope, &mut none);
    translation.column_types.clone_from(types);
    let value = translation.value(value)?;
    let Some(of) = value.of else {
        let what = format!("{name} as …");
        return Err(Error::refused(&what, "its type is not known: convert the value to one", line));
    };
    Ok(format!("{} generated always as ({}) stored", column_type(of, line)?, value.sql))
}

/// What a default may ask the session for.
struct OfDefault;

impl Variables for OfDefault {
    fn write(&mut self, name: &str, line: u32) -> Result<String, Error> {
        match name {
            "@@suser_name" | "@@user_name" => Ok(String::from("tsql.caller()")),
            _ => NoVariables(NO_VARIABLES).write(name, line),
        }
    }
}

fn constant(value: &Expression, of: Type, scope: &Scope) -> Result<String, Error> {
    let scope = Scope { definition: true, ..scope.clone() };
    let value = super::value(value, &scope, &mut OfDefault, Some(of))?;
    Ok(value.sql)
}

/// PostgreSQL has no names of defaults: it stands beside the value.
fn named_default(value: String, constraint: &Constraint) -> String {
    match &constraint.name {
        // null by itself has no type
        Some(name) if value != "null" => {
            format!("tsql.named_default({value}, {})", names::literal(&name.text))
        }
        _ => value,
    }
}

/// A default whose column's type PostgreSQL knows.
fn carried_constant(value: &Expression, scope: &Scope) -> Result<String, Error> {
    let scope = Scope { definition: true, ..scope.clone() };
    let value = Translation::new(&scope, &mut OfDefault).value(value)?;
    Ok(carried(&value, scope.sybase))
}

/// A constraint; `own` is the column it stands behind.
fn constraint(constraint: &Constraint, own: &[Name], scope: &Scope) -> Result<String, Error> {
    let name = match &constraint.name {
        Some(name) => format!("constraint {} ", names::name(name)?),
        None => String::new(),
    };
    let keys = |columns: &[Name]| match columns {
        [] if own.len() == 1 => Ok(String::new()),
        columns => in_parentheses(columns),
    };
    let rule = match &constraint.kind {
        ConstraintKind::PrimaryKey { columns } => format!("primary key{}", keys(columns)?),
        // T-SQL's takes one null
        ConstraintKind::Unique { columns } => format!("unique nulls not distinct{}", keys(columns)?),
        ConstraintKind::Check(condition) => {
            let scope = Scope { definition: true, ..scope.clone() };
            format!("check ({})", super::condition(condition, &scope, &mut NoVariables(NO_VARIABLES))?)
        }
        ConstraintKind::ForeignKey { columns, references } => {
            let columns = keys(columns)?;
            let foreign = if columns.is_empty() { String::new() } else { format!("foreign key{columns} ") };
            format!("{foreign}{}", referenced(references)?)
        }
        ConstraintKind::Default { .. } => {
            return Err(Error::syntax("default", constraint.at));
        }
    };
    Ok(format!("{name}{rule}"))
}

fn referenced(references: &References) -> Result<String, Error> {
    let action = |action: KeyAction| match action {
        KeyAction::NoAction => "no action",
        KeyAction::Cascade => "cascade",
        KeyAction::SetNull => "set null",
        KeyAction::SetDefault => "set default",
    };
    let mut sql = format!("references {}{}", table(&references.table)?, in_parentheses(&references.columns)?);
    if references.on_delete != KeyAction::NoAction {
        sql.push_str(&format!(" on delete {}", action(references.on_delete)));
    }
    if references.on_update != KeyAction::NoAction {
        sql.push_str(&format!(" on update {}", action(references.on_update)));
    }
    Ok(sql)
}

pub fn alter(name: &ObjectName, action: &AlterTable, scope: &Scope) -> Result<String, Error> {
    let actions = match action {
        AlterTable::Add { elements: added, check_existing } => {
            added_elements(added, &name.name, *check_existing, scope)?
        }
        AlterTable::Drop(dropped) => {
            dropped.iter().map(|one| self::dropped(one, scope)).collect::<Result<_, _>>()?
        }
        AlterTable::AlterColumn { column, type_, collation, nullable } => {
            if let Some(collation) = collation.as_ref().filter(|name| !is_the_databases(name)) {
                let why = "texts are compared as the database has it";
                return Err(Error::refused("collate", why, collation.at));
            }
            let of = types::of_name(type_, DEFAULT_LENGTH, scope.sybase)?;
            altered_column(column, of, *nullable, scope)?
        }
        AlterTable::ReplaceDefault { column, value } => {
            vec![format!(
                "alter column {} set default {}",
                names::name(column)?,
                carried_constant(value, scope)?
            )]
        }
        AlterTable::Check { enabled: true, constraints } if !constraints.is_empty() => constraints
            .iter()
            .map(|constraint| Ok(format!("validate constraint {}", names::name(constraint)?)))
            .collect::<Result<_, Error>>()?,
        AlterTable::Check { enabled, .. } => {
            let what = if *enabled { "check constraint all" } else { "nocheck constraint" };
            return Err(Error::refused(what, "a constraint holds or is dropped", name.at));
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
    let mut further = checked(action, scope)?;
    match action {
        AlterTable::Add { elements, .. } => {
            shown.constraints = shown_constraints(elements);
            further.extend(stripped(typed(elements), scope)?);
            for element in elements {
                if let TableElement::Column(column) = element {
                    declared.push(declaration(column)?);
                }
            }
            declared.retain(Declaration::says_more);
        }
        // in place of what was said of it before; its name keeps its case
        AlterTable::AlterColumn { column, type_, nullable, .. } => {
            further.extend(stripped([(column, type_, *nullable)], scope)?);
            declared.push(Declaration {
                column: folded(&column.text, column.at.line)?,
                shown: String::new(),
                type_: types::declared_type(type_, DEFAULT_LENGTH),
            });
        }
        _ => {}
    }
    let table = table(name)?;
    let sql = format!("alter table {table} {}", actions.join(", "));
    Ok(with_declarations("alter_table", sql, &table, &declared, &shown, further))
}

/// The arguments that say which columns and constraints an alteration needs or ends.
fn checked(action: &AlterTable, scope: &Scope) -> Result<Vec<String>, Error> {
    let mut arguments = Vec::new();
    let mut put = |name: &str, value: String| arguments.push(format!("{name} => {value}"));
    let literals = |of: &[&Name]| -> Result<String, Error> {
        let folded: Vec<String> =
            of.iter().map(|name| folded(&name.text, name.at.line)).collect::<Result<_, _>>()?;
        Ok(names::array(folded.iter().map(|name| names::literal(name)), "text"))
    };
    match action {
        AlterTable::AlterColumn { column, .. } => {
            put("altered", names::literal(&folded(&column.text, column.at.line)?));
        }
        AlterTable::Drop(dropped) => {
            let (mut columns, mut constraints) = (Vec::new(), Vec::new());
            for one in dropped {
                match one {
                    Dropped::Column { name, .. } => columns.push(name),
                    Dropped::Bare(name) if scope.sybase => columns.push(name),
                    Dropped::Constraint { name, .. } | Dropped::Bare(name) => constraints.push(name),
                }
            }
            if !columns.is_empty() {
                put("dropped", literals(&columns)?);
            }
            if scope.sybase {
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

/// Whether the rows that are there have NULL in an added column and not its default ("ALTER TABLE", WITH VALUES).
fn keeps_null(column: &ColumnDefinition, scope: &Scope) -> bool {
    let is_key = |one: &Constraint| matches!(one.kind, ConstraintKind::PrimaryKey { .. });
    !column.with_values && column.nullable.unwrap_or(!scope.sybase) && !column.constraints.iter().any(is_key)
}

fn dropped(dropped: &Dropped, scope: &Scope) -> Result<String, Error> {
    let (kind, name, if_exists) = match dropped {
        Dropped::Column { name, if_exists } => ("column", name, *if_exists),
        Dropped::Constraint { name, if_exists } => ("constraint", name, *if_exists),
        Dropped::Bare(name) => (if scope.sybase { "column" } else { "constraint" }, name, false),
    };
    Ok(format!("drop {kind} {}{}", if if_exists { "if exists " } else { "" }, names::name(name)?))
}

/// A column of another type. Values that do not fit are an error.
fn altered_column(
    column: &Name,
    of: Type,
    nullable: Option<bool>,
    scope: &Scope,
) -> Result<Vec<String>, Error> {
    let line = column.at.line;
    let name = names::name(column)?;
    let any_length = Type { length: if of.is_text() { None } else { of.length }, ..of };
    let value = converted(super::Value::unknown(name.as_str()), any_length, line, scope.sybase)?.sql;
    let type_ = column_type(stored(of, nullable, scope), line)?;
    let mut actions = vec![format!("alter column {name} type {type_} using {value}")];
    // what says neither takes nulls in SQL Server and stays as it is in ASE
    match nullable {
        Some(false) => actions.push(format!("alter column {name} set not null")),
        None if scope.sybase => {}
        _ => actions.push(format!("alter column {name} drop not null")),
    }
    Ok(actions)
}
