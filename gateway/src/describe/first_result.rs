//! sp_describe_first_result_set: the columns of a text's first result, without running the text.

use crate::backend::described_as;
use crate::calls::{Procedures, Returned};
use crate::client::Client;
use crate::convert::{PgType, SqlType};
use crate::program::{sql_type, Action, Declaration, Query, Statement};
use crate::run::written_and_described;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::tokens::columns::Column;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{TypeInfo, TypeToken, Value, MAX};

/// Columns of the answer, in its order (SQL Server, "sp_describe_first_result_set").
const ANSWER: [(&str, PgType); 39] = [
    ("is_hidden", PgType::Bool),
    ("column_ordinal", PgType::Int4),
    ("name", PgType::Varchar),
    ("is_nullable", PgType::Bool),
    ("system_type_id", PgType::Int4),
    ("system_type_name", PgType::Varchar),
    ("max_length", PgType::Int2),
    ("precision", PgType::Int2),
    ("scale", PgType::Int2),
    ("collation_name", PgType::Varchar),
    ("user_type_id", PgType::Int4),
    ("user_type_database", PgType::Varchar),
    ("user_type_schema", PgType::Varchar),
    ("user_type_name", PgType::Varchar),
    ("assembly_qualified_type_name", PgType::Varchar),
    ("xml_collection_id", PgType::Int4),
    ("xml_collection_database", PgType::Varchar),
    ("xml_collection_schema", PgType::Varchar),
    ("xml_collection_name", PgType::Varchar),
    ("is_xml_document", PgType::Bool),
    ("is_case_sensitive", PgType::Bool),
    ("is_fixed_length_clr_type", PgType::Bool),
    ("source_server", PgType::Varchar),
    ("source_database", PgType::Varchar),
    ("source_schema", PgType::Varchar),
    ("source_table", PgType::Varchar),
    ("source_column", PgType::Varchar),
    ("is_identity_column", PgType::Bool),
    ("is_part_of_unique_key", PgType::Bool),
    ("is_updateable", PgType::Bool),
    ("is_computed_column", PgType::Bool),
    ("is_sparse_column_set", PgType::Bool),
    ("ordinal_in_order_by_list", PgType::Int2),
    ("order_by_list_length", PgType::Int2),
    ("order_by_is_descending", PgType::Int2),
    ("tds_type_id", PgType::Int4),
    ("tds_length", PgType::Int4),
    ("tds_collation_id", PgType::Int4),
    ("tds_collation_sort_id", PgType::Int2),
];
pub const NAME: i32 = 4 + 128;
pub const LONG_NAME: i32 = 4 + 256;

pub async fn describe_first(
    procedures: &mut Procedures,
    client: &mut Client,
    statements: &[Statement],
    declarations: &[Declaration],
) -> Result<Returned, ServerMessage> {
    let columns = first_columns(procedures, client, statements, declarations).await?;
    let answer = ANSWER.map(|(name, pg_type)| {
        let typmod = match (name, pg_type) {
            ("system_type_name", _) => LONG_NAME,
            (_, PgType::Varchar) => NAME,
            _ => -1,
        };
        (name.to_owned(), pg_type, typmod)
    });
    let rows: Vec<_> = columns.iter().zip(1..).map(|(column, ordinal)| row(column, ordinal)).collect();
    client.reply.result_set(&answer, &rows)?;
    Ok(Returned::rows(Some(rows.len() as u64)))
}

/// The columns of the first result at 7.4.
pub async fn first_columns(
    procedures: &mut Procedures,
    client: &mut Client,
    statements: &[Statement],
    declarations: &[Declaration],
) -> Result<Vec<Column>, ServerMessage> {
    let Some(query) = first(statements)? else { return Ok(Vec::new()) };
    let type_of = |name: &String| type_in(declarations, name);
    let (written, described) = written_and_described(procedures, client, query, type_of).await?;
    let described = described.map_err(|error| error.to_message())?;
    let titles = written.as_deref().unwrap_or(query).columns.as_deref();
    Ok(described_as(&described.columns, titles, &Dialect::new(Version::Tds74)))
}

/// The type of a variable; text if it is not declared.
pub fn type_in(declarations: &[Declaration], name: &str) -> SqlType {
    let declared = declarations.iter().find(|declaration| declaration.name == name);
    declared.map_or(SqlType::TEXT, sql_type)
}

/// The first statement that returns rows.
fn first(statements: &[Statement]) -> Result<Option<&Query>, ServerMessage> {
    for statement in statements {
        match &statement.action {
            Action::Query(query) if query.only_reads() && query.assigns.is_empty() => return Ok(Some(query)),
            Action::Query(query) if query.columns.is_none() || query.makes_a_table() => {}
            Action::Query(query) if !query.assigns.is_empty() => {}
            Action::Declare(_) | Action::Assign(..) | Action::Set(_) | Action::Print(_) => {}
            _ => {
                let text =
                    "The metadata could not be determined: only declarations, assignments and changes may \
                            stand before the first select.";
                return Err(ServerMessage::error(11512, 16, text));
            }
        }
    }
    Ok(None)
}

