//! The parts of definitions that PostgreSQL does not store: the case of names, the types of columns.

use super::blanks::{declared, DEFAULT_LENGTH};
use super::constraints::constraints;
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::Type;
use crate::plpgsql::Definition;
use crate::postgres::{call, Scalar};
use crate::resolve::names::{folded, in_quotes, stored};
use crate::resolve::Scope;
use crate::tree::{ColumnDefinition, ColumnKind, ConstraintKind, Name, ObjectName, TableElement, TypeName};

/// Names as displayed; PostgreSQL stores them in lower case.
#[derive(Default)]
pub struct Shown<'a> {
    pub table: Option<&'a str>,
    pub constraints: Vec<&'a str>,
}

/// Whether PostgreSQL stores the name differently from its spelling.
pub fn is_stored_otherwise(name: &str) -> bool {
    stored(name) != name
}

/// The names of a table's and its columns' constraints that PostgreSQL stores in lower case; there defaults are not
/// constraints.
pub fn shown_constraints(elements: &[TableElement]) -> Vec<&str> {
    let kept =
        constraints(elements).filter(|constraint| !matches!(constraint.kind, ConstraintKind::Default { .. }));
    let names = kept.filter_map(|constraint| Some(constraint.name.as_ref()?.text.as_str()));
    names.filter(|name| is_stored_otherwise(name)).collect()
}

/// The part of a column's T-SQL declaration that PostgreSQL does not keep.
pub struct Declaration {
    /// The name in PostgreSQL.
    pub column: String,
    /// The name as written.
    pub shown: String,
    /// The declared type; "" if it follows from PostgreSQL's.
    pub type_: String,
}

impl Declaration {
    pub fn says_more(&self) -> bool {
        !self.type_.is_empty() || self.shown != self.column
    }
}

pub fn declaration(column: &ColumnDefinition, scope: &Scope) -> Result<Declaration, Error> {
    let shown = column.name.text.clone();
    let folded = folded(&shown, column.name.at.line)?;
    let type_ = match &column.kind {
        ColumnKind::Typed(type_) => declared(type_, column.nullable, scope),
        _ => String::new(),
    };
    Ok(Declaration { column: folded, shown, type_ })
}

/// The definition and, in the same statement, the declarations: as comments on the columns, which follow the columns.
/// `further`: other arguments of the procedure, by name.
pub fn with_declarations(
    procedure: &'static str,
    definition: &Definition,
    table: &str,
    declared: &[Declaration],
    shown: &Shown,
    further: Vec<Scalar>,
) -> Definition {
    let mut arguments = declaring(definition, table, declared).to_vec();
    if shown.table.is_some() || !shown.constraints.is_empty() {
        arguments.push(shown.table.map_or(Scalar::Null, Scalar::text));
        let both = shown.constraints.iter().flat_map(|name| [stored(name), (*name).to_owned()]);
        arguments.push(Scalar::texts(both));
    }
    arguments.extend(further);
    Definition::Call(call(procedure, arguments))
}

/// The arguments of a procedure that runs a definition and stores the declarations.
fn declaring(definition: &Definition, table: &str, declared: &[Declaration]) -> [Scalar; 4] {
    let columns = Scalar::texts(declared.iter().map(|one| one.column.as_str()));
    let types = Scalar::texts(declared.iter().map(|one| match one.shown.as_str() {
        "" => one.type_.clone(),
        shown => format!("{} {}", in_quotes(shown), one.type_).trim_end().to_owned(),
    }));
    [Scalar::text(definition.to_string()), Scalar::text(table), columns, types]
}

/// The argument that names the columns declared with seven decimals of a second, of which PostgreSQL stores six.
pub fn finest<'t>(
    columns: impl IntoIterator<Item = (&'t Name, &'t TypeName, Option<bool>)>,
    table: &ObjectName,
    scope: &Scope,
) -> Result<Option<Scalar>, Error> {
    let mut found = Vec::new();
    for (name, of, _) in columns {
        let of = type_names::of_name(of, DEFAULT_LENGTH, scope.dialect)?;
        let is_fine = matches!(of.name, "datetime2" | "time" | "datetimeoffset") && of.fraction.is_none();
        if is_fine && scope.dialect.shows_declared_digits && !table.is_temporary() {
            found.push(name.text.as_str());
        }
    }
    Ok((!found.is_empty()).then(|| Scalar::text(found.join(", ")).named("finest")))
}

/// The arguments for a view whose columns are displayed in the given case, with their known types; "" for one that is
/// displayed like the table's.
pub fn declaring_view(
    definition: &Definition,
    view: &str,
    given: &[(String, Option<Type>)],
    line: u32,
) -> Result<[Scalar; 4], Error> {
    let mut declared = Vec::new();
    for (shown, of) in given.iter().filter(|(shown, _)| !shown.is_empty()) {
        // PostgreSQL stores no digits of these
        let fine = of.filter(|of| matches!(of.name, "datetime2" | "time"));
        declared.push(Declaration {
            column: folded(shown, line)?,
            shown: shown.clone(),
            type_: fine.map(|of| of.declared()).unwrap_or_default(),
        });
    }
    declared.retain(Declaration::says_more);
    Ok(declaring(definition, view, &declared))
}
