//! Procedures, functions and triggers, and calls.

use super::expression::literal;
use super::Parser;
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// Reserved words that are texts as arguments.
const TEXTS: [&str; 10] = ["on", "off", "all", "any", "key", "user", "public", "default", "index", "table"];

impl<'t> Parser<'t> {
    pub(super) fn begins_batch(&self, start: usize, mode: Mode, what: &str) -> Result<(), Error> {
        if start == 0 {
            return Ok(());
        }
        let at = self.tokens.get(start).map(|token| token.at).unwrap_or_default();
        Err(Error::not_first(mode.action(), what, at))
    }

    pub(super) fn procedure(&mut self, start: usize, mode: Mode) -> Result<StatementKind, Error> {
        self.begins_batch(start, mode, "PROCEDURE")?;
        self.at += 1;
        let name = self.procedure_name()?;
        self.enter_schema_of(&name);
        let parameters = self.parameters()?;
        let mut as_owner = None;
        while self.word("with") {
            self.list(|parser| {
                let at = parser.position();
                if parser.runs_as_owner(&name) {
                    as_owner = Some(at);
                    return Ok(());
                }
                parser.procedure_option()
            })?;
        }
        if self.next_is("for") {
            let why = "there is no replication of procedures";
            return Err(Error::refused("for replication", why, self.position()));
        }
        self.expect_word("as")?;
        if self.next_is("external") && self.ahead_is(1, "name") {
            return Err(Error::refused("external name", "procedures are T-SQL", self.position()));
        }
        let body = self.batch()?;
        Ok(StatementKind::CreateProcedure(Box::new(CreateProcedure {
            mode,
            name,
            parameters,
            as_owner,
            body,
        })))
    }

    /// `p;2`: a procedure of a group is a separate one with this name; `p;1` is p.
    fn procedure_name(&mut self) -> Result<ObjectName, Error> {
        let mut name = self.called_name()?;
        let number = self.ahead(1).filter(|next| self.next_is_symbol(";") && next.kind == TokenKind::Integer);
        let Some(number) = number else { return Ok(name) };
        match number.value.parse() {
            Ok(1_i16) => {}
            Ok(2..) => name.name.push_str(&format!(";{}", number.value.trim_start_matches('0'))),
            _ => return Err(Error::syntax(&number.value, number.at)),
        }
        self.at += 2;
        Ok(name)
    }

