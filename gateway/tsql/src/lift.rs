//! Replaces literals of a tree by variables, so that one program serves all texts that differ only in them.
//!
//! Only literals that cannot change the meaning of the text are replaced: those compared in a WHERE or ON, inserted or
//! assigned to a column without an expression, or passed to a procedure. Those of TOP, styles, lengths, ORDER BY,
//! select lists, GROUP BY, patterns and definitions remain.

use crate::facts::types::{self, Type, INT, LONGEST_VARCHAR, MOST_DIGITS};
use crate::lexer::{Token, TokenKind};
use crate::program::{Lifted, Literal};
use crate::resolve::names;
use crate::schema::{Column, Schema};
use crate::tree::{
    ArgumentValue, Expression, InsertSource, LiteralValue, Merge, MergeAction, Query, QueryBody, SetItem,
    Statement, StatementKind, TableSource, Target, UnaryOperator, Variable, Where,
};
use crate::units;
use crate::Dialect;

/// The kind of a literal that affects how a lifted one is written; texts that differ in it have separate programs.
/// None: not a literal.
pub(crate) fn class(token: &Token<'_>) -> Option<char> {
    let scale = |written: &str| written.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some(match token.kind {
        TokenKind::Integer if is_int(&token.value) => 'i',
        TokenKind::Integer => 'I',
        TokenKind::Decimal if is_decimal(&token.value) => {
            char::from_u32('0' as u32 + u32::try_from(scale(&token.value)).ok()?).unwrap_or('D')
        }
        TokenKind::Decimal => 'D',
        TokenKind::Float => 'f',
        TokenKind::Money => 'm',
        TokenKind::Binary => 'b',
        TokenKind::Text { national: false } if is_short(&token.value) => 't',
        TokenKind::Text { .. } if is_short(&token.value) => 'n',
        TokenKind::Text { .. } => 'T',
        _ => return None,
    })
}

fn is_int(digits: &str) -> bool {
    digits.parse::<i32>().is_ok()
}

fn is_decimal(written: &str) -> bool {
    let digits = written.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    let scale = written.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    digits.max(scale) <= usize::from(MOST_DIGITS)
}

fn is_short(text: &str) -> bool {
    units::fits(text, LONGEST_VARCHAR as usize)
}

/// The value of a lifted literal, from its token.
pub(crate) fn value(token: &Token<'_>, lifted: &Lifted, dialect: &Dialect) -> Option<Literal> {
    let digits = || token.value.to_string();
    let written = match token.kind {
        TokenKind::Text { .. } if dialect.empty_text_is_blank && token.value.is_empty() => {
            return Some(Literal::Text(String::from(" ")))
        }
        TokenKind::Text { .. } => return Some(Literal::Text(digits())),
        TokenKind::Integer => LiteralValue::Integer(digits()),
        TokenKind::Decimal => LiteralValue::Decimal(digits()),
        TokenKind::Float => LiteralValue::Float(digits()),
        TokenKind::Binary => LiteralValue::Binary(digits()),
        _ => return None,
    };
    crate::compile::of_number(&written, lifted.negative)
}

/// Lifts all suitable literals. `literals`: the position of each literal of the text, by its number.
pub(crate) fn lift(statements: &mut [Statement], literals: &[u32], schema: &dyn Schema) -> Vec<Lifted> {
    let mut lifting = Lifting { literals, schema, lifted: Vec::new() };
    for statement in statements {
        lifting.statement(statement);
    }
    lifting.lifted
}

struct Lifting<'a> {
    literals: &'a [u32],
    schema: &'a dyn Schema,
    lifted: Vec<Lifted>,
}

