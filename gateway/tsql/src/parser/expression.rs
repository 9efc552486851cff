//! Expressions, by operator precedence.

use super::names::is_free;
use super::{Parser, LONGEST_CHAIN};
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// `+ - & | ^ ||` have the lowest precedence, `* / %` the next, `~` the highest.
fn arithmetic(token: &Token<'_>) -> Option<(BinaryOperator, u8)> {
    use BinaryOperator as Operator;
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match &*token.value {
        "*" => (Operator::Multiply, 2),
        "/" => (Operator::Divide, 2),
        "%" => (Operator::Modulo, 2),
        "+" => (Operator::Add, 1),
        "-" => (Operator::Subtract, 1),
        "||" => (Operator::Concatenate, 1),
        "&" => (Operator::BitAnd, 1),
        "|" => (Operator::BitOr, 1),
        "^" => (Operator::BitXor, 1),
        _ => return None,
    })
}

fn comparison(token: &Token<'_>) -> Option<BinaryOperator> {
    use BinaryOperator as Operator;
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match &*token.value {
        "=" => Operator::Equal,
        "<>" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "*=" => Operator::LeftOuter,
        "=*" => Operator::RightOuter,
        _ => return None,
    })
}

/// Functions without parentheses.
const NILADIC: [&str; 6] =
    ["current_user", "session_user", "system_user", "user", "current_timestamp", "current_date"];

/// Reserved words that begin a function.
const CALLED: [&str; 8] =
    ["left", "right", "nullif", "convert", "update", "user", "current_date", "current_time"];

impl<'t> Parser<'t> {
    /// A value.
    pub(super) fn value(&mut self) -> Result<Expression, Error> {
        let start = self.at;
        let value = self.binary(1)?;
        self.expect_value(&value, start)?;
        Ok(value)
    }

    /// A condition.
    pub(super) fn condition(&mut self) -> Result<Expression, Error> {
        let condition = self.any()?;
        if condition.is_condition() {
            return Ok(condition);
        }
        let near = self.peek().or(self.tokens.last()).map(Token::shown).unwrap_or_default();
        let message = format!(
            "An expression of non-boolean type specified in a context where a condition is expected, near '{near}'."
        );
        Err(Error::new(4145, message, self.position()))
    }

    /// A value or a condition.
    pub(super) fn any(&mut self) -> Result<Expression, Error> {
        let mut operands = vec![self.conjunction()?];
        while self.next_is("or") {
            self.operand_of_junction(&operands)?;
            self.at += 1;
            operands.push(self.conjunction()?);
        }
        self.junction(operands, Expression::Or)
    }

    fn conjunction(&mut self) -> Result<Expression, Error> {
        let mut operands = vec![self.negation()?];
        while self.next_is("and") {
            self.operand_of_junction(&operands)?;
            self.at += 1;
            operands.push(self.negation()?);
        }
        self.junction(operands, Expression::And)
    }

