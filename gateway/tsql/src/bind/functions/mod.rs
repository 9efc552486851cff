//! Functions: each by its rule (`facts::functions`).

mod aggregates;
pub(super) mod calls;
mod choices;
pub(super) mod next_value;
mod numbers;
mod result_lengths;
mod text_pointers;
mod texts;
pub(super) mod times;

use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::walk;
use crate::bind::structured::json_rows;
use crate::bind::values::assignments::{implicit, stored};
use crate::bind::values::{lengths, Value};
use crate::error::Error;
use crate::facts::functions::{rule, Rule, NEW_ID, NONE_SUCH};
use crate::facts::session;
use crate::facts::types::{numeric, Case, Type, BIGINT, SQL_VARIANT, UNKNOWN, VARBINARY, VARCHAR};
use crate::postgres::{call, Call, Mark, Scalar};
use crate::resolve::names::{self, folded, identifier, schema_of};
use crate::schema::{function_key, Signature};
use crate::tree::{Arguments, Expression, FunctionCall, ObjectName};
use calls::CallBinder;
use next_value::refuse_next_value;

/// The schema of the catalogue's functions, which have no effects.
const SYSTEM: &str = "sys";

/// The name of a function in SQL, its arguments, and their types.
type PassedOn = (String, Vec<Scalar>, Vec<Type>);

pub fn function(binder: &mut Binder<'_>, called: &FunctionCall) -> Result<Value, Error> {
    let line = called.name.at.line;
    let name = called.name.name.to_lowercase();
    let rule = rule(&name).filter(|_| called.name.is_bare());
    let arguments: &[Expression] = match &called.arguments {
        Arguments::Star if rule != Some(Rule::Count) && !rule.is_some_and(Rule::is_aggregate) => {
            return Err(Error::syntax("*", line));
        }
        Arguments::Star => &[],
        Arguments::Values(values) => values,
    };
    if let Some(Rule::Refused(why)) = rule {
        return Err(Error::refused(&format!("{name}()"), why, line));
    }
    let is_aggregate = rule.is_some_and(Rule::is_aggregate);
    if called.distinct && !is_aggregate {
        return Err(Error::keyword("distinct", line));
    }
    if !called.within_group.is_empty() && rule != Some(Rule::StringAgg) {
        return Err(Error::refused(&format!("{name}() within group"), NONE_SUCH, line));
    }
    let over = match (&called.over, rule) {
        (None, Some(rule)) if rule.is_ranking() => {
            let text = format!("The function '{name}' must have an OVER clause.");
            return Err(Error::new(10753, text, line));
        }
        (None, _) => None,
        (Some(window), Some(rule)) if is_aggregate || rule.is_ranking() => {
            Some(aggregates::window(binder, window, rule, &name, line)?)
        }
        (Some(_), _) => {
            return Err(Error::refused(
                &format!("{name} over (…)"),
                "no such window function is known",
                line,
            ));
        }
    };
    let Some(rule) = rule else {
        let is_own = !called.name.is_bare() && binder.dialect().refuses_unknown_functions;
        return passed_on(binder, &called.name, arguments, if is_own { Mark::Owned } else { Mark::None });
    };
    binder.note(|facts| facts.varies |= rule.varies());
    let mut calling = CallBinder { binder, name: &name, of: called, arguments, over, line };
    let value = written(&mut calling, rule)?;
    Ok(match binder.dialect().empty_result_is_null && MAY_BE_EMPTY.contains(&&*name) {
        true => {
            let nullif = |text: Scalar| call("nullif", [text, Scalar::text("")]);
            let sql = match value.of.folds() {
                // PostgreSQL would search for an operator of its own
                true => nullif(value.sql.clone().cast("text")).cast(value.of.sql()),
                false => nullif(value.sql.clone()),
            };
            value.with_sql(sql)
        }
        false => value,
    })
}

/// A function of the site or of PostgreSQL. The arguments of one with a schema are converted to the types of its
/// parameters like values of columns; those of any other remain unchanged, texts without a type.
pub fn passed_on(
    binder: &mut Binder<'_>,
    name: &ObjectName,
    arguments: &[Expression],
    mark: Mark,
) -> Result<Value, Error> {
    let (function, given, types) = passed_on_of(binder, name, arguments, false)?;
    let sql = Call { function: function.clone().into(), arguments: given, mark, ..Call::default() };
    let of = signature(binder, &function, &types).map_or(UNKNOWN, |signature| signature.returns);
    Ok(Value::new(owned(binder, name, sql.into())?, of))
}

