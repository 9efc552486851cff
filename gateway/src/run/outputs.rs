//! Conversions of values between a call and its caller: T-SQL's texts of arguments, and the types of the variables that
//! take the status and the outputs.

use super::state::State;
use super::variables::{Variable, Variables};
use crate::calls::Returned;
use crate::client::Client;
use crate::convert::{SqlType, Zone};
use crate::interrupt::Interrupt;
use crate::program::{Argument, Execute, Expression, Sql};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::facts::types::{Family, Type};

/// Sets T-SQL's texts of the values of `params` that are passed for `texts`.
pub async fn set_texts(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
    texts: &[Option<Type>],
) -> Result<(), Interrupt> {
    let dialect = client.dialect();
    for (param, text) in params.iter().zip(texts) {
        let (Some(text), Some(of)) = (text, param.type_of()) else { continue };
        // an invalid value is reported when the parameter is bound
        let Ok(value) = param.value(&dialect) else { continue };
        if !has_own_text(&value, of, text) {
            continue;
        }
        let Ok(sql) = tsql::text_for(of, *text, dialect.of_texts()) else { continue };
        let sql_type = SqlType { oid: of.oid, typmod: of.typmod() };
        let taken = state.taken(client, &sql, vec![(sql_type, value.into_owned())]).await?;
        param.set_text(taken.into_iter().next().unwrap_or(Value::Null));
    }
    Ok(())
}

/// Converts the value of a function and the outputs of a call to the types of their variables.
pub async fn take_outputs(
    state: &mut State,
    client: &mut Client,
    execute: &Execute,
    returned: &mut Returned,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    // a status is an integer, converted to the variable's type
    let status = execute.status.as_ref().zip(execute.status_taken.as_ref());
    if let (Some((name, taken)), Some(given)) = (status, &mut returned.value) {
        take(state, client, variables.get(name), taken, &mut given.value).await?;
    }
    for output in &mut returned.outputs {
        let argument = execute.arguments.get(output.index);
        let Some(Argument { value: Some(Expression::Variable(name)), taken: Some(taken), .. }) = argument
        else {
            continue;
        };
        take(state, client, variables.get(name), taken, &mut output.value).await?;
    }
    Ok(())
}

async fn take(
    state: &mut State,
    client: &mut Client,
    variable: Option<&Variable<'_>>,
    taken: &Sql,
    value: &mut Value<'static>,
) -> Result<(), Interrupt> {
    let given = SqlType::of_value(value);
    let is_of_it = |variable: &Variable<'_>| {
        let of = variable.declared.filter(|of| of.is_plain() && !of.is_text());
        of.is_some_and(|of| of.oid == given.oid)
    };
    if !variable.is_some_and(is_of_it) {
        let values = state.taken(client, taken, vec![(given, value.clone())]).await?;
        *value = values.into_iter().next().unwrap_or(Value::Null);
    }
    Ok(())
}

/// Whether T-SQL's text of a value of type `of` may differ from PostgreSQL's, or may not fit.
fn has_own_text(value: &Value<'_>, of: Type, text: &Type) -> bool {
    if matches!(value, Value::Null) {
        return false;
    }
    match of.family {
        Family::Text | Family::Binary | Family::Variant | Family::Xml => false,
        Family::Integer | Family::Decimal => {
            let room = text.length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
            value.to_text(text.name).is_ok_and(|shown| shown.len() > room)
        }
        _ => true,
    }
}

/// Assigns status and outputs of a call in a text to the variables it names.
pub fn assign(
    execute: &Execute,
    variables: &mut Variables<'_>,
    returned: &Returned,
    zone: &Zone,
) -> Result<(), ServerMessage> {
    if let Some(name) = &execute.status {
        let status = Value::Int(i64::from(returned.status));
        let value = returned.value.as_ref().map_or(status, |given| given.value.clone());
        variables.set(name, value, zone)?;
    }
    for output in &returned.outputs {
        let argument = execute.arguments.get(output.index);
        if let Some(Expression::Variable(name)) = argument.and_then(|argument| argument.value.as_ref()) {
            variables.set(name, output.value.clone(), zone)?;
        }
    }
    Ok(())
}
