//! A batch of text that asks no query, split into statements: procedure calls, what concerns the session, and
//! variables. Such text never leaves Rust; any other goes to the compiler.

use super::bulk::{self, InsertBulk};
use super::declaration;
use super::exec;
use super::keywords;
use super::lexer::{tokens, Kind, Token};
use super::literal::{scalar, text_of};
use super::parser::{placeholder, syntax, Parser, Syntax};
use crate::convert::SqlType;
use crate::program::{Action, Condition, Expression, Program, Statement};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The program of a text; None when it is for the compiler, which also says what is wrong with it. `declared`:
/// the variables that are there already.
pub fn read<'a>(
    text: &str,
    reading: Syntax,
    declared: impl IntoIterator<Item = (&'a str, SqlType)>,
) -> Result<Option<Program>, ServerMessage> {
    let Ok(tokens) = tokens(text) else { return Ok(None) };
    let mut parser = Parser::new(text, &tokens, reading);
    if let Some(bulk) = parser.insert_bulk()? {
        let statements = vec![Statement { line: 1, action: Action::InsertBulk(bulk) }];
        return Ok(Some(Program { statements, placeholders: 0 }));
    }
    let mut statements = Vec::new();
    while parser.skip_semicolons() {
        if parser.statements(&mut statements).is_err() {
            return Ok(None);
        }
    }
    let placeholders = parser.placeholders();
    let mut known: HashMap<String, Option<SqlType>> =
        declared.into_iter().map(|(name, sql_type)| (name.to_owned(), Some(sql_type))).collect();
    known.extend((1..=placeholders).map(|number| (placeholder(number), None)));
    let all_plain = statements.iter().all(|statement| is_plain(statement, &mut known));
    Ok(all_plain.then_some(Program { statements, placeholders }))
}

/// Whether the statement names only variables that are declared before it, and gives them only values that they
/// hold as they are: how others are converted is for the compiler to say.
fn is_plain(statement: &Statement, known: &mut HashMap<String, Option<SqlType>>) -> bool {
    let is_known = |name: &str, known: &HashMap<String, Option<SqlType>>| {
        name.starts_with("@@") || known.contains_key(name)
    };
    let value_is_known = |value: &Expression, known: &HashMap<String, Option<SqlType>>| match value {
        Expression::Variable(name) => is_known(name, known),
        _ => true,
    };
    match &statement.action {
        Action::Declare(declaration) => {
            let sql_type = Some(declaration.sql_type);
            let value = declaration.value.as_ref();
            value.is_none_or(|value| holds(sql_type, value, known))
                && known.insert(declaration.name.clone(), sql_type).is_none()
        }
        Action::Execute(execute) => {
            let mut values = execute.arguments.iter().filter_map(|argument| argument.value.as_ref());
            let status = execute.status.as_ref().is_none_or(|name| is_known(name, known));
            status && values.all(|value| value_is_known(value, known))
        }
        Action::Assign(name, value) => known.get(name).is_some_and(|found| holds(*found, value, known)),
        Action::Print(value) | Action::ExecuteText(value) => value_is_known(value, known),
        Action::Variables(names) => names.iter().all(|(name, _)| is_known(name, known)),
        Action::If { then, .. } => then.iter().all(|statement| is_plain(statement, known)),
        _ => true,
    }
}

/// Whether a variable of this type holds the value as it is.
fn holds(sql_type: Option<SqlType>, value: &Expression, known: &HashMap<String, Option<SqlType>>) -> bool {
    let Some(sql_type) = sql_type else { return false };
    match value {
        Expression::Literal(Value::Null) => true,
        Expression::Literal(Value::Int(number)) => match sql_type {
            // tinyint is one too
            SqlType::INT2 => (0..=255).contains(number),
            SqlType::INT4 => i32::try_from(*number).is_ok(),
            SqlType::INT8 => true,
            _ => false,
        },
        Expression::Literal(Value::Float(_)) => sql_type == SqlType::FLOAT8,
        Expression::Literal(Value::Text(text)) => {
            let is_varchar = sql_type.oid == SqlType::varchar(None).oid;
            let length = usize::try_from(sql_type.typmod - 4).unwrap_or(usize::MAX);
            // how much room a character takes is not the same for all clients
            is_varchar && text.is_ascii() && !text.is_empty() && text.len() <= length
        }
        Expression::Variable(name) => known.get(name).is_some_and(|found| *found == Some(sql_type)),
        _ => false,
    }
}

