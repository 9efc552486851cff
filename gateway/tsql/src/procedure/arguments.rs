//! The arguments of a procedure's function, and their conversion to the types of T-SQL.

use super::Header;
use crate::bind::{self, NoVariables};
use crate::error::Error;
use crate::facts::types::Type;
use crate::plpgsql::Argument;
use crate::postgres::{call, Scalar};
use crate::resolve::Scope;
use crate::tree::{Expression, Literal, LiteralValue, TokenNumber};
use crate::Dialect;

pub(super) fn arguments(header: &Header<'_>, scope: &Scope) -> Result<Vec<Argument>, Error> {
    let mut arguments = Vec::with_capacity(header.parameters.len() + 1);
    let mut may_be_left_out = false;
    for (parameter, of) in &header.parameters {
        let type_ = bare(of);
        let name = parameter.variable.name.as_str();
        let default = match &parameter.default {
            Some(default) => Some(default_value(default, *of, header, scope)?),
            // PostgreSQL requires a default for all further parameters: theirs is the error of T-SQL
            None => may_be_left_out.then(|| {
                let parts =
                    [Scalar::text(&*header.name), Scalar::text(name), Scalar::Null.cast(type_.clone())];
                call("tsql.missing", parts)
            }),
        };
        may_be_left_out |= default.is_some();
        let mode = if parameter.output { "inout" } else { "in" };
        arguments.push(Argument { mode, name: name.to_owned(), type_, default });
    }
    Ok(arguments)
}

fn default_value(
    default: &Expression,
    of: Type,
    header: &Header<'_>,
    scope: &Scope,
) -> Result<Scalar, Error> {
    // a bare word is a text
    let word = match default {
        Expression::Column(column) if column.table.is_none() => {
            let value = LiteralValue::Text { text: column.column.clone(), national: false };
            Some(Expression::Literal(Literal { value, number: TokenNumber::default(), at: column.at }))
        }
        _ => None,
    };
    let scope = Scope { dialect: scope.dialect, database: header.schema.clone(), ..Scope::default() };
    let mut constant = NoVariables("the default of a parameter is a constant");
    let value = bind::value(word.as_ref().unwrap_or(default), &scope, &mut constant, Some(of))?;
    Ok(value.sql.cast(of.sql()))
}

/// A type of a function's argument, without length.
pub(super) fn bare(of: &Type) -> String {
    Type { length: None, precision: None, scale: None, fraction: None, ..*of }.sql()
}

/// Converts an argument to its parameter's type if PostgreSQL's type is wider: a longer value is cut, a shorter
/// binary(n) padded, a datetime rounded.
pub(super) fn fitted(name: Scalar, of: &Type, dialect: &Dialect) -> Option<Scalar> {
    let between = |name: Scalar, bounds: [Scalar; 2], source: &str, target: &str| {
        let [low, high] = bounds;
        call("tsql.argument", [name, low, high, Scalar::text(source), Scalar::text(target)])
    };
    if let Some((domain, greatest)) = of.domain_from_zero() {
        return Some(between(name, [Scalar::number(0), Scalar::number(greatest)], "numeric", domain));
    }
    Some(match (of.name, of.length) {
        ("tinyint", _) => between(name, [0, 255].map(Scalar::number), "smallint", of.name),
        ("smallmoney", _) => {
            let bounds = ["-214748.3648", "214748.3647"].map(Scalar::number);
            between(name, bounds, "numeric", of.name)
        }
        ("binary" | "varbinary", Some(length)) => {
            call(format!("tsql.to_{}", of.name), [name, Scalar::number(length)])
        }
        ("datetime" | "smalldatetime", _) => call(format!("tsql.to_{}", of.name), [name]),
        ("char" | "varchar" | "sysname", Some(length)) => {
            call("tsql.cut", [name, Scalar::number(length)]).cast(of.sql())
        }
        ("decimal" | "numeric", _) if dialect.decimals_keep_digits => {
            bind::scaled_to(name, *of).cast(of.sql())
        }
        _ if of.sql() != bare(of) => name.cast(of.sql()),
        _ => return None,
    })
}