    fn junction(
        &mut self,
        mut operands: Vec<Expression>,
        of: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Error> {
        if operands.len() > 1 {
            self.operand_of_junction(&operands)?;
            return Ok(of(operands));
        }
        operands.pop().ok_or_else(|| self.wrong())
    }

    /// The last operand of AND or OR is a condition.
    fn operand_of_junction(&self, operands: &[Expression]) -> Result<(), Error> {
        match operands.last() {
            Some(last) if !last.is_condition() => {
                let near = self.peek().or(self.tokens.last()).map(Token::shown).unwrap_or_default();
                let message = format!(
                    "An expression of non-boolean type specified in a context where a condition is expected, near '{near}'."
                );
                Err(Error::new(4145, message, self.position()))
            }
            _ => Ok(()),
        }
    }

    fn negation(&mut self) -> Result<Expression, Error> {
        if !self.word("not") {
            return self.comparison();
        }
        let operand = self.deeper(Self::negation)?;
        self.operand_of_junction(std::slice::from_ref(&operand))?;
        Ok(Expression::Not(Box::new(operand)))
    }

    fn comparison(&mut self) -> Result<Expression, Error> {
        if self.next_is("exists") && self.ahead_is_symbol(1, "(") {
            self.at += 1;
            return self.exists();
        }
        let start = self.at;
        let left = self.binary(1)?;
        let Some(token) = self.peek() else { return Ok(left) };
        if let Some(operator) = comparison(token) {
            self.expect_value(&left, start)?;
            self.at += 1;
            return self.compared(left, operator, token.at);
        }
        if token.is("is") {
            self.expect_value(&left, start)?;
            self.at += 1;
            return self.is(left);
        }
        let negated =
            token.is("not") && self.ahead(1).is_some_and(|next| next.is_any(&["between", "in", "like"]));
        self.at += usize::from(negated);
        if self.next_is_any(&["between", "in", "like"]) {
            self.expect_value(&left, start)?;
        }
        let operand = Box::new(left);
        if self.word("between") {
            let low = Box::new(self.value()?);
            self.expect_word("and")?;
            let high = Box::new(self.value()?);
            return Ok(Expression::Between { operand, low, high, negated });
        }
        if self.word("like") {
            let pattern = Box::new(self.value()?);
            let escape = if self.word("escape") { Some(Box::new(self.value()?)) } else { None };
            return Ok(Expression::Like { operand, pattern, escape, negated });
        }
        if self.word("in") {
            return self.within(operand, negated);
        }
        Ok(*operand)
    }

    fn compared(
        &mut self,
        left: Expression,
        operator: BinaryOperator,
        at: Position,
    ) -> Result<Expression, Error> {
        let quantified = self.next_is_any(&["all", "any", "some"]) && self.ahead_is_symbol(1, "(");
        if !quantified {
            let right = Box::new(self.value()?);
            return Ok(Expression::Binary { operator, left: Box::new(left), right, at });
        }
        let quantifier = if self.word("all") { Quantifier::All } else { Quantifier::Any };
        self.at += usize::from(quantifier == Quantifier::Any);
        let query = Box::new(self.subquery()?);
        Ok(Expression::Quantified { operator, left: Box::new(left), quantifier, query })
    }

    fn is(&mut self, left: Expression) -> Result<Expression, Error> {
        let negated = self.word("not");
        if self.words(&["distinct", "from"]) {
            let right = Box::new(self.value()?);
            return Ok(Expression::IsDistinct { left: Box::new(left), right, negated });
        }
        self.expect_word("null")?;
        Ok(Expression::IsNull { operand: Box::new(left), negated })
    }

    fn within(&mut self, operand: Box<Expression>, negated: bool) -> Result<Expression, Error> {
        if self.ahead_is(1, "select") && self.next_is_symbol("(") {
            let query = Box::new(self.subquery()?);
            return Ok(Expression::InQuery { operand, query, negated });
        }
        let mut values = self.in_parentheses(Self::value)?;
        if let [Expression::Subquery(_)] = &*values {
            if let Some(Expression::Subquery(query)) = values.pop() {
                return Ok(Expression::InQuery { operand, query, negated });
            }
        }
        Ok(Expression::In { operand, values, negated })
    }

    fn exists(&mut self) -> Result<Expression, Error> {
        self.subquery().map(Box::new).map(Expression::Exists)
    }

    /// Operators of at least this precedence, and their operands.
    fn binary(&mut self, least: u8) -> Result<Expression, Error> {
        let start = self.at;
        let mut left = self.unary()?;
        let mut chain = 0;
        while let Some((operator, power)) = self.peek().and_then(arithmetic).filter(|(_, p)| *p >= least) {
            self.expect_value(&left, start)?;
            chain += 1;
            if chain > LONGEST_CHAIN {
                return Err(Error::nested_too_deeply(self.position()));
            }
            let at = self.position();
            self.at += 1;
            let begin = self.at;
            let right = if power == 1 { self.binary(2)? } else { self.unary()? };
            self.expect_value(&right, begin)?;
            left = Expression::Binary { operator, left: Box::new(left), right: Box::new(right), at };
        }
        Ok(left)
    }

    /// Refuses a condition, which may be in parentheses, in place of a value.
    fn expect_value(&self, value: &Expression, start: usize) -> Result<(), Error> {
        if !value.is_condition() {
            return Ok(());
        }
        match self.peek().or_else(|| self.tokens.get(start)) {
            Some(token) => Err(super::wrong_at(token)),
            None => Err(self.wrong()),
        }
    }

    /// A value that is a single operand with its sign, since another value may follow without a comma.
    pub(super) fn operand_with_sign(&mut self) -> Result<Expression, Error> {
        self.signed(true)
    }

    fn unary(&mut self) -> Result<Expression, Error> {
        self.signed(self.close_signs)
    }

    /// `is_close`: the sign applies to its operand alone.
    fn signed(&mut self, is_close: bool) -> Result<Expression, Error> {
        let operator = match self.peek() {
            Some(token) if token.is_symbol("-") => UnaryOperator::Minus,
            Some(token) if token.is_symbol("+") => UnaryOperator::Plus,
            Some(token) if token.is_symbol("~") => UnaryOperator::Complement,
            _ => return self.postfix(),
        };
        let at = self.position();
        self.at += 1;
        let begin = self.at;
        let operand = self.deeper(|parser| match operator {
            UnaryOperator::Complement => parser.signed(is_close),
            _ if is_close => parser.signed(true),
            _ => parser.binary(2),
        })?;
        self.expect_value(&operand, begin)?;
        Ok(Expression::Unary { operator, operand: Box::new(operand), at })
    }

    /// `value.method (…)` and `type::method (…)`
    pub(super) fn refuse_method(&self) -> Result<(), Error> {
        let Some(name) = self.ahead(1).filter(|name| name.is_name()) else { return Ok(()) };
        if self.next_is_symbol(".") && self.ahead_is_symbol(2, "(") {
            let what = format!(".{}()", name.value);
            return Err(Error::refused(&what, "ringlog has no types with methods", name.at));
        }
        if self.next_is_symbol("::") {
            let what = format!("::{}", name.value);
            return Err(Error::refused(&what, "ringlog has no types with methods", name.at));
        }
        Ok(())
    }

    fn postfix(&mut self) -> Result<Expression, Error> {
        let mut operand = self.primary()?;
        self.refuse_method()?;
        let mut chain = 0;
        loop {
            if self.word("collate") {
                let collation = self.name()?;
                operand = Expression::Collate { operand: Box::new(operand), collation };
            } else if self.words(&["at", "time", "zone"]) {
                let zone = Box::new(self.primary()?);
                operand = Expression::AtTimeZone { operand: Box::new(operand), zone };
            } else {
                return Ok(operand);
            }
            chain += 1;
            if chain > LONGEST_CHAIN {
                return Err(Error::nested_too_deeply(self.position()));
            }
        }
    }

    fn primary(&mut self) -> Result<Expression, Error> {
        let Some(token) = self.peek() else { return Err(self.wrong()) };
        match token.kind {
            TokenKind::Variable => self.variable().map(Expression::Variable),
            TokenKind::Symbol if token.value == "(" => self.deeper(Self::parenthesised),
            TokenKind::Symbol if token.value == "{" => self.deeper(Self::escape_sequence),
            TokenKind::Symbol => Err(self.wrong()),
            TokenKind::Name => self.named(),
            TokenKind::Word(_) => self.worded(token),
            _ => {
                self.at += 1;
                Ok(Expression::Literal(literal(token)))
            }
        }
    }

    fn worded(&mut self, token: &'t Token<'t>) -> Result<Expression, Error> {
        let called = self.ahead_is_symbol(1, "(");
        if token.is("null") {
            self.at += 1;
            let number = TokenNumber(token.place);
            return Ok(Expression::Literal(Literal { value: LiteralValue::Null, number, at: token.at }));
        }
        if token.is("case") {
            return self.deeper(Self::case);
        }
        if called && token.is_any(&["cast", "try_cast", "convert", "try_convert", "parse", "try_parse"]) {
            return self.deeper(Self::conversion);
        }
        if token.is_any(&NILADIC) && !called {
            self.at += 1;
            return Ok(self.niladic(token));
        }
        if token.is("next") && self.ahead_is(1, "value") && self.ahead_is(2, "for") {
            return self.next_value();
        }
        if token.is_any(&["values", "pivot", "unpivot", "compute"]) {
            return Err(self.refused_word(token));
        }
        if is_free(token) || (called && (token.is("update") || token.is_any(&CALLED))) {
            return self.named();
        }
        Err(self.wrong())
    }

    fn case(&mut self) -> Result<Expression, Error> {
        let at = self.position();
        self.at += 1;
        let operand = if self.next_is("when") { None } else { Some(self.value()?) };
        let mut branches = Vec::new();
        while self.word("when") {
            let when = if operand.is_some() { self.value()? } else { self.condition()? };
            self.expect_word("then")?;
            branches.push((when, self.value()?));
        }
        if branches.is_empty() {
            return Err(self.wrong());
        }
        let otherwise = if self.word("else") { Some(self.value()?) } else { None };
        self.expect_word("end")?;
        Ok(Expression::Case(Box::new(Case { operand, branches, otherwise, at: self.since(at) })))
    }

    /// The contents of parentheses: a query, a condition or a value.
    fn parenthesised(&mut self) -> Result<Expression, Error> {
        if self.ahead_is(1, "select") {
            return self.select_as_value();
        }
        self.at += 1;
        let inner = self.any()?;
        let Expression::Subquery(query) = inner else {
            self.expect_symbol(")")?;
            return Ok(inner);
        };
        // ((select …) union (select …))
        let at = query.at;
        let first = QueryBody::Parenthesised(query);
        let query = self.query_after(first, at)?;
        let query = self.with_options(query)?;
        self.expect_symbol(")")?;
        Ok(Expression::Subquery(Box::new(unwrapped(query))))
    }

    /// A column or a call.
    fn named(&mut self) -> Result<Expression, Error> {
        let start = self.position();
        let first = self.part()?;
        let mut parts = vec![first];
        while self.next_is_symbol(".") {
            if self.ahead_is_symbol(1, "*") {
                return Err(self.wrong());
            }
            self.at += 1;
            parts.push(if self.next_is_symbol(".") { String::new() } else { self.part()? });
        }
        if parts.len() > 4 {
            let message = format!("The multi-part identifier '{}' is not known.", parts.join("."));
            return Err(Error::new(4104, message, start).with_severity(16));
        }
        let at = self.since(start);
        if self.next_is_symbol("(") && !self.is_outer_mark() {
            let name = self.placed(object_name(parts, at))?;
            return self.deeper(|parser| parser.call(name));
        }
        let column = parts.pop().unwrap_or_default();
        let table = match parts.is_empty() {
            true => None,
            false => Some(Box::new(self.placed(object_name(parts, at))?)),
        };
        Ok(Expression::Column(ColumnName { table, column, at }))
    }

    /// `column (+)`, the outer join of another system.
    fn is_outer_mark(&self) -> bool {
        self.ahead_is_symbol(1, "+") && self.ahead_is_symbol(2, ")")
    }

    /// Whether the next token can begin an expression.
    pub(super) fn begins_expression(&self) -> bool {
        let Some(token) = self.peek() else { return false };
        match token.kind {
            TokenKind::Symbol => matches!(&*token.value, "(" | "+" | "-" | "~" | "{"),
            TokenKind::Word(Class::Statement | Class::StatementOrName) => false,
            TokenKind::Word(Class::Reserved) => {
                token.is_any(&["null", "case", "not", "exists", "values"])
                    || token.is_any(&NILADIC)
                    || (token.is_any(&CALLED) && self.ahead_is_symbol(1, "("))
            }
            _ => true,
        }
    }
}

/// A name of at most four parts. The first of four, the server's, is checked when the name is resolved.
pub(super) fn object_name(mut parts: Vec<String>, at: Position) -> ObjectName {
    let name = parts.pop().unwrap_or_default();
    let owner = parts.pop().unwrap_or_default();
    let database = parts.pop().unwrap_or_default();
    ObjectName { database, owner, name, at, ..ObjectName::default() }
}

/// Unwraps a query that consists only of parentheses around another.
fn unwrapped(query: crate::tree::Query) -> crate::tree::Query {
    let plain =
        query.with.is_empty() && query.order_by.is_empty() && query.offset.is_none() && query.fetch.is_none();
    match query.body {
        QueryBody::Parenthesised(inner) if plain => *inner,
        _ => query,
    }
}

pub(super) fn literal(token: &Token<'_>) -> Literal {
    let value = token.value.to_string();
    let value = match token.kind {
        TokenKind::Integer => LiteralValue::Integer(value),
        TokenKind::Decimal => LiteralValue::Decimal(value),
        TokenKind::Float => LiteralValue::Float(value),
        TokenKind::Money => LiteralValue::Money(value),
        TokenKind::Binary => LiteralValue::Binary(value),
        TokenKind::Text { national } => LiteralValue::Text { text: value, national },
        // a word that represents a text
        _ => LiteralValue::Text { text: value, national: false },
    };
    Literal { value, number: TokenNumber(token.place), at: token.at }
}