pub fn undeclared(name: &str) -> ServerMessage {
    ServerMessage::error(137, 15, format!("Must declare the scalar variable \"{name}\"."))
}

fn foreign(what: &str) -> ServerMessage {
    syntax(&format!("'{what}' is for the compiler"))
}

impl Parser<'_> {
    /// `insert bulk` begins a batch and is all of it.
    fn insert_bulk(&mut self) -> Result<Option<InsertBulk>, ServerMessage> {
        let [insert, bulk, ..] = self.tokens else { return Ok(None) };
        if !insert.is("insert") || !bulk.is("bulk") {
            return Ok(None);
        }
        self.at = 2;
        let read = bulk::parse(self)?;
        if self.skip_semicolons() {
            return Err(bulk::alone());
        }
        Ok(Some(read))
    }

    /// Skips semicolons; whether anything is left.
    fn skip_semicolons(&mut self) -> bool {
        while self.symbol(';') {}
        self.peek().is_some()
    }

    /// The next statement; a declaration of several variables is several.
    fn statements(&mut self, statements: &mut Vec<Statement>) -> Result<(), ServerMessage> {
        let line = self.line();
        if self.keyword(&["declare"]) {
            let declarations = declaration::list(self)?.into_iter();
            statements
                .extend(declarations.map(|declared| Statement { line, action: Action::Declare(declared) }));
            return Ok(());
        }
        let action = self.action(statements.is_empty())?;
        statements.push(Statement { line, action });
        Ok(())
    }

    fn action(&mut self, first: bool) -> Result<Action, ServerMessage> {
        if self.keyword(&["set"]) {
            return self.set();
        }
        if self.keyword(&["use"]) {
            let token = self.advance();
            let name =
                token.and_then(Token::identifier).ok_or_else(|| syntax("use wants a database name"))?;
            return Ok(Action::Use(name.to_owned()));
        }
        if self.keyword(&["exec", "execute"]) {
            if self.peek().is_some_and(|token| token.is_symbol('(')) {
                return exec::parse_text(self).map(Action::ExecuteText);
            }
            return exec::parse(self).map(Action::Execute);
        }
        if self.keyword(&["print"]) {
            return self.print();
        }
        if let Some(action) = self.transaction()? {
            return Ok(action);
        }
        if self.keyword(&["if"]) {
            return self.condition();
        }
        if self.keyword(&["select"]) {
            return self.variables();
        }
        let Some(token) = self.peek() else { return Err(syntax("a statement is missing")) };
        let begins_query = ["insert", "update", "delete", "with"].iter().any(|word| token.is(word));
        // a batch may begin with the bare name of a procedure
        if first && token.identifier().is_some() && !begins_query && !keywords::begins_other_statement(token)
        {
            return exec::parse(self).map(Action::Execute);
        }
        Err(foreign(&self.shown(Some(token))))
    }

    fn set(&mut self) -> Result<Action, ServerMessage> {
        if let Some(Token { kind: Kind::Variable(name), .. }) = self.peek() {
            let name = name.to_lowercase();
            self.advance();
            if !self.symbol('=') {
                return Err(syntax(&format!("set {name} wants = and a value")));
            }
            let value = scalar(self, false)?;
            if !self.at_end() {
                return Err(foreign(&format!("set {name} = … {}", self.shown(self.peek()))));
            }
            return Ok(Action::Assign(name, value));
        }
        Ok(Action::Set(self.words()))
    }

    fn print(&mut self) -> Result<Action, ServerMessage> {
        if let Some(text) = self.peek().and_then(|token| text_of(token, self.syntax.quoted_identifiers)) {
            self.advance();
            return Ok(Action::Print(Expression::Literal(Value::Text(Cow::Owned(text.to_owned())))));
        }
        match self.peek().map(|token| &token.kind) {
            Some(Kind::Variable(_) | Kind::Number(_)) => scalar(self, false).map(Action::Print),
            _ => Err(syntax("print wants a text or a variable")),
        }
    }

    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while !self.at_end() {
            let Some(token) = self.advance() else { break };
            words.push(match &token.kind {
                Kind::Word(word) | Kind::Text(word) | Kind::Bracketed(word) | Kind::DoubleQuoted(word) => {
                    word.to_lowercase()
                }
                _ => self.shown(Some(token)),
            });
        }
        words
    }

    fn transaction(&mut self) -> Result<Option<Action>, ServerMessage> {
        let next_is_transaction = |parser: &Parser<'_>| {
            parser.tokens.get(parser.at + 1).is_some_and(|token| token.is("tran") || token.is("transaction"))
        };
        let Some(token) = self.peek() else { return Ok(None) };
        let action = if token.is("begin") {
            if !next_is_transaction(self) {
                return Err(foreign("begin"));
            }
            self.at += 2;
            Action::Begin(self.optional_name())
        } else if token.is("commit") {
            self.at += 1;
            self.keyword(&["tran", "transaction", "work"]);
            self.optional_name();
            Action::Commit
        } else if token.is("rollback") {
            self.at += 1;
            self.keyword(&["tran", "transaction", "work"]);
            Action::Rollback(self.optional_name())
        } else if token.is("save") && next_is_transaction(self) {
            self.at += 2;
            let name = self.optional_name();
            if name.is_empty() {
                return Err(syntax("save transaction wants a name"));
            }
            Action::Save(name)
        } else {
            return Ok(None);
        };
        Ok(Some(action))
    }

    fn optional_name(&mut self) -> String {
        if self.at_end() {
            return String::new();
        }
        match self.peek().and_then(Token::identifier) {
            Some(name) => {
                self.at += 1;
                name.to_owned()
            }
            None => String::new(),
        }
    }

    /// Only `if @@trancount > 0`, which drivers send before a commit or a rollback.
    fn condition(&mut self) -> Result<Action, ServerMessage> {
        let variable = matches!(self.advance().map(|token| &token.kind),
            Some(Kind::Variable(name)) if name.eq_ignore_ascii_case("@@trancount"));
        let greater = self.symbol('>');
        let zero =
            matches!(self.advance().map(|token| &token.kind), Some(Kind::Number(digits)) if digits == "0");
        if !(variable && greater && zero) {
            return Err(foreign("if"));
        }
        let line = self.line();
        let then = vec![Statement { line, action: self.action(false)? }];
        Ok(Action::If { condition: Condition::InTransaction, then, otherwise: Vec::new() })
    }

    /// `select @a [[as] name], @@b …` and nothing else.
    fn variables(&mut self) -> Result<Action, ServerMessage> {
        let mut variables = Vec::new();
        loop {
            let Some(Token { kind: Kind::Variable(name), .. }) = self.advance() else {
                return Err(foreign("select"));
            };
            let has_as = self.keyword(&["as"]);
            let alias = match self.peek() {
                Some(token) if has_as || !(self.at_end() || keywords::continues_query(token)) => {
                    token.identifier()
                }
                _ => None,
            };
            self.at += usize::from(alias.is_some());
            variables.push((name.to_lowercase(), alias.unwrap_or_default().to_owned()));
            if !self.symbol(',') {
                break;
            }
        }
        if self.at_end() {
            Ok(Action::Variables(variables))
        } else {
            Err(foreign("select"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEVEN: Syntax = Syntax { quoted_identifiers: true, placeholders: false };
    const DYNAMIC: Syntax = Syntax { quoted_identifiers: false, placeholders: true };

    fn parse(text: &str, syntax: Syntax) -> Option<Program> {
        read(text, syntax, [("@p1", SqlType::INT4), ("@p2", SqlType::INT4)]).unwrap()
    }

    fn shown(text: &str) -> Vec<String> {
        let program = parse(text, SEVEN).unwrap();
        program.statements.iter().map(|statement| format!("{:?}", statement.action)).collect()
    }

    #[test]
    fn start_up_batches_of_drivers() {
        assert_eq!(
            shown("SET ARITHABORT ON;SET QUOTED_IDENTIFIER ON SET TEXTSIZE 64512\nuse [log]"),
            [
                r#"Set(["arithabort", "on"])"#,
                r#"Set(["quoted_identifier", "on"])"#,
                r#"Set(["textsize", "64512"])"#,
                r#"Use("log")"#
            ]
        );
        assert_eq!(shown("select @@spid"), [r#"Variables([("@@spid", "")])"#]);
        assert_eq!(
            shown("select @@version as [a b], @p1 c set nocount on"),
            [r#"Variables([("@@version", "a b"), ("@p1", "c")])"#, r#"Set(["nocount", "on"])"#]
        );
        let [condition, begin] = &shown("IF @@TRANCOUNT > 0 COMMIT BEGIN TRANSACTION")[..] else { panic!() };
        assert!(condition
            .starts_with("If { condition: InTransaction, then: [Statement { line: 1, action: Commit }]"));
        assert_eq!(begin, r#"Begin("")"#);
    }

    #[test]
    fn calls_with_variables() {
        let program = parse("EXEC @P1 = p @P2, @b = @P2 OUT, @c = default, @d = -1.5", SEVEN).unwrap();
        let Action::Execute(execute) = &program.statements[0].action else { panic!() };
        assert_eq!(execute.status.as_deref(), Some("@p1"));
        let names: Vec<_> = execute.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["", "b", "c", "d"]);
        assert!(execute.arguments[1].output && execute.arguments[2].value.is_none());
        let program = parse("exec p ?, ? output exec ? = q ?", DYNAMIC).unwrap();
        assert_eq!(program.placeholders, 4);
    }

    #[test]
    fn statements_know_their_lines() {
        let program = parse("exec p 1\n\ndeclare @a int,\n@b int exec p\n/* a\n*/ exec q", SEVEN).unwrap();
        let lines: Vec<_> = program.statements.iter().map(|statement| statement.line).collect();
        assert_eq!(lines, [1, 3, 3, 4, 6]);
    }

    #[test]
    fn what_asks_a_query_is_for_the_compiler() {
        for text in [
            "select 1",
            "select @p1 = 2",
            "select @p1 + 1",
            "select @p1 from t",
            "select @p1 union select @p2",
            "select @@spid, a",
            "insert t values (1)",
            "exec p 1 select 2",
            "exec p 1 + 2",
            "exec ('a' + @p1)",
            "while 1 = 1 exec p",
            "if @@trancount > 0 exec p else exec q",
            "if @@trancount > 0 begin exec p end",
            "begin exec p end",
            "create procedure p as exec q",
            "set @p1 = 1 + 2",
            "set @p1 = -@p2",
            "declare @x int = 1 + 2",
            "print 'a' + 'b'",
            "return",
            // what is converted
            "set @p1 = 1.9",
            "set @p1 = '1'",
            "set @p1 = 3000000000",
            "set @p1 = @@error",
            "declare @x smallint = @p1",
            "declare @x varchar(2) = 'abc'",
            "declare @x char(2) = 'ab'",
            "declare @x tinyint = -1",
            "declare @x bit = 1",
        ] {
            assert!(parse(text, SEVEN).is_none(), "{text}");
        }
    }

    #[test]
    fn values_that_variables_hold_need_no_converting() {
        for text in [
            "set @p1 = -5 set @p1 = null set @p1 = @p2",
            "declare @x varchar(3) = 'abc', @y varchar(max) = 'abc', @z float = 1e3, @n bigint = 3000000000",
        ] {
            assert!(parse(text, SEVEN).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_for_the_compiler_to_say() {
        for text in [
            "exec p @x output",
            "exec p 1 2",
            "exec p 1,",
            "exec",
            "select @x",
            "declare @p1 int",
            "declare @x geography",
            "exec p 'never ends",
            "exec p 1e400",
        ] {
            assert!(parse(text, SEVEN).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_read_or_left(
            text in "(select|exec|declare|set|@p1|@x|=|,|\\?|output|from|if|'a'|\\(|\\)|p|;|1| |\n){0,12}"
        ) {
            for syntax in [SEVEN, DYNAMIC] {
                let _ = read(&text, syntax, [("@p1", SqlType::INT4)]);
            }
        }
    }
}
