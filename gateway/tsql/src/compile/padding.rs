//! Columns of which SET ANSI_PADDING decides how they keep blanks and zeros at the end of their values.

use crate::facts::types;
use crate::tree::{
    AlterTable, ColumnDefinition, ColumnKind, StatementKind, TableElement, TypeArgument, TypeName,
};

/// The first column that a definition makes so that `set ansi_padding off` would cut its values (SQL Server: "SET
/// ANSI_PADDING"): varchar(n) and varbinary(n), and those char(n) and binary(n) that take nulls.
pub fn padded(statement: &StatementKind) -> Option<String> {
    let elements = match statement {
        StatementKind::CreateTable(create) => &create.elements,
        StatementKind::AlterTable { action, .. } => match action.as_ref() {
            AlterTable::Add { elements, .. } => elements,
            AlterTable::AlterColumn { column, type_, nullable, .. } => {
                return is_cut(type_, *nullable).then(|| column.text.clone());
            }
            _ => return None,
        },
        _ => return None,
    };
    elements.iter().find_map(|element| match element {
        TableElement::Column(ColumnDefinition { name, kind: ColumnKind::Typed(of), nullable, .. })
            if is_cut(of, *nullable) =>
        {
            Some(name.text.clone())
        }
        _ => None,
    })
}

fn is_cut(of: &TypeName, nullable: Option<bool>) -> bool {
    match types::declared_base(of) {
        Some(("varchar" | "varbinary", _)) => !matches!(of.arguments[..], [TypeArgument::Max]),
        Some(("char" | "binary", _)) => nullable != Some(false),
        _ => false,
    }
}