/// The signature of a function, by its name in SQL, called with arguments of these types.
pub fn signature(binder: &mut Binder<'_>, function: &str, arguments: &[Type]) -> Option<Signature> {
    let known = binder.scope.function(function);
    binder.variables.note_use(&function_key(function), None);
    known?.called(arguments).cloned()
}

/// `are_rows`: it is in FROM.
pub fn passed_on_of(
    binder: &mut Binder<'_>,
    name: &ObjectName,
    arguments: &[Expression],
    are_rows: bool,
) -> Result<PassedOn, Error> {
    let line = name.at.line;
    let is_system = name.owner == SYSTEM;
    binder.note(|facts| *if is_system { &mut facts.varies } else { &mut facts.calls } = true);
    let mut parts = Vec::new();
    for part in [schema_of(name), &name.name] {
        if !part.is_empty() {
            parts.push(identifier(part, line)?);
        }
    }
    let is_of_schema = !name.owner.is_empty() && name.owner != SYSTEM;
    // an omitted parameter uses its default, as do the last ones
    let is_given = |argument: &Expression| !matches!(argument, Expression::Default(_));
    let given = arguments.iter().rposition(is_given).map_or(0, |last| last + 1);
    let (mut values, mut types) = (Vec::with_capacity(given), Vec::with_capacity(given));
    for argument in &arguments[..given] {
        if let Expression::Default(at) = argument {
            return Err(Error::refused("default", "it stands before an argument that is given", *at));
        }
        let value = expressions::value(binder, argument)?;
        types.push(value.of);
        values.push(value);
    }
    let function = parts.join(".");
    let takes = match is_of_schema {
        true => signature(binder, &function, &types).map(|signature| signature.takes),
        false => None,
    };
    let passed = |(index, value): (usize, Value)| match (&takes, value.text()) {
        (Some(takes), _) => {
            let of = takes.get(index).copied().unwrap_or(UNKNOWN);
            stored(&value, of, line, binder.dialect())
        }
        (None, Some(text)) if !is_of_schema => Ok(Scalar::text(text)),
        (None, _) => Ok(value.sql),
    };
    let mut values: Vec<Scalar> = values.into_iter().enumerate().map(passed).collect::<Result<_, Error>>()?;
    // FROM cannot contain a condition
    let first = values.iter_mut().find(|value| **value != Scalar::Null).filter(|_| are_rows);
    if let Some(first) = first {
        *first = owned(binder, name, std::mem::replace(first, Scalar::Null))?;
    }
    Ok((calls::demanded(binder, name, function, arguments.len(), are_rows)?, values, types))
}

/// The value if the current database has the function `dbo.name`: PostgreSQL's own functions are not dbo's.
fn owned(binder: &Binder<'_>, function: &ObjectName, value: Scalar) -> Result<Scalar, Error> {
    let is_elsewhere = !function.database.is_empty();
    if !function.owner.eq_ignore_ascii_case("dbo") || is_elsewhere || binder.scope.definition {
        return Ok(value);
    }
    let own = Scalar::Text(folded(&function.name, function.at.line)?);
    Ok(call("tsql.if_owned", [value, call("tsql.is_owned", [own])]))
}

/// Functions that compare letters.
const SEARCHING: [&str; 5] = ["charindex", "patindex", "replace", "str_replace", "translate"];
/// Functions whose result may be a text without characters.
const MAY_BE_EMPTY: [&str; 10] =
    ["left", "ltrim", "replicate", "right", "rtrim", "space", "str_replace", "stuff", "substring", "trim"];

