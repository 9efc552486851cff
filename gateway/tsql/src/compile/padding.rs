//! Columns for which SET ANSI_PADDING determines whether trailing blanks and zeros are stored.

use crate::facts::type_names;
use crate::tree::{
    AlterTable, ColumnDefinition, ColumnKind, StatementKind, TableElement, TypeArgument, TypeName,
};

/// The first new column whose values `set ansi_padding off` would cut (SQL Server: "SET ANSI_PADDING"): varchar(n) and
/// varbinary(n), and nullable char(n) and binary(n).
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
    match type_names::declared_base(of) {
        Some(("varchar" | "varbinary", _)) => !matches!(of.arguments[..], [TypeArgument::Max]),
        Some(("char" | "binary", _)) => nullable != Some(false),
        _ => false,
    }
}
