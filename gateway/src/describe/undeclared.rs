//! sp_describe_undeclared_parameters: the types of the undeclared parameters of a text.

use super::first_result::{on_the_wire, system_type, LONG_NAME, NAME};
use crate::calls::Returned;
use crate::client::Client;
use crate::convert::{declared, PgType};
use crate::program::{refusal, Asking};
use crate::rpc::{statement_of, text_of};
use crate::run::{under_schema, State};
use crate::tds::call::Param;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{TypeInfo, TypeToken, Value, MAX};
use std::future::ready;
use std::sync::Arc;
use tsql::schema::Schema;
use tsql::Undeclared;

/// Columns of the answer, in its order (SQL Server, "sp_describe_undeclared_parameters").
const ANSWER: [(&str, PgType, i32); 24] = [
    ("parameter_ordinal", PgType::Int4, -1),
    ("name", PgType::Varchar, NAME),
    ("suggested_system_type_id", PgType::Int4, -1),
    ("suggested_system_type_name", PgType::Varchar, LONG_NAME),
    ("suggested_max_length", PgType::Int2, -1),
    ("suggested_precision", PgType::Int2, -1),
    ("suggested_scale", PgType::Int2, -1),
    ("suggested_user_type_id", PgType::Int4, -1),
    ("suggested_user_type_database", PgType::Varchar, NAME),
    ("suggested_user_type_schema", PgType::Varchar, NAME),
    ("suggested_user_type_name", PgType::Varchar, NAME),
    ("suggested_assembly_qualified_type_name", PgType::Varchar, NAME),
    ("suggested_xml_collection_id", PgType::Int4, -1),
    ("suggested_xml_collection_database", PgType::Varchar, NAME),
    ("suggested_xml_collection_schema", PgType::Varchar, NAME),
    ("suggested_xml_collection_name", PgType::Varchar, NAME),
    ("suggested_is_xml_document", PgType::Bool, -1),
    ("suggested_is_case_sensitive", PgType::Bool, -1),
    ("suggested_is_fixed_length_clr_type", PgType::Bool, -1),
    ("suggested_is_input", PgType::Bool, -1),
    ("suggested_is_output", PgType::Bool, -1),
    ("formal_parameter_name", PgType::Varchar, NAME),
    ("suggested_tds_type_id", PgType::Int4, -1),
    ("suggested_tds_length", PgType::Int4, -1),
];

/// The parameters of the procedure: text, declarations.
pub async fn describe_undeclared(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
) -> Result<Returned, ServerMessage> {
    let text = statement_of(client, params, 0)?;
    let declared = text_of(client, params, 1)?.unwrap_or_default();
    let declarations = state.declarations(client, &declared).await?;
    let settings = state.compiling_with(client, &declarations);
    let find = |schema: Arc<Asking>| {
        let schema: Arc<dyn Schema> = schema;
        ready(tsql::undeclared(&text, &settings, &schema).map_err(|error| refusal(&error)))
    };
    let parameters = under_schema(&mut state.procedures.backend, client, false, find).await?;
    let mut rows = Vec::with_capacity(parameters.len());
    for (parameter, number) in parameters.iter().zip(1..) {
        let of = type_of(parameter)?;
        rows.push(row(&parameter.name, number, &of));
    }
    let answer = ANSWER.map(|(name, pg_type, typmod)| (name.to_owned(), pg_type, typmod));
    client.reply.result_set(&answer, &rows)?;
    Ok(Returned::rows(Some(rows.len() as u64)))
}

fn type_of(parameter: &Undeclared) -> Result<TypeInfo, ServerMessage> {
    let of = declared::type_sent(parameter.of, &Dialect::new(Version::Tds74));
    let of = if parameter.longest { longest(of) } else { Some(of) };
    of.ok_or_else(|| {
        let text = format!("The type for parameter '{}' cannot be deduced in this context.", parameter.name);
        ServerMessage::error(11502, 16, text)
    })
}

/// The longest type of a kind ("General deduction"); None if the kind has none.
fn longest(of: TypeInfo) -> Option<TypeInfo> {
    use TypeToken as T;
    /// Bytes of the longest type of limited length.
    const LONGEST: u32 = 8000;
    let size = if of.size == MAX { MAX } else { LONGEST };
    Some(match of.token {
        T::BigChar | T::BigVarChar => TypeInfo { token: T::BigVarChar, size, ..of },
        T::NChar | T::NVarChar => TypeInfo { token: T::NVarChar, size, ..of },
        T::BigBinary | T::BigVarBinary => TypeInfo { token: T::BigVarBinary, size, ..of },
        T::Decimal | T::Numeric => TypeInfo { token: T::Numeric, precision: 38, scale: 19, size: 17, ..of },
        T::TimeN | T::DateTime2N | T::DateTimeOffset => TypeInfo::of_time(of.token, 7),
        T::IntN | T::BitN | T::FloatN | T::MoneyN | T::DateTimeN | T::DateN => of,
        _ => return None,
    })
}

fn row(name: &str, ordinal: i64, t: &TypeInfo) -> Vec<Value<'static>> {
    let of = system_type(t);
    let mut row = vec![
        Value::Int(ordinal),
        Value::Text(name.to_owned().into()),
        Value::Int(of.id),
        Value::Text(of.written.into()),
        Value::Int(of.bytes),
        Value::Int(of.precision),
        Value::Int(of.scale),
    ];
    // user type and XML are NULL
    row.extend((0..9).map(|_| Value::Null));
    let is_collated = t.collation != [0; 5];
    row.extend([false, is_collated, false, true, false].map(Value::Bit));
    row.push(Value::Null);
    row.extend(on_the_wire(t));
    row
}
