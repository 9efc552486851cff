//! The columns of a result set: how PostgreSQL sends them, and how they go to the client.

use crate::client::{Reply, TextSize};
use crate::convert::{from_pg, told_type, PgType, Zone};
use crate::postgres::message::PgColumn;
use crate::program::Title;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::types::{encode_value, ConvertError, TypeInfo, Value};
use bytes::BytesMut;

/// One result column: how PostgreSQL sends it and how the client gets it.
pub struct SentAs {
    pg_type: PgType,
    type_info: TypeInfo,
    /// Of any length, which `set textsize` limits.
    is_long: bool,
}

impl SentAs {
    /// Appends a value of a row, None for NULL.
    pub fn put(
        &self,
        raw: Option<&[u8]>,
        zone: &Zone,
        limit: TextSize,
        dialect: &Dialect,
        out: &mut BytesMut,
    ) -> Result<(), ConvertError> {
        let Some(raw) = raw else { return encode_value(&Value::Null, &self.type_info, dialect, out) };
        let value = from_pg(self.pg_type, raw, zone)?;
        let value = if self.is_long { limit.cut(value) } else { value };
        encode_value(&value, &self.type_info, dialect, out)
    }
}

/// Describes a result set that will have these columns.
pub fn put_description(columns: &[PgColumn], names: Option<&[Title]>, reply: &mut Reply) {
    put_columns(columns, names, reply);
}

/// Puts the description of a result set of these columns.
pub fn put_columns(pg_columns: &[PgColumn], names: Option<&[Title]>, reply: &mut Reply) -> Vec<SentAs> {
    let dialect = reply.dialect;
    let mut sent_as = Vec::with_capacity(pg_columns.len());
    let mut columns = Vec::with_capacity(pg_columns.len());
    for (index, column) in pg_columns.iter().enumerate() {
        let mut pg_type = PgType::from_oid(column.oid);
        let mut typmod = column.typmod;
        if pg_type.wants_text() {
            (pg_type, typmod) = (PgType::Text, -1);
        }
        let type_info = told_type(pg_type, typmod, column.declared.of, &dialect);
        // a derived table's column has its own name, and the table behind it another
        let shown = column.declared.shown.as_ref().filter(|shown| shown.to_lowercase() == column.name);
        let name = match (names.and_then(|names| names.get(index)), shown) {
            (Some(Title::Given(name)), _) | (Some(Title::Own(name)), None) => name.clone(),
            (_, Some(shown)) => shown.to_string(),
            // what PostgreSQL calls a column without a name has none in T-SQL
            (None, None) if column.name == "?column?" => String::new(),
            (None, None) => column.name.clone(),
        };
        columns.push(Column { name, type_info, traits: column.declared.traits });
        let is_long = matches!(pg_type, PgType::Text | PgType::Bytea | PgType::Array(_));
        sent_as.push(SentAs { pg_type, type_info, is_long });
    }
    columns::put(&mut reply.tokens, &columns, &dialect);
    reply.rows_open = true;
    sent_as
}

/// How PostgreSQL is to send these columns, 0 for text and 1 for binary.
pub fn formats(columns: &[PgColumn]) -> Vec<i16> {
    columns.iter().map(|column| i16::from(!PgType::from_oid(column.oid).wants_text())).collect()
}
