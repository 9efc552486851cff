//! `for xml path ('')` of columns without names: the texts of all rows concatenated (SQL Server: "Use PATH mode with
//! FOR XML", "Columns without a name"; "FOR XML", on characters that XML escapes).

use super::item::{Stands, Written};
use super::translation::Translation;
use super::value::Value;
use crate::error::Error;
use crate::facts::types::{nvarchar, varchar};
use crate::tree::{Xml, XmlForm};

/// The name of a text column, which is treated as unnamed.
const TEXT: &str = "text()";

impl Translation<'_> {
    pub fn xml(&mut self, xml: &Xml) -> Result<Value, Error> {
        let line = xml.query.at.line;
        if !self.dialect().has_for_xml {
            return Err(Error::refused("for xml", "a result is rows and columns", line));
        }
        let aggregates = self.around.aggregates;
        let Written { sql, items } = self.query(&xml.query, Stands::Inside)?;
        self.around.aggregates = aggregates;
        if let Some(named) = items.iter().find(|item| !matches!(item.name.as_deref(), Some("" | TEXT))) {
            let what = format!("for xml path ('') of column {}", named.name.as_deref().unwrap_or("*"));
            return Err(Error::refused(
                &what,
                "only of columns without names: a name becomes an element",
                line,
            ));
        }
        let columns: Vec<_> = (1..=items.len()).map(|place| format!("c{place}")).collect();
        let text = |column: &String| match xml.form {
            XmlForm::Written => format!("tsql.xml_written(tsql.xml_text({column}))"),
            XmlForm::Value { .. } => format!("tsql.xml_text({column})"),
        };
        let row = match columns.iter().map(text).collect::<Vec<_>>().as_slice() {
            [one] => one.clone(),
            several => {
                let all = several.join(", ");
                format!("case when coalesce({all}) is not null then concat({all}) end")
            }
        };
        let (of, of_text) = match xml.form {
            XmlForm::Value { national: false, of_text } => (varchar(None), of_text),
            XmlForm::Value { of_text, .. } => (nvarchar(None), of_text),
            XmlForm::Written => (nvarchar(None), false),
        };
        let names = columns.join(", ");
        let joined = format!("tsql.xml_joined(string_agg({row}, ''), count(*))");
        let joined = if of_text { format!("nullif({joined}, '')") } else { joined };
        Ok(Value::new(format!("(select {joined} from ({sql}) as \"@@xml\" ({names}))"), of))
    }
}
