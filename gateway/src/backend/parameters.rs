//! The parameters of a query: the types that are sent to PostgreSQL for them, and their values in those types.

use crate::convert::{sent_variant, to_pg, ConvertError, PgType, SqlType, Value, Zone};
use crate::postgres::message::put_value;
use crate::postgres::PgError;
use crate::program::{Sql, CLOCKS};
use crate::tds::tokens::message::ServerMessage;
use bytes::{BufMut, Bytes, BytesMut};
use postgres_protocol::IsNull;
use std::borrow::Cow;

/// A variable as a query names it.
#[derive(Debug)]
pub struct Parameter<'v> {
    /// With its @.
    pub name: &'v str,
    pub sql_type: SqlType,
    pub value: Cow<'v, Value<'v>>,
}

/// The types that are sent to PostgreSQL. It infers a missing type from the parameter's position, as T-SQL converts to
/// the type of the other operand: texts become dates and numbers where these are expected. Each typing is tried only
/// after PostgreSQL has refused the one before, without having run anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// The declared types, except for texts.
    Declared,
    /// Also for texts, whose type does not follow from their position (`select @text`).
    Texts,
    /// No types: a declared type does not fit its position (an int for a boolean column).
    Inferred,
}

impl Typing {
    /// The next typing to try after this error.
    pub fn after(self, error: &PgError) -> Option<Typing> {
        if self != Typing::Declared {
            return None;
        }
        match error.sqlstate()? {
            // indeterminate_datatype, ambiguous_function, ambiguous_parameter
            "42P18" | "42725" | "42P08" => Some(Typing::Texts),
            // datatype_mismatch, undefined_function
            "42804" | "42883" => Some(Typing::Inferred),
            _ => None,
        }
    }

    fn oid(self, sql_type: SqlType) -> u32 {
        match self {
            _ if sql_type.is_composite() => SqlType::TEXT.oid,
            Typing::Inferred => 0,
            Typing::Texts if sql_type.is_characters() => SqlType::TEXT.oid,
            Typing::Declared if sql_type.is_characters() => 0,
            _ => sql_type.oid,
        }
    }
}

/// The text of `sql`, and the type (oid) sent for each of its parameters; 0: PostgreSQL infers it.
pub fn statement(sql: &Sql, types: &[SqlType], typing: Typing) -> (String, Vec<u32>) {
    // in a result a numeric keeps its digits only by a cast; values are checked to fit it exactly
    let cast = |index: usize| match types.get(index) {
        // sent as text, because the type's oid differs between databases
        Some(&SqlType::DATETIMEOFFSET) => String::from("::text::tsql.datetimeoffset"),
        Some(&SqlType::SQL_VARIANT) => String::from("::text::tsql.sql_variant"),
        Some(sql_type) if typing != Typing::Inferred => match sql_type.digits() {
            Some((precision, scale)) => format!("::numeric({precision},{scale})"),
            None => String::new(),
        },
        _ => String::new(),
    };
    let oid = |(name, sql_type): (&String, &SqlType)| {
        // a literal keeps its own type in any position
        if CLOCKS.contains(&name.as_str()) {
            SqlType::TIMESTAMP.oid
        } else if name.starts_with('#') && !sql_type.is_composite() {
            sql_type.oid
        } else {
            typing.oid(*sql_type)
        }
    };
    (sql.text(cast), sql.variables.iter().zip(types).map(oid).collect())
}

/// The values for PostgreSQL in the types it inferred: the format of each (0 text, 1 binary) and, one after another,
/// their lengths and bytes.
pub fn bind(
    parameters: &[Parameter<'_>],
    oids: &[u32],
    zone: &Zone,
) -> Result<(Vec<i16>, Bytes), ServerMessage> {
    let mut formats = Vec::with_capacity(parameters.len());
    let mut values = BytesMut::new();
    for (index, parameter) in parameters.iter().enumerate() {
        let pg_type = PgType::from_oid(oids.get(index).copied().unwrap_or(SqlType::TEXT.oid));
        formats.push(i16::from(!pg_type.wants_text()));
        put_value(&mut values, |out| {
            if matches!(*parameter.value, Value::Null) {
                return Ok(IsNull::Yes);
            }
            fits(parameter)?;
            match &*parameter.value {
                value @ Value::Variant(_) if parameter.sql_type == SqlType::SQL_VARIANT => {
                    out.put_slice(sent_variant(value)?.as_bytes());
                }
                value => to_pg(value, pg_type, zone, out)?,
            }
            Ok::<_, ConvertError>(IsNull::No)
        })
        .map_err(|error| {
            ServerMessage::error(error.number(), 16, format!("Parameter '{}': {error}", parameter.name))
        })?;
    }
    Ok((formats, values.freeze()))
}

/// Checks that a decimal has the digits of its declared type: PostgreSQL would round it.
fn fits(parameter: &Parameter<'_>) -> Result<(), ConvertError> {
    let (Value::Decimal(decimal), Some((_, scale))) = (&*parameter.value, parameter.sql_type.digits()) else {
        return Ok(());
    };
    match decimal.rescaled(scale) {
        Some(_) => Ok(()),
        None => Err(ConvertError::overflow("decimal", "the type it is declared as")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::Notice;
    use tsql::fragments::variable;

    fn refused(sqlstate: &str) -> PgError {
        PgError::Server(Box::new(Notice { sqlstate: sqlstate.into(), ..Notice::default() }))
    }

    #[test]
    fn texts_are_left_to_postgresql_and_numerics_keep_their_digits() {
        let text = format!("select a from t where b = {} and c = {}", variable(0), variable(1));
        let query = Sql::written(&text, vec!["@a".into(), "@b".into()]);
        let types = [SqlType::varchar(Some(40)), SqlType::numeric(10, 2)];
        let (sql, oids) = statement(&query, &types, Typing::Declared);
        assert_eq!(sql, "select a from t where b = $1 and c = $2::numeric(10,2)");
        assert_eq!(oids, [0, 1700]);
        assert_eq!(statement(&query, &types, Typing::Texts).1, [25, 1700]);
        assert_eq!(statement(&query, &types, Typing::Inferred).1, [0, 0]);
    }

    #[test]
    fn each_typing_is_tried_once() {
        assert_eq!(Typing::Declared.after(&refused("42P18")), Some(Typing::Texts));
        assert_eq!(Typing::Declared.after(&refused("42804")), Some(Typing::Inferred));
        assert_eq!(Typing::Declared.after(&refused("42P01")), None);
        assert_eq!(Typing::Inferred.after(&refused("42804")), None);
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_and_not_shown() {
        let parameter = |name, sql_type, value| Parameter { name, sql_type, value: Cow::Owned(value) };
        let number = || parameter("@b", SqlType::INT4, Value::Int(1));
        let text = |text: &'static str| parameter("@a", SqlType::TEXT, Value::Text(text.into()));
        let (formats, values) = bind(&[text("a%"), number()], &[25, 23], &Zone::UTC).unwrap();
        assert_eq!((formats, &values[..]), (vec![1, 1], &b"\0\0\0\x02a%\0\0\0\x04\0\0\0\x01"[..]));
        let error = bind(&[text("secret"), number()], &[23, 23], &Zone::UTC).unwrap_err();
        assert!(error.text.contains("@a") && !error.text.contains("secret"), "{}", error.text);
    }
}
