//! Trailing blanks and zero bytes of a column's values, which ASE does not store.

use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::{Type, BINARY, CHAR, VARBINARY, VARCHAR};
use crate::postgres::Scalar;
use crate::resolve::names::{folded, in_quotes};
use crate::resolve::Scope;
use crate::tree::{ColumnDefinition, ColumnKind, Name, TableElement, TypeName};

/// The length of a column declared without one.
pub const DEFAULT_LENGTH: u32 = 1;

/// The argument that names the columns whose values lose trailing blanks or zeros: "Data in variable-length columns is
/// stripped of trailing blanks" (ASE Reference Manual: Building Blocks, "Length and storage size"), "Trailing zeros are
/// truncated in all varbinary data and in binary null columns" ("Treatment of trailing zeros").
pub fn stripped<'t>(
    columns: impl IntoIterator<Item = (&'t Name, &'t TypeName, Option<bool>)>,
    scope: &Scope,
) -> Result<Option<Scalar>, Error> {
    let mut found = Vec::new();
    for (name, of, nullable) in columns {
        let of = stored(type_names::of_name(of, DEFAULT_LENGTH, scope.dialect)?, nullable, scope);
        if (of.oid == VARCHAR.oid || of.name == VARBINARY.name) && of.length.is_some() {
            found.push(folded(&name.text, name.at.line)?);
        }
    }
    let is_needed = scope.dialect.nullable_columns_vary && !found.is_empty();
    Ok(is_needed.then(|| Scalar::texts(found).named("stripped")))
}

/// The columns with the types that a definition gives them.
pub fn typed(elements: &[TableElement]) -> impl Iterator<Item = (&Name, &TypeName, Option<bool>)> {
    elements.iter().filter_map(|element| match element {
        TableElement::Column(ColumnDefinition { name, kind: ColumnKind::Typed(of), nullable, .. }) => {
            Some((name, of, *nullable))
        }
        _ => None,
    })
}

/// The type of a column's values.
pub fn stored(of: Type, nullable: Option<bool>, scope: &Scope) -> Type {
    match scope.dialect.nullable_columns_vary && nullable == Some(true) {
        true if of.oid == CHAR.oid => Type { oid: VARCHAR.oid, ..of },
        // a timestamp keeps all its eight bytes
        true if of.name == BINARY.name && !of.twin => Type { name: VARBINARY.name, ..of },
        _ => of,
    }
}

/// The declaration of such a column.
pub fn declared(of: &TypeName, nullable: Option<bool>, scope: &Scope) -> String {
    let declared = type_names::declared_type(of, DEFAULT_LENGTH);
    let varies = scope.dialect.nullable_columns_vary && nullable == Some(true) && of.name == BINARY.name;
    let declared = if varies { format!("var{declared}") } else { declared };
    match &of.alias {
        Some(alias) => format!("{declared} as {}", in_quotes(alias)).trim_start().to_owned(),
        None => declared,
    }
}
