//! `for xml path ('')` of columns without names: the texts of all rows concatenated (SQL Server: "Use PATH mode with
//! FOR XML", "Columns without a name"; "FOR XML", on characters that XML escapes).

use crate::bind::binder::item::{Stands, Written};
use crate::bind::binder::Binder;
use crate::bind::query::select;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::{nvarchar, varchar};
use crate::postgres::{call, Listed, Query, Scalar};
use crate::tree::{Xml, XmlForm};

/// The name of a text column, which is treated as unnamed.
const TEXT: &str = "text()";

pub fn xml(binder: &mut Binder<'_>, xml: &Xml) -> Result<Value, Error> {
    let line = xml.query.at.line;
    if !binder.dialect().has_for_xml {
        return Err(Error::refused("for xml", "a result is rows and columns", line));
    }
    let aggregates = binder.around.aggregates;
    let Written { sql, items } = select::query(binder, &xml.query, Stands::Inside)?;
    binder.around.aggregates = aggregates;
    if let Some(named) = items.iter().find(|item| !matches!(item.name.as_deref(), Some("" | TEXT))) {
        let what = format!("for xml path ('') of column {}", named.name.as_deref().unwrap_or("*"));
        return Err(Error::refused(&what, "only of columns without names: a name becomes an element", line));
    }
    let columns: Vec<_> = (1..=items.len()).map(|index| format!("c{index}")).collect();
    let text = |column: &String| {
        let text = call("tsql.xml_text", [Scalar::column(column)]);
        match xml.form {
            XmlForm::Written => call("tsql.xml_written", [text]),
            XmlForm::Value { .. } => text,
        }
    };
    let texts: Vec<Scalar> = columns.iter().map(text).collect();
    let row = match texts.as_slice() {
        [one] => one.clone(),
        several => {
            let is_filled = call("coalesce", several).is_null(false);
            Scalar::Case(vec![(is_filled, call("concat", several))], None)
        }
    };
    let (of, of_text) = match xml.form {
        XmlForm::Value { national: false, of_text } => (varchar(None), of_text),
        XmlForm::Value { of_text, .. } => (nvarchar(None), of_text),
        XmlForm::Written => (nvarchar(None), false),
    };
    let rows = call("string_agg", [row, Scalar::text("")]);
    let joined = call("tsql.xml_joined", [rows, call("count", [Scalar::Star])]);
    let joined = if of_text { call("nullif", [joined, Scalar::text("")]) } else { joined };
    let query = Query::of([Listed::from(joined)], sql.named("\"@@xml\"", columns));
    Ok(Value::new(Scalar::Query(Box::new(query)), of))
}