fn written(called: &mut CallBinder<'_, '_, '_>, rule: Rule) -> Result<Value, Error> {
    match rule {
        Rule::Plain { function, takes, least, gives } => plain(called, function, takes, least, gives),
        Rule::SameLength => texts::same_length(called),
        Rule::Side => texts::side(called),
        Rule::Substring => texts::substring(called),
        Rule::Str => texts::str(called),
        Rule::Concat => texts::concat(called),
        Rule::DataLength => texts::data_length(called),
        Rule::Replicate => texts::replicate(called),
        Rule::Length => texts::length(called),
        Rule::KeepsKind => numbers::keeps_kind(called),
        Rule::Round => numbers::round(called),
        Rule::Power => numbers::power(called),
        Rule::Rand => numbers::rand(called),
        Rule::IsNumeric => numbers::is_numeric(called),
        Rule::Now { clock, gives } => times::now(called, &clock, gives),
        Rule::DateAdd => times::date_add(called),
        Rule::DateDiff { gives } => times::date_diff(called, gives),
        Rule::DatePart => times::date_of(called),
        Rule::DateName => times::date_name(called),
        Rule::Part => times::part(called),
        Rule::EndOfMonth => times::end_of_month(called),
        Rule::AtOffset => times::at_offset(called),
        Rule::IsNull | Rule::Coalesce | Rule::NullIf | Rule::Iif | Rule::Choose => {
            let numbers = called.binder.around.next_values;
            let value = match rule {
                Rule::IsNull => choices::is_null(called),
                Rule::Coalesce => choices::coalesce(called),
                Rule::NullIf => choices::null_if(called),
                Rule::Iif => choices::iif(called),
                _ => choices::choose(called),
            }?;
            refuse_next_value(called.binder, numbers, 11741, called.line)?;
            Ok(value)
        }
        Rule::Count => aggregates::number_of_rows(called),
        Rule::Sum => aggregates::sum(called),
        Rule::Extreme => aggregates::extreme(called),
        Rule::Spread(function) => aggregates::spread(called, function),
        Rule::StringAgg => aggregates::string_agg(called),
        Rule::Ranking => aggregates::ranking(called),
        Rule::NTile => aggregates::n_tile(called),
        Rule::Neighbour => aggregates::neighbour(called),
        Rule::Grouping => aggregates::grouping(called),
        Rule::Session => session(called),
        Rule::ServerProperty if called.dialect().has_sql_variant => server_property(called),
        Rule::System | Rule::ServerProperty => system(called),
        Rule::SystemNumeric => {
            let value = system(called)?;
            Ok(Value::cast(value.sql, numeric(38, 0)))
        }
        Rule::HashBytes => texts::hash_bytes(called),
        Rule::Format => texts::format(called),
        Rule::OfAll => choices::of_all(called),
        Rule::ConcatWith => texts::concat_with(called),
        Rule::FormatMessage => texts::format_message(called),
        Rule::FromParts(gives) => times::of_parts(called, gives),
        Rule::DateTrunc => times::date_trunc(called),
        Rule::Edge => aggregates::edge(called),
        Rule::Share => aggregates::share(called),
        Rule::NextValue => next_value::next_value(called),
        Rule::Rows | Rule::SystemRows => {
            Err(Error::refused(&format!("{}()", called.name), "it gives rows: name it in FROM", called.line))
        }
        Rule::NewId => {
            called.count(0, 0)?;
            called.binder.around.new_ids += 1;
            Ok(Value::new(call("gen_random_uuid", []), NEW_ID))
        }
        Rule::VariantProperty => variant_property(called),
        Rule::JsonModify => json_rows::json_modify(called),
        Rule::TextPointer => text_pointers::text_pointer(called),
        Rule::TextValid => text_pointers::text_valid(called),
        Rule::Refused(why) => Err(Error::refused(&format!("{}()", called.name), why, called.line)),
    }
}

