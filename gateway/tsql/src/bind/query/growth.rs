//! `select @v = @v + column from … order by …`: a text to which each row appends, in the order of the rows. Microsoft's
//! bulk copy lists the columns of a table this way.

use super::order;
use crate::bind::binder::item::Item;
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::walk;
use crate::bind::values::assignments::assigned;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::{varchar, VARCHAR};
use crate::postgres::{call, Call, Over, Scalar};
use crate::tree::{
    Arguments, AssignOperator, BinaryOperator, Expression, Frame, FrameBound, FrameUnit, FunctionCall,
    Ordering, Select, SelectItem, Variable,
};

/// `@v = coalesce(@v + separator, first) + part`.
struct Growth {
    separator: Option<Expression>,
    first: First,
    part: Expression,
}

/// The text before the part while the variable is null.
enum First {
    /// `@v + part`: it remains null.
    Null,
    /// `coalesce(@v + separator + part, part)`
    Nothing,
    Text(Expression),
}

/// The single item of a list that appends to a text; None for any other list, and if the order of rows is
/// undefined.
pub fn grown(binder: &mut Binder<'_>, select: &Select, order_by: &[Ordering]) -> Result<Option<Item>, Error> {
    let [SelectItem::Assign { variable, operator, value }] = select.items.as_slice() else {
        return Ok(None);
    };
    let is_plain = !select.distinct && select.group_by.is_empty() && select.having.is_none();
    let is_ordered = !order_by.is_empty()
        && order_by.iter().all(|ordering| matches!(ordering.value, Expression::Column(_)));
    if !binder.dialect().rows_add_to_variables
        || select.from.is_empty()
        || variable.is_global()
        || !is_plain
        || !is_ordered
    {
        return Ok(None);
    }
    let Some(growth) = growth(variable, *operator, value) else { return Ok(None) };
    let line = variable.at.line;
    let target = binder.scope.type_of(&variable.name, line)?;
    if target.name != VARCHAR.name {
        return Ok(None);
    }
    let part = expressions::value(binder, &growth.part)?;
    if part.is_null() || part.of.is_tsql() && !part.is_text() {
        return Ok(None);
    }
    let mut fixed = |expression: &Expression| {
        let value = expressions::value(binder, expression)?;
        Ok::<_, Error>((value.is_null() || value.is_text()).then_some(value.sql))
    };
    let separator = match &growth.separator {
        Some(separator) => fixed(separator)?,
        None => Some(Scalar::text("")),
    };
    let first = match &growth.first {
        First::Null => Some(Scalar::Null),
        First::Nothing => Some(Scalar::text("")),
        First::Text(first) => fixed(first)?,
    };
    let (Some(separator), Some(first)) = (separator, first) else { return Ok(None) };
    let start = expressions::variable(binder, variable)?.sql;
    let order_by = order::ordered_by(binder, order_by)?;
    // each row has the text of all rows up to it; the last one is used
    let frame = Frame { unit: FrameUnit::Rows, start: FrameBound::UnboundedPreceding, end: None };
    let sql = Scalar::from(Call {
        function: "tsql.grow".into(),
        arguments: vec![start, separator, first, call("tsql.grown_by", [part.sql])],
        over: Some(Over { order_by, frame: Some(frame), ..Over::default() }),
        ..Call::default()
    });
    let value = assigned(Value::new(sql, varchar(None)), target, line, binder.dialect())?;
    let item = Item::new(value.sql, Some(String::new()));
    Ok(Some(Item { variable: Some(variable.name.clone()), ..item }))
}

fn growth(variable: &Variable, operator: AssignOperator, value: &Expression) -> Option<Growth> {
    let names = |expression: &Expression| walk::names_variable(expression, &variable.name);
    let is_itself = |expression: &Expression| matches!(expression, Expression::Variable(one) if one.name == variable.name);
    match operator {
        AssignOperator::Add if !names(value) => {
            return Some(Growth { separator: None, first: First::Null, part: value.clone() });
        }
        AssignOperator::Set => {}
        _ => return None,
    }
    let operands = operands(value);
    let (begins, parts) = operands.split_first()?;
    if parts.iter().any(|part| names(part)) {
        return None;
    }
    if is_itself(begins) {
        return Some(Growth { separator: None, first: First::Null, part: sum(parts)? });
    }
    let (grown, first) = either(begins)?;
    let (own, separators) = self::operands(grown).split_first().map(|(own, rest)| (*own, rest.to_vec()))?;
    if !is_itself(own) || separators.iter().any(|part| names(part)) || names(first) {
        return None;
    }
    let is_fixed = |expression: &Expression| !walk::has_column(expression) && !walk::has_query(expression);
    if !parts.is_empty() && is_fixed(first) && separators.iter().all(|part| is_fixed(part)) {
        let first = First::Text(first.clone());
        return Some(Growth { separator: sum(&separators), first, part: sum(parts)? });
    }
    // coalesce(@v + separator + part, part)
    let (part, separator) = separators.split_last()?;
    let is_same = *part == first && parts.is_empty();
    if !is_same || !separator.iter().all(|part| is_fixed(part)) {
        return None;
    }
    Some(Growth { separator: sum(separator), first: First::Nothing, part: first.clone() })
}

/// The two arguments of coalesce or isnull.
fn either(expression: &Expression) -> Option<(&Expression, &Expression)> {
    let Expression::Function(call) = expression else { return None };
    let FunctionCall { name, arguments: Arguments::Values(values), .. } = &**call else { return None };
    let is_one = name.is_bare() && ["coalesce", "isnull"].iter().any(|of| name.name.eq_ignore_ascii_case(of));
    match values.as_slice() {
        [one, other] if is_one => Some((one, other)),
        _ => None,
    }
}

/// The operands of a sum, from left to right.
fn operands(expression: &Expression) -> Vec<&Expression> {
    match expression {
        Expression::Binary { operator: BinaryOperator::Add, left, right, .. } => {
            let mut all = operands(left);
            all.push(right);
            all
        }
        other => vec![other],
    }
}

/// The sum of operands; None if there are none.
fn sum(operands: &[&Expression]) -> Option<Expression> {
    operands.iter().map(|one| (*one).clone()).reduce(|left, right| Expression::Binary {
        at: right.at(),
        operator: BinaryOperator::Add,
        left: Box::new(left),
        right: Box::new(right),
    })
}
