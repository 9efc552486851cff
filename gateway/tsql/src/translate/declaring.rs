//! The parts of definitions that PostgreSQL does not store: the case of names, the types of columns.

use super::blanks::{declared, DEFAULT_LENGTH};
use super::constraints::constraints;
use crate::error::Error;
use crate::facts::types::{self, Type};
use crate::resolve::names::{self, folded, stored};
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
        let both = shown.constraints.iter().flat_map(|name| [stored(name), (*name).to_owned()]);
        arguments.push(names::array(both.map(|name| names::literal(&name)), "text"));
    }
    arguments.extend(further);
    format!("call tsql.{procedure}({})", arguments.join(", "))
}

/// The arguments of a procedure that runs a definition and stores the declarations.
fn declaring(sql: String, table: &str, declared: &[Declaration]) -> String {
    let listed = |of: &dyn Fn(&Declaration) -> String| {
        names::array(declared.iter().map(|one| names::literal(&of(one))), "text")
    };
    let columns = listed(&|one| one.column.clone());
    let types = listed(&|one| match one.shown.as_str() {
        "" => one.type_.clone(),
        shown => format!("{} {}", names::in_quotes(shown), one.type_).trim_end().to_owned(),
    });
    let (sql, table) = (names::literal(&sql), names::literal(table));
    format!("{sql}, {table}, {columns}, {types}")
}

/// The argument that names the columns declared with seven decimals of a second, of which PostgreSQL stores six.
pub fn finest<'t>(
    columns: impl IntoIterator<Item = (&'t Name, &'t TypeName, Option<bool>)>,
    table: &ObjectName,
    scope: &Scope,
) -> Result<Option<String>, Error> {
    let mut found = Vec::new();
    for (name, of, _) in columns {
        let of = types::of_name(of, DEFAULT_LENGTH, scope.dialect)?;
        let is_fine = matches!(of.name, "datetime2" | "time" | "datetimeoffset") && of.fraction.is_none();
        if is_fine && scope.dialect.shows_declared_digits && !table.is_temporary() {
            found.push(name.text.as_str());
        }
    }
    Ok((!found.is_empty()).then(|| format!("finest => {}", names::literal(&found.join(", ")))))
}

/// The arguments for a view whose columns are displayed in the given case, with their known types; "" for one that is
/// displayed like the table's.
pub fn declaring_view(
    sql: String,
    view: &str,
    given: &[(String, Option<Type>)],
    line: u32,
) -> Result<String, Error> {
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
    Ok(declaring(sql, view, &declared))
}