    /// `execute as owner`; 'dbo' owns the objects of its schema.
    fn runs_as_owner(&mut self, procedure: &ObjectName) -> bool {
        if !self.next_is_any(&["exec", "execute"]) || !self.ahead_is(1, "as") {
            return false;
        }
        let is_of_dbo = procedure.is_of_dbo();
        let is_dbo = |token: &Token<'_>| {
            matches!(token.kind, TokenKind::Text { .. }) && token.value.eq_ignore_ascii_case("dbo")
        };
        let is_owner = self.ahead_is(2, "owner") || is_of_dbo && self.ahead(2).is_some_and(is_dbo);
        self.at += if is_owner { 3 } else { 0 };
        is_owner
    }

    fn procedure_option(&mut self) -> Result<(), Error> {
        let at = self.position();
        if self.word("recompile")
            || self.words(&["execute", "as", "caller"])
            || self.words(&["exec", "as", "caller"])
        {
            return Ok(());
        }
        if self.next_is_any(&["exec", "execute"]) && self.ahead_is(1, "as") {
            let who = self.ahead(2).map_or("", |token| &*token.value).to_lowercase();
            let what = format!("with execute as {who}");
            return Err(Error::refused(&what, "a procedure runs as its caller or its owner", at));
        }
        let what = format!("with {}", self.advance()?.shown());
        Err(Error::refused(&what, "a procedure shows its text", at))
    }

    fn rest_of_batch(&mut self) -> Result<Vec<Statement>, Error> {
        let body = self.batch()?;
        if body.is_empty() {
            return Err(self.wrong());
        }
        Ok(body)
    }

    /// Parameters with or without parentheses around them.
    fn parameters(&mut self) -> Result<Vec<Parameter>, Error> {
        let enclosed = self.symbol("(");
        let mut parameters = Vec::new();
        while self.next_is_variable() {
            parameters.push(self.parameter()?);
            if !self.symbol(",") {
                break;
            }
        }
        if enclosed {
            self.expect_symbol(")")?;
        }
        Ok(parameters)
    }

    pub(super) fn parameter(&mut self) -> Result<Parameter, Error> {
        let shown = self.peek().map(|token| token.value.to_string()).unwrap_or_default();
        let variable = self.own_variable()?;
        self.word("as");
        let type_ = self.type_name()?;
        if self.next_is("varying") {
            return Err(Error::refused("cursor varying", "a procedure gives no cursors", variable.at));
        }
        self.words(&["not", "null"]);
        self.word("null");
        let default = if self.symbol("=") { Some(self.constant()?) } else { None };
        let output = self.any_word(&["output", "out"]);
        let readonly = self.word("readonly");
        Ok(Parameter { variable, shown, type_, default, output, readonly, table: None })
    }

    /// A literal, NULL, a variable, or a bare word, which is a text.
    fn constant(&mut self) -> Result<Expression, Error> {
        let at = self.position();
        let operator = if self.symbol("-") {
            Some(UnaryOperator::Minus)
        } else if self.symbol("+") {
            Some(UnaryOperator::Plus)
        } else {
            None
        };
        let token = self.advance()?;
        let number = matches!(
            token.kind,
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Float | TokenKind::Money
        );
        if token.kind == TokenKind::Variable {
            self.at -= 1;
        }
        let operand = match token.kind {
            TokenKind::Variable => Expression::Variable(self.variable()?),
            _ if number => Expression::Literal(literal(token)),
            _ if operator.is_some() => return Err(self.wrong_before()),
            TokenKind::Word(class) if token.is("null") || class == Class::Plain || token.is_any(&TEXTS) => {
                self.bare_text()
            }
            TokenKind::Word(Class::StatementOrName) | TokenKind::Name => self.bare_text(),
            TokenKind::Text { .. } | TokenKind::Binary => Expression::Literal(literal(token)),
            _ => return Err(self.wrong_before()),
        };
        Ok(match operator {
            Some(operator) => Expression::Unary { operator, operand: Box::new(operand), at },
            None => operand,
        })
    }

    /// The previous word as a text, with the parts joined to it by periods; NULL is not a text.
    fn bare_text(&mut self) -> Expression {
        let Some(token) = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) else {
            return super::function::null();
        };
        let mut text = token.value.to_string();
        if token.is("null") {
            let (value, number) = (LiteralValue::Null, TokenNumber(token.place));
            return Expression::Literal(Literal { value, number, at: token.at });
        }
        while self.next_is_symbol(".") && self.ahead(1).is_some_and(|next| next.is_name()) {
            text.push('.');
            text.push_str(&self.tokens[self.at + 1].value);
            self.at += 2;
        }
        let value = LiteralValue::Text { text, national: false };
        Expression::Literal(Literal { value, number: TokenNumber(u32::MAX), at: token.at })
    }

    pub(super) fn function(&mut self, start: usize, mode: Mode) -> Result<StatementKind, Error> {
        self.begins_batch(start, mode, "FUNCTION")?;
        self.at += 1;
        let name = self.object_name()?;
        self.enter_schema_of(&name);
        self.expect_symbol("(")?;
        self.at -= 1;
        let parameters = self.parameters()?;
        self.expect_word("returns")?;
        let returns = if self.word("table") { None } else { Some(self.returns()?) };
        let options = if self.word("with") { self.list(Self::function_option)? } else { Vec::new() };
        self.word("as");
        let (returns, body) = match returns {
            None => (Returns::Rows(Box::new(self.returned_rows()?)), Vec::new()),
            Some(_) if !self.next_is("begin") => return Err(self.wrong()),
            Some(returns) => (returns, self.rest_of_batch()?),
        };
        let function = CreateFunction { mode, name, parameters, returns, body, options };
        Ok(StatementKind::CreateFunction(Box::new(function)))
    }

    fn returns(&mut self) -> Result<Returns, Error> {
        if !self.next_is_variable() {
            return self.type_name().map(Returns::Value);
        }
        let variable = self.own_variable()?;
        self.expect_word("table")?;
        Ok(Returns::Table { variable, elements: self.table_elements()? })
    }

    /// `return (query)`, at the end of the batch.
    fn returned_rows(&mut self) -> Result<Query, Error> {
        self.expect_word("return")?;
        let query = self.query()?;
        while self.symbol(";") {}
        if self.at_end() {
            return Ok(query);
        }
        Err(self.wrong())
    }

    fn function_option(&mut self) -> Result<String, Error> {
        let at = self.position();
        for option in [
            &["schemabinding"][..],
            &["returns", "null", "on", "null", "input"],
            &["called", "on", "null", "input"],
            &["execute", "as", "caller"],
        ] {
            if self.words(option) {
                return Ok(option.join(" "));
            }
        }
        let what = format!("with {}", self.advance()?.shown());
        Err(Error::refused(&what, "a function runs as its caller, and shows its text", at))
    }

    pub(super) fn trigger(&mut self, start: usize, mode: Mode) -> Result<StatementKind, Error> {
        self.begins_batch(start, mode, "TRIGGER")?;
        self.at += 1;
        let name = self.object_name()?;
        self.enter_schema_of(&name);
        self.expect_word("on")?;
        let at = self.position();
        if self.any_word(&["database", "all"]) {
            return Err(Error::refused("create trigger on database", "triggers are on tables", at));
        }
        let table = self.object_name()?;
        while self.word("with") {
            self.list(Self::procedure_option)?;
        }
        let time = if self.words(&["instead", "of"]) {
            TriggerTime::InsteadOf
        } else {
            self.expect_any(&["for", "after"])?;
            TriggerTime::After
        };
        let events = self.list(|parser| {
            let event = parser.advance()?;
            match &*event.value.to_lowercase() {
                "insert" => Ok(TriggerEvent::Insert),
                "update" => Ok(TriggerEvent::Update),
                "delete" => Ok(TriggerEvent::Delete),
                _ => Err(parser.wrong_before()),
            }
        })?;
        self.words(&["not", "for", "replication"]);
        self.expect_word("as")?;
        let body = self.rest_of_batch()?;
        let trigger = CreateTrigger { mode, name, table, time, events, body };
        Ok(StatementKind::CreateTrigger(Box::new(trigger)))
    }

    // --- calls ---

    pub(super) fn execute(&mut self) -> Result<StatementKind, Error> {
        let start = self.position();
        self.at += 1;
        if self.next_is("as") {
            return Err(Error::refused("execute as", "a session has one user", start));
        }
        if self.symbol("(") {
            let text = self.value()?;
            if self.next_is_symbol(",") {
                let why = "sp_executesql takes parameters";
                return Err(Error::refused("execute (…, arguments)", why, start));
            }
            self.expect_symbol(")")?;
            if self.next_is("at") {
                return Err(Error::refused("execute … at", "there are no other servers", start));
            }
            if self.next_is("as") {
                return Err(Error::refused("execute … as", "a session has one user", start));
            }
            return Ok(StatementKind::ExecuteText(Box::new(ExecuteText { text, at: self.since(start) })));
        }
        self.call_statement(start)
    }

    /// A call, also without the keyword EXECUTE.
    pub(super) fn call_statement(&mut self, start: Position) -> Result<StatementKind, Error> {
        let status = if self.next_is_variable() && self.ahead_is_symbol(1, "=") {
            let status = self.own_variable()?;
            self.at += 1;
            Some(status)
        } else {
            None
        };
        let procedure =
            if self.next_is_variable() { Err(self.variable()?) } else { Ok(self.procedure_name()?) };
        let arguments = if self.at_statement_end() { Vec::new() } else { self.list(Self::argument)? };
        if self.next_is("with") && !self.ahead(1).is_some_and(|next| next.kind == TokenKind::Name) {
            self.at += 1;
            self.expect_word("recompile")?;
        }
        let at = self.since(start);
        Ok(StatementKind::Execute(Box::new(Execute { status, procedure, arguments, at })))
    }

    /// Whether the next token cannot be part of this statement.
    pub(super) fn at_statement_end(&self) -> bool {
        let Some(token) = self.peek() else { return true };
        match token.kind {
            TokenKind::Symbol => matches!(&*token.value, ";" | ")"),
            TokenKind::Word(Class::Statement | Class::StatementOrName) => true,
            TokenKind::Word(_) => token.is_any(&["else", "end", "with"]),
            _ => false,
        }
    }

    fn argument(&mut self) -> Result<Argument, Error> {
        let at = self.position();
        let name = match self.peek() {
            Some(token) if token.kind == TokenKind::Variable && self.ahead_is_symbol(1, "=") => {
                self.own_variable()?;
                self.at += 1;
                Some(token.value.to_string())
            }
            _ => None,
        };
        if self.word("default") {
            return Ok(Argument { name, value: ArgumentValue::Default, at });
        }
        let value = self.constant()?;
        let output = self.any_word(&["output", "out"]);
        let value = match value {
            Expression::Variable(variable) if output => ArgumentValue::Output(variable),
            _ if output => {
                let message = "Cannot use the OUTPUT option when passing a constant to a stored procedure.";
                return Err(Error::new(179, message, at));
            }
            value => ArgumentValue::Value(value),
        };
        Ok(Argument { name, value, at })
    }
}