fn row(column: &Column, ordinal: i64) -> Vec<Value<'static>> {
    let Column { name, type_info, traits, .. } = column;
    let of = system_type(type_info);
    let text = |text: String| Value::Text(text.into());
    let flag = Value::Bit;
    let is_collated = type_info.collation != [0; 5];
    let mut row = vec![
        flag(false),
        Value::Int(ordinal),
        if name.is_empty() { Value::Null } else { text(name.clone()) },
        flag(!traits.not_null),
        Value::Int(of.id),
        text(of.written),
        Value::Int(of.bytes),
        Value::Int(of.precision),
        Value::Int(of.scale),
        if is_collated { text("Latin1_General_100_BIN2_UTF8".into()) } else { Value::Null },
    ];
    // user type, XML and source are NULL: they are for browse mode
    row.extend((0..9).map(|_| Value::Null));
    row.extend([flag(false), flag(is_collated), flag(false)]);
    row.extend((0..5).map(|_| Value::Null));
    row.extend([
        flag(traits.identity),
        Value::Null,
        flag(!traits.computed),
        flag(traits.computed),
        flag(false),
    ]);
    row.extend((0..3).map(|_| Value::Null));
    row.extend(on_the_wire(type_info));
    let [a, b, c, d, sort] = type_info.collation;
    row.push(if is_collated { Value::Int(i32::from_le_bytes([a, b, c, d]).into()) } else { Value::Null });
    row.push(if is_collated { Value::Int(sort.into()) } else { Value::Null });
    row
}

/// The token and the length of a type at 7.4.
pub fn on_the_wire(t: &TypeInfo) -> [Value<'static>; 2] {
    let token = t.token.to_wire(&Dialect::new(Version::Tds74)).unwrap_or(0);
    [Value::Int(token.into()), Value::Int(if t.size == MAX { 65_535 } else { t.size.into() })]
}

/// A type's columns of sys.types.
pub struct SystemType {
    pub id: i64,
    pub written: String,
    pub bytes: i64,
    pub precision: i64,
    pub scale: i64,
}

pub fn system_type(t: &TypeInfo) -> SystemType {
    use TypeToken as T;
    let is_max = t.size == MAX;
    let bytes = if is_max { -1 } else { i64::from(t.size) };
    let plain = |id: i64, name: &str, precision: i64, scale: i64| SystemType {
        id,
        written: name.to_owned(),
        bytes,
        precision,
        scale,
    };
    let long = |id: i64, name: &str| SystemType { bytes: 16, ..plain(id, name, 0, 0) };
    let of_length = |id: i64, name: &str, unit: i64| {
        let length = if is_max { "max".to_owned() } else { (bytes / unit).to_string() };
        plain(id, &format!("{name}({length})"), 0, 0)
    };
    let scale = i64::from(t.scale);
    let of_time = |id: i64, name: &str, digits: i64| {
        plain(id, &format!("{name}({scale})"), digits + if scale > 0 { scale + 1 } else { 0 }, scale)
    };
    let digits = |id: i64, name: &str| {
        let precision = i64::from(t.precision);
        plain(id, &format!("{name}({precision},{scale})"), precision, scale)
    };
    match (t.token, t.size) {
        (T::IntN, 1) => plain(48, "tinyint", 3, 0),
        (T::IntN, 2) => plain(52, "smallint", 5, 0),
        (T::IntN, 4) => plain(56, "int", 10, 0),
        (T::IntN, _) => plain(127, "bigint", 19, 0),
        (T::BitN, _) => plain(104, "bit", 1, 0),
        (T::FloatN, 4) => plain(59, "real", 24, 0),
        (T::FloatN, _) => plain(62, "float", 53, 0),
        (T::MoneyN, 4) => plain(122, "smallmoney", 10, 4),
        (T::MoneyN, _) => plain(60, "money", 19, 4),
        (T::DateTimeN, 4) => plain(58, "smalldatetime", 16, 0),
        (T::DateTimeN, _) => plain(61, "datetime", 23, 3),
        (T::Decimal, _) => digits(106, "decimal"),
        (T::Numeric, _) => digits(108, "numeric"),
        (T::BigChar, _) => of_length(175, "char", 1),
        (T::BigVarChar, _) => of_length(167, "varchar", 1),
        (T::NChar, _) => of_length(239, "nchar", 2),
        (T::BigBinary, _) => of_length(173, "binary", 1),
        (T::BigVarBinary, _) => of_length(165, "varbinary", 1),
        (T::Text, _) => long(35, "text"),
        (T::NText, _) => long(99, "ntext"),
        (T::Image, _) => long(34, "image"),
        (T::Guid, _) => plain(36, "uniqueidentifier", 0, 0),
        (T::DateN, _) => plain(40, "date", 10, 0),
        (T::TimeN, _) => of_time(41, "time", 8),
        (T::DateTime2N, _) => of_time(42, "datetime2", 19),
        (T::DateTimeOffset, _) => of_time(43, "datetimeoffset", 26),
        (T::Variant, _) => SystemType { bytes: 8016, ..plain(98, "sql_variant", 0, 0) },
        _ => of_length(231, "nvarchar", 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_as_sys_types_has_them() {
        let of = |t: TypeInfo| {
            let of = system_type(&t);
            (of.id, of.written, of.bytes, of.precision, of.scale)
        };
        assert_eq!(of(TypeInfo::new(TypeToken::IntN, 2)), (52, "smallint".into(), 2, 5, 0));
        assert_eq!(of(TypeInfo::new(TypeToken::NVarChar, 20)), (231, "nvarchar(10)".into(), 20, 0, 0));
        assert_eq!(of(TypeInfo::new(TypeToken::BigVarChar, MAX)), (167, "varchar(max)".into(), -1, 0, 0));
        assert_eq!(of(TypeInfo::of_time(TypeToken::TimeN, 3)), (41, "time(3)".into(), 4, 12, 3));
        assert_eq!(
            of(TypeInfo::of_time(TypeToken::DateTimeOffset, 7)),
            (43, "datetimeoffset(7)".into(), 10, 34, 7)
        );
    }
}