fn plain(
    called: &mut CallBinder<'_, '_, '_>,
    function: &'static str,
    takes: &str,
    least: usize,
    gives: Type,
) -> Result<Value, Error> {
    let number = called.count(least, takes.len())?;
    let mut arguments = Vec::with_capacity(number);
    let mut gives = gives;
    let mut is_of_database = called.binder.scope.folds && SEARCHING.contains(&function);
    let mut text_values = Vec::new();
    for (index, kind) in takes.chars().take(number).enumerate() {
        arguments.push(match kind {
            't' => {
                let value = called.value(index)?;
                if gives.is_text() {
                    gives = gives.with_characters([value.characters()]);
                }
                gives = gives.with_case(value.case());
                is_of_database &= value.of.is_tsql() && value.case() == Case::OfDatabase;
                let text = called.as_text(&value)?;
                text_values.push(value);
                text
            }
            'i' if function == "stuff" => texts::whole(called, index)?,
            'i' => called.integer(index)?,
            'l' => called.of_type(index, BIGINT)?,
            'b' => called.of_type(index, VARBINARY)?,
            _ => called.float(index)?,
        });
    }
    let (length, is_error) = result_lengths::of_function(called, &text_values, gives);
    gives.length = length;
    let is_position = matches!(function, "charindex" | "patindex") && called.dialect().limits_lengths;
    if is_position && lengths::is_endless(text_values[1].of) {
        gives = BIGINT;
    }
    let result = |sql: Scalar| match gives.length {
        Some(length) if gives.is_text() && is_error => {
            Value::cast(call("tsql.fitting", [sql, Scalar::number(length)]), gives)
        }
        Some(_) if gives.is_text() => Value::cast(sql, gives),
        None if gives == BIGINT && is_position => Value::cast(sql, gives),
        _ => Value::new(sql, gives),
    };
    if is_of_database {
        let arguments: Vec<Scalar> = arguments
            .into_iter()
            .zip(takes.chars())
            .map(|(argument, kind)| match kind {
                't' => argument.cast(VARCHAR.with_case(Case::Ignored).sql()),
                _ => argument,
            })
            .collect();
        let sql = call(format!("tsql.{function}"), arguments);
        return Ok(result(if gives.is_text() { sql.cast(VARCHAR.sql()) } else { sql }));
    }
    let schema = if function == "pi" { "" } else { "tsql." };
    Ok(result(call(format!("{schema}{function}"), arguments)))
}

/// `sql_variant_property(value, property)`: a value of another type becomes a sql_variant.
fn variant_property(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let (value, property) = (called.value(0)?, called.value(1)?);
    let value = implicit(value, SQL_VARIANT, called.line, called.dialect())?.sql;
    let property = called.as_text(&property)?;
    Ok(Value::new(call("tsql.sql_variant_property", [value, property]), SQL_VARIANT))
}

/// The property with its documented base type.
fn server_property(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let property = called.value(0)?;
    let property = called.as_text(&property)?;
    Ok(Value::new(call("tsql.server_property", [property]), SQL_VARIANT))
}

/// A variable that the session fills; with arguments a function of the catalogue.
fn session(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if !called.arguments.is_empty() {
        return system(called);
    }
    let function = session::niladic(called.name).unwrap_or(called.name);
    let Some((variable, of)) = session::function(function) else {
        return Err(Error::refused(called.name, NONE_SUCH, called.line));
    };
    let sql = called.binder.variables.write(variable, called.line)?;
    Ok(Value::cast(sql, of))
}

/// A function of the catalogue, in schema sys: its texts are passed without a type.
fn system(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let (least, most) = system_arguments(called.name);
    called.count(least, most)?;
    let name = ObjectName {
        owner: SYSTEM.into(),
        name: called.name.to_owned(),
        at: called.of.name.at,
        ..ObjectName::default()
    };
    let value = passed_on(called.binder, &name, called.arguments, Mark::Owned)?;
    // it reads the catalogue of the server, like a system view
    called.binder.note_table(names::Relation::system_function(called.name));
    if called.arguments.iter().any(walk::has_column) {
        return Ok(value);
    }
    // a subquery is evaluated once and not for every row
    let sql = value.sql.clone().once();
    Ok(value.with_sql(sql))
}

/// The number of arguments of a function of the system's catalogue.
fn system_arguments(name: &str) -> (usize, usize) {
    match name {
        "db_id" | "schema_id" | "schema_name" | "suser_id" | "user_id" => (0, 1),
        "is_srvrolemember" | "object_id" | "object_name" | "object_schema_name" => (1, 2),
        "col_length" | "col_name" | "collationproperty" | "databasepropertyex" | "objectproperty"
        | "objectpropertyex" | "parsename" | "typeproperty" => (2, 2),
        "columnproperty" | "index_col" | "indexproperty" => (3, 3),
        "has_perms_by_name" => (3, 5),
        _ => (1, 1),
    }
}