impl Lifting<'_> {
    fn statement(&mut self, statement: &mut Statement) {
        match &mut statement.kind {
            StatementKind::Block(body) => body.iter_mut().for_each(|inner| self.statement(inner)),
            StatementKind::If { condition, then, otherwise } => {
                self.condition(condition);
                self.statement(then);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise);
                }
            }
            StatementKind::While { condition, body } => {
                self.condition(condition);
                self.statement(body);
            }
            StatementKind::TryCatch { body, catch } => {
                body.iter_mut().chain(catch).for_each(|inner| self.statement(inner));
            }
            StatementKind::Select(query) => self.query(query),
            StatementKind::Insert(insert) => match &mut insert.source {
                InsertSource::Values(rows) if !self.has_variants(&insert.target) => {
                    rows.iter_mut().flatten().for_each(|value| self.literal(value));
                }
                InsertSource::Query(query) => self.query(query),
                _ => {}
            },
            StatementKind::Update(update) => {
                update.set.iter_mut().for_each(|item| self.set_item(item));
                update.from.iter_mut().for_each(|source| self.source(source));
                self.filter(&mut update.condition);
            }
            StatementKind::Delete(delete) => {
                delete.from.iter_mut().for_each(|source| self.source(source));
                self.filter(&mut delete.condition);
            }
            StatementKind::Merge(merge) => self.merge(merge),
            StatementKind::Execute(execute) => {
                for argument in &mut execute.arguments {
                    if let ArgumentValue::Value(value) = &mut argument.value {
                        self.literal(value);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether a table has columns of type sql_variant, which keep the types of literals.
    fn has_variants(&self, target: &Target) -> bool {
        let Target::Table(name) = target else { return false };
        let declared = names::table(name).ok().and_then(|name| self.schema.table(&name));
        let is_variant = |column: &Column| column.of == types::SQL_VARIANT;
        declared.is_some_and(|declared| declared.columns().iter().any(is_variant))
    }

    fn merge(&mut self, merge: &mut Merge) {
        self.source(&mut merge.source);
        self.condition(&mut merge.condition);
        for clause in &mut merge.clauses {
            clause.condition.iter_mut().for_each(|condition| self.condition(condition));
            match &mut clause.action {
                MergeAction::Update(set) => set.iter_mut().for_each(|item| self.set_item(item)),
                MergeAction::Delete => {}
                MergeAction::Insert { values, .. } => {
                    values.iter_mut().flatten().for_each(|value| self.literal(value));
                }
            }
        }
    }

    fn set_item(&mut self, item: &mut SetItem) {
        if item.variable.is_none() && item.operator.computes().is_none() {
            self.literal(&mut item.value);
        }
    }

    fn filter(&mut self, condition: &mut Option<Where>) {
        if let Some(Where::Condition(condition)) = condition {
            self.condition(condition);
        }
    }

    fn query(&mut self, query: &mut Query) {
        for table in &mut query.with {
            self.query(&mut table.query);
        }
        self.body(&mut query.body);
    }

    fn body(&mut self, body: &mut QueryBody) {
        match body {
            QueryBody::Select(select) if select.into.is_none() => {
                select.from.iter_mut().for_each(|source| self.source(source));
                if let Some(condition) = &mut select.condition {
                    self.condition(condition);
                }
            }
            QueryBody::Select(_) | QueryBody::Values(_) => {}
            QueryBody::Combined { first, others } => {
                self.body(first);
                others.iter_mut().for_each(|(_, body)| self.body(body));
            }
            QueryBody::Parenthesised(query) => self.query(query),
        }
    }

    fn source(&mut self, source: &mut TableSource) {
        match source {
            TableSource::Query { query, .. } => self.query(query),
            TableSource::Join { left, right, condition, .. } => {
                self.source(left);
                self.source(right);
                if let Some(condition) = condition {
                    self.condition(condition);
                }
            }
            TableSource::Table { .. } | TableSource::Variable { .. } | TableSource::Function { .. } => {}
        }
    }

    fn condition(&mut self, condition: &mut Expression) {
        match condition {
            Expression::And(operands) | Expression::Or(operands) => {
                operands.iter_mut().for_each(|operand| self.condition(operand));
            }
            Expression::Not(operand) => self.condition(operand),
            Expression::Exists(query) => self.query(query),
            Expression::InQuery { query, .. } | Expression::Quantified { query, .. } => self.query(query),
            Expression::Between { operand, low, high, .. } if decides(operand) => {
                self.literal(low);
                self.literal(high);
            }
            Expression::In { operand, values, .. } if decides(operand) => {
                values.iter_mut().for_each(|value| self.literal(value));
            }
            Expression::Binary { operator, left, right, .. } if operator.is_comparison() => {
                if decides(left) {
                    self.literal(right);
                } else if decides(right) {
                    self.literal(left);
                }
                for side in [left, right] {
                    if let Expression::Subquery(query) = side.as_mut() {
                        self.query(query);
                    }
                }
            }
            _ => {}
        }
    }

    /// Replaces a literal, with the minus before it, by a variable.
    fn literal(&mut self, value: &mut Expression) {
        let (literal, negative) = match value {
            Expression::Literal(literal) => (literal, false),
            Expression::Unary { operator: UnaryOperator::Minus, operand, .. } => match operand.as_mut() {
                Expression::Literal(literal) => (literal, true),
                _ => return,
            },
            _ => return,
        };
        let Some(of) = type_of(&literal.value, negative) else { return };
        let index = literal.number.0;
        // a bare word among the arguments of a procedure is a text, but not a literal
        let written = self.literals.get(index as usize).is_some_and(|start| *start == literal.at.start);
        let name = format!("#{index}");
        if !written || self.lifted.iter().any(|lifted| lifted.index == index) {
            return;
        }
        let at = literal.at;
        self.lifted.push(Lifted { name: name.clone(), index, of, negative });
        *value = Expression::Variable(Variable { name, at });
    }
}

/// Whether the value of a literal compared with it does not change the meaning: it is neither a literal nor a variable
/// itself.
fn decides(side: &Expression) -> bool {
    match side {
        Expression::Unary { operand, .. } => decides(operand),
        other => !matches!(other, Expression::Literal(_) | Expression::Variable(_)),
    }
}

/// The type of a lifted literal: the widest of its class.
fn type_of(value: &LiteralValue, negative: bool) -> Option<Type> {
    match value {
        LiteralValue::Integer(digits) => is_int(digits).then_some(INT),
        LiteralValue::Decimal(written) => {
            let scale = written.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let of = u8::try_from(scale).ok().map(|scale| types::decimal(MOST_DIGITS, scale));
            of.filter(|_| is_decimal(written))
        }
        LiteralValue::Float(_) => Some(types::FLOAT),
        LiteralValue::Binary(_) => (!negative).then_some(types::VARBINARY),
        LiteralValue::Text { text, national, .. } => (!negative && is_short(text))
            .then(|| Type { twin: *national, ..types::varchar(Some(LONGEST_VARCHAR)) }),
        LiteralValue::Null | LiteralValue::Money(_) => None,
    }
}
