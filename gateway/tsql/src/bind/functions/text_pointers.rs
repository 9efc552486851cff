//! Functions of the pointers of texts and images: textptr and textvalid.

use super::calls::CallBinder;
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::query::sources;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::{Type, INT, VARBINARY};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{folded, quoted};
use crate::tree::{ColumnName, Expression};

/// `textptr(column)`: in the table of FROM that has the column.
fn pointer(binder: &mut Binder<'_>, column: &ColumnName) -> Result<Scalar, Error> {
    let line = column.at.line;
    let filled = expressions::column_sql(binder, column)?.is_null(false);
    let own = Scalar::Text(folded(&column.column, line)?);
    let of_row = |row: &str| {
        let [table, location, writer] = ["tableoid", "ctid", "xmin"]
            .map(|system| Scalar::Column(Some(row.to_owned()), system.to_owned()));
        call("tsql.textptr", [table, own.clone(), location, writer, filled.clone()])
    };
    if let Some(table) = &column.table {
        return Ok(of_row(&sources::qualifier(binder, table)?));
    }
    let named = binder.names.sources.last().into_iter().flatten();
    let rows: Vec<_> =
        named.filter(|one| one.table.is_some()).map(|one| of_row(&quoted(&one.name))).collect();
    match rows.as_slice() {
        [] => {
            let text = "Only base table columns are allowed in the TEXTPTR function.";
            Err(Error::new(280, text, line).with_severity(16))
        }
        [row] => Ok(row.clone()),
        rows => Ok(call("coalesce", rows)),
    }
}

pub fn text_pointer(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let Expression::Column(column) = called.arguments[0].without_collation() else {
        return Err(called.fail(280, "Only base table columns are allowed in the TEXTPTR function."));
    };
    called.value(0)?;
    Ok(Value::new(pointer(called.binder, column)?, Type { length: Some(16), ..VARBINARY }))
}

pub fn text_valid(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let (column, pointer) = (called.text(0)?, called.of_type(1, VARBINARY)?);
    Ok(Value::new(call("tsql.textvalid", [column, pointer]), INT))
}
