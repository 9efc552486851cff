//! Statements: dispatch by the first word, and control flow.

use super::Parser;
use crate::error::Error;
use crate::facts::without_effect;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// Statements that are not supported, with the reasons.
const REFUSED: [(&str, &str); 11] = [
    ("backup", "backups are the operator's, with PostgreSQL's tools"),
    ("bulk", "load with insert, or with freebcp"),
    ("deny", "rights are granted and revoked"),
    ("dump", "backups are the operator's, with PostgreSQL's tools"),
    ("kill", "sessions are the operator's to end"),
    ("load", "backups are the operator's, with PostgreSQL's tools"),
    ("restore", "backups are the operator's, with PostgreSQL's tools"),
    ("setuser", "a session has one user"),
    ("shutdown", "the server is the operator's to stop"),
    ("lineno", "lines are those of the text"),
    ("revert", "a session has one user"),
];

impl<'t> Parser<'t> {
    /// Statements up to the end of the text.
    pub(super) fn batch(&mut self) -> Result<Vec<Statement>, Error> {
        let mut statements = Vec::new();
        while self.skip_semicolons() {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    /// Returns whether anything follows.
    pub(super) fn skip_semicolons(&mut self) -> bool {
        while self.symbol(";") {}
        !self.at_end()
    }

    pub(super) fn statement(&mut self) -> Result<Statement, Error> {
        let start = self.position();
        let kind = self.deeper(Self::statement_kind)?;
        Ok(Statement { kind, at: self.since(start) })
    }

    fn statement_kind(&mut self) -> Result<StatementKind, Error> {
        let Some(token) = self.peek() else { return Err(self.wrong()) };
        if let TokenKind::Word(class) = token.kind {
            if class != Class::Plain {
                if let Some(kind) = self.worded_statement(token)? {
                    return Ok(kind);
                }
            }
            if let Some((word, why)) = REFUSED.iter().find(|(word, _)| token.is(word)) {
                if class != Class::Plain || self.ahead(1).is_none() {
                    return Err(Error::refused(word, why, token.at));
                }
            }
            if class == Class::Plain && self.ahead_is_symbol(1, ":") {
                let label = self.name()?;
                self.at += 1;
                return Ok(StatementKind::Label(label));
            }
        }
        if token.is_symbol("(") && self.opens_query() {
            return self.query().map(Box::new).map(StatementKind::Select);
        }
        // a batch may begin with the bare name of a procedure
        if self.at == 0 && super::names::is_free(token) {
            return self.call_statement(token.at);
        }
        Err(self.wrong())
    }

    /// A statement that begins with a keyword; None if the word begins none.
    fn worded_statement(&mut self, token: &Token<'_>) -> Result<Option<StatementKind>, Error> {
        let word = token.value.to_ascii_lowercase();
        if let Some(message) = self.without_effect(&word) {
            return Ok(Some(message));
        }
        let read: fn(&mut Self) -> Result<StatementKind, Error> = match &*word {
            "alter" => Self::alter,
            "begin" => Self::begin,
            "break" => |parser| parser.of_loop(StatementKind::Break, 135, "BREAK"),
            "close" => Self::close,
            "commit" => Self::commit,
            "continue" => |parser| parser.of_loop(StatementKind::Continue, 136, "CONTINUE"),
            "create" => Self::create,
            "deallocate" => Self::deallocate,
            "dbcc" => Self::dbcc,
            "declare" => Self::declare,
            "delete" => |parser| parser.delete(Vec::new()),
            "disable" | "enable" if self.ahead_is(1, "trigger") => Self::switch_trigger,
            "drop" => Self::drop,
            "exec" | "execute" => Self::execute,
            "fetch" => Self::fetch,
            "goto" => Self::goto,
            "grant" | "revoke" => Self::grant,
            "if" => Self::if_,
            "insert" => |parser| parser.insert(Vec::new()),
            "merge" => |parser| parser.merge(Vec::new()),
            "open" => Self::open,
            "print" => Self::print,
            "raiserror" => Self::raiserror,
            "readtext" => Self::readtext,
            "return" => Self::return_,
            "rollback" => Self::rollback,
            "save" => Self::save,
            "select" => |parser| parser.query().map(Box::new).map(StatementKind::Select),
            "set" => Self::set,
            "throw" => Self::throw,
            "truncate" => Self::truncate,
            "update" => |parser| parser.update(Vec::new()),
            "updatetext" => Self::updatetext,
            "use" => Self::use_,
            "waitfor" => Self::waitfor,
            "while" => Self::while_,
            "with" => Self::with,
            "writetext" => Self::writetext,
            _ => return Ok(None),
        };
        read(self).map(Some)
    }

    /// The message of a statement without effect, which ends where the next one begins.
    fn without_effect(&mut self, word: &str) -> Option<StatementKind> {
        let is_next = |words: &[&str]| (1..).zip(words).all(|(ahead, word)| self.ahead_is(ahead, word));
        let (words, message) = without_effect::beginning_with(word).find(|(words, _)| is_next(words))?;
        let at = self.position();
        self.at += 1 + words.len();
        let mut open = 0_u32;
        while open > 0 && !self.at_end() || !self.at_statement_end() || self.next_is("with") {
            if self.symbol("(") {
                open += 1;
            } else {
                open -= u32::from(open > 0 && self.next_is_symbol(")"));
                self.at += 1;
            }
        }
        Some(self.nothing_changed(at, message))
    }

    /// Replaces a statement without effect that began at this position.
    pub(super) fn nothing_changed(&self, began: Position, message: &str) -> StatementKind {
        let value = LiteralValue::Text { text: message.to_owned(), national: false };
        let text =
            Expression::Literal(Literal { value, number: TokenNumber(u32::MAX), at: self.since(began) });
        StatementKind::Print { text, arguments: Vec::new() }
    }

    // --- control ---

    fn begin(&mut self) -> Result<StatementKind, Error> {
        let line = self.position();
        self.at += 1;
        if self.any_word(&["tran", "transaction"]) {
            return self.transaction_name().map(StatementKind::BeginTransaction);
        }
        if self.next_is_any(&["dialog", "conversation"]) {
            return Err(Error::refused("begin dialog", "there are no queues of messages", line));
        }
        if self.word("distributed") {
            return Err(Error::refused("begin distributed transaction", "there is one server", line));
        }
        if self.word("try") {
            return self.try_catch();
        }
        if self.next_is("catch") {
            return Err(self.wrong());
        }
        let body = self.body()?;
        if body.is_empty() {
            return Err(self.wrong());
        }
        self.expect_word("end")?;
        Ok(StatementKind::Block(body))
    }

    /// Statements up to the keyword END.
    fn body(&mut self) -> Result<Vec<Statement>, Error> {
        let mut statements = Vec::new();
        while self.skip_semicolons() && !self.next_is("end") {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn try_catch(&mut self) -> Result<StatementKind, Error> {
        let body = self.body()?;
        if body.is_empty() {
            return Err(self.wrong());
        }
        self.expect_word("end")?;
        self.expect_word("try")?;
        self.expect_word("begin")?;
        self.expect_word("catch")?;
        let catch = self.body()?;
        self.expect_word("end")?;
        self.expect_word("catch")?;
        Ok(StatementKind::TryCatch { body, catch })
    }

    fn branch(&mut self) -> Result<Box<Statement>, Error> {
        if self.at_end() || self.next_is_symbol(";") {
            return Err(self.wrong());
        }
        self.statement().map(Box::new)
    }

    fn if_(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        let condition = self.condition()?;
        let then = self.branch()?;
        // a semicolon may end the statement before ELSE
        if self.next_is_symbol(";") && self.ahead_is(1, "else") {
            self.at += 1;
        }
        let otherwise = if self.word("else") { Some(self.branch()?) } else { None };
        Ok(StatementKind::If { condition, then, otherwise })
    }

    fn while_(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        let condition = self.condition()?;
        self.loops += 1;
        let body = self.branch();
        self.loops -= 1;
        Ok(StatementKind::While { condition, body: body? })
    }

    fn of_loop(&mut self, kind: StatementKind, number: i32, word: &str) -> Result<StatementKind, Error> {
        let at = self.position();
        self.at += 1;
        if self.loops > 0 {
            return Ok(kind);
        }
        let text = format!("Cannot use a {word} statement outside the scope of a WHILE statement.");
        Err(Error::new(number, text, at))
    }

    fn return_(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if !self.begins_expression() || self.begins_label() {
            return Ok(StatementKind::Return(None));
        }
        self.value().map(Some).map(StatementKind::Return)
    }

    fn begins_label(&self) -> bool {
        self.ahead_is_symbol(1, ":") && self.peek().is_some_and(Token::is_name)
    }

    fn goto(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        self.name().map(StatementKind::Goto)
    }

    fn waitfor(&mut self) -> Result<StatementKind, Error> {
        let line = self.position();
        self.at += 1;
        if self.next_is_any(&["errorexit", "processexit", "mirrorexit"]) {
            let what = format!("waitfor {}", self.advance()?.value);
            return Err(Error::refused(&what, "only WAITFOR DELAY and WAITFOR TIME are", line));
        }
        if self.next_is_symbol("(") {
            return Err(Error::refused("waitfor (…)", "there are no queues of messages", line));
        }
        if self.word("time") {
            return self.value().map(StatementKind::WaitforTime);
        }
        self.expect_word("delay")?;
        self.value().map(StatementKind::WaitforDelay)
    }

    // --- messages ---

    fn print(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        let text = self.value()?;
        let arguments = if self.symbol(",") { self.list(Self::value)? } else { Vec::new() };
        Ok(StatementKind::Print { text, arguments })
    }

    fn raiserror(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.next_is_symbol("(") {
            return self.raiserror_with_severity();
        }
        self.numbered().map(Box::new).map(StatementKind::Raise)
    }

    /// The rest after RAISERROR: `number [text] [, arguments]`
    pub(super) fn numbered(&mut self) -> Result<Raise, Error> {
        let line = self.position();
        let number = self.raised_number()?;
        let message = match self.peek() {
            Some(token) if matches!(token.kind, TokenKind::Text { .. } | TokenKind::Variable) => {
                Some(self.value()?)
            }
            _ => None,
        };
        let arguments = if self.symbol(",") { self.list(Self::value)? } else { Vec::new() };
        if self.next_is("with") && self.ahead_is(1, "errordata") {
            let why = "there is no extended error data";
            return Err(Error::refused("raiserror … with errordata", why, line));
        }
        Ok(Raise::Number { number, message, arguments })
    }

    fn raised_number(&mut self) -> Result<crate::tree::Expression, Error> {
        let ahead = usize::from(self.next_is_symbol("-"));
        match self.ahead(ahead) {
            Some(token) if matches!(token.kind, TokenKind::Integer | TokenKind::Variable) => {
                self.operand_with_sign()
            }
            _ => Err(self.wrong()),
        }
    }

    fn raiserror_with_severity(&mut self) -> Result<StatementKind, Error> {
        let mut values = self.in_parentheses(Self::value)?.into_iter();
        let (Some(message), Some(severity), Some(state)) = (values.next(), values.next(), values.next())
        else {
            return Err(self.wrong());
        };
        let arguments = values.collect();
        let (mut set_error, mut nowait, mut log) = (false, false, false);
        if self.word("with") {
            self.list(|parser| {
                set_error |= parser.next_is("seterror");
                nowait |= parser.next_is("nowait");
                log |= parser.next_is("log");
                parser.expect_any(&["seterror", "nowait", "log"])
            })?;
        }
        let raise = Raise::Severity { message, severity, state, arguments, set_error, nowait, log };
        Ok(StatementKind::Raise(Box::new(raise)))
    }

    fn throw(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if !self.begins_expression() || self.begins_label() {
            return Ok(StatementKind::Throw(None));
        }
        let number = self.value()?;
        self.expect_symbol(",")?;
        let message = self.value()?;
        self.expect_symbol(",")?;
        let state = self.value()?;
        Ok(StatementKind::Throw(Some(Box::new(Throw { number, message, state }))))
    }
}
