//! A batch split into statements. Those about the session itself are answered by the gateway; queries go to
//! PostgreSQL as they stand; what is neither is refused by name.

use super::bulk::{self, InsertBulk};
use super::declaration::{self, Declaration};
use super::exec::{self, Execute};
use super::keywords;
use super::lexer::{tokens, Kind, Token};
use super::literal::{scalar, text_of, Scalar};
use super::parser::{placeholder, syntax, Parser, Syntax};
use super::query::{self, Query};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;
use std::collections::HashSet;

#[derive(Debug)]
pub enum Statement {
    /// `set name value …`
    Set(Vec<String>),
    Use(String),
    /// The name of the transaction, or "".
    Begin(String),
    Commit,
    /// The name of a savepoint or of the transaction, or "" for the whole transaction.
    Rollback(String),
    Save(String),
    Execute(Execute),
    /// `exec ('text' + @variable)`
    ExecuteText(Vec<Scalar>),
    Declare(Vec<Declaration>),
    /// `set @a = value`
    Assign(String, Scalar),
    /// `select @a, @@b name`: variables with the names of their columns.
    Variables(Vec<(String, String)>),
    Print(Scalar),
    /// `if @@trancount > 0 …`
    IfInTransaction(Box<Statement>),
    /// The rows follow in a message of their own.
    InsertBulk(InsertBulk),
    /// SQL for PostgreSQL; whether it is a query that gives rows is PostgreSQL's to say.
    Query(Query),
}

/// A text that has been read.
#[derive(Debug)]
pub struct Batch {
    pub statements: Vec<Statement>,
    /// How many `?` it has.
    pub placeholders: usize,
}

/// Reads a whole batch before any of it runs, as T-SQL does: an error means that nothing ran. `declared`:
/// the variables that are there already.
pub fn parse<'a>(
    text: &str,
    reading: Syntax,
    declared: impl IntoIterator<Item = &'a str>,
) -> Result<Batch, ServerMessage> {
    if text.contains('\0') {
        return Err(syntax("the batch holds a NUL character"));
    }
    let tokens = tokens(text).map_err(|problem| syntax(&problem))?;
    let mut parser = Parser::new(text, &tokens, reading);
    let mut statements = Vec::new();
    while parser.skip_semicolons() {
        let statement = parser.statement(statements.is_empty())?;
        statements.push(statement);
    }
    let placeholders = parser.placeholders();
    let mut known: HashSet<String> = declared.into_iter().map(str::to_owned).collect();
    known.extend((1..=placeholders).map(placeholder));
    for statement in &statements {
        check_declared(statement, &mut known)?;
    }
    Ok(Batch { statements, placeholders })
}

/// Variables are known from their declaration on, to the end of the batch.
fn check_declared(statement: &Statement, known: &mut HashSet<String>) -> Result<(), ServerMessage> {
    let check = |name: &str, known: &HashSet<String>| {
        if name.starts_with("@@") || known.contains(name) {
            return Ok(());
        }
        Err(undeclared(name))
    };
    let check_scalar = |scalar: &Scalar, known: &HashSet<String>| match scalar {
        Scalar::Variable(name) => check(name, known),
        Scalar::Literal(_) => Ok(()),
    };
    match statement {
        Statement::Declare(declarations) => {
            for declaration in declarations {
                if let Some(value) = &declaration.value {
                    check_scalar(value, known)?;
                }
                if !known.insert(declaration.name.clone()) {
                    return Err(ServerMessage::error(
                        134,
                        15,
                        format!("The variable name '{}' has already been declared.", declaration.name),
                    ));
                }
            }
        }
        Statement::Execute(execute) => {
            if let Some(name) = &execute.status {
                check(name, known)?;
            }
            for value in execute.arguments.iter().filter_map(|argument| argument.value.as_ref()) {
                check_scalar(value, known)?;
            }
        }
        Statement::ExecuteText(parts) => {
            for part in parts {
                check_scalar(part, known)?;
            }
        }
        Statement::Assign(name, value) => {
            check(name, known)?;
            check_scalar(value, known)?;
        }
        Statement::Print(value) => check_scalar(value, known)?,
        Statement::Variables(names) => {
            for (name, _) in names {
                check(name, known)?;
            }
        }
        Statement::Query(query) => {
            for name in query.variables.iter().chain(&query.assigns) {
                check(name, known)?;
            }
        }
        Statement::IfInTransaction(inner) => check_declared(inner, known)?,
        _ => {}
    }
    Ok(())
}

pub fn undeclared(name: &str) -> ServerMessage {
    ServerMessage::error(137, 15, format!("Must declare the scalar variable \"{name}\"."))
}

fn not_understood(what: &str) -> ServerMessage {
    ServerMessage::error(
        102,
        15,
        format!("'{what}' is not understood: ringlog runs procedure calls, queries and session settings."),
    )
}

impl Parser<'_> {
    /// Skips semicolons; whether anything is left.
    fn skip_semicolons(&mut self) -> bool {
        while self.symbol(';') {}
        self.peek().is_some()
    }

    fn statement(&mut self, first: bool) -> Result<Statement, ServerMessage> {
        if self.keyword(&["set"]) {
            return self.set();
        }
        if self.keyword(&["declare"]) {
            return declaration::list(self).map(Statement::Declare);
        }
        if self.keyword(&["use"]) {
            let token = self.advance();
            let name =
                token.and_then(Token::identifier).ok_or_else(|| syntax("use wants a database name"))?;
            return Ok(Statement::Use(name.to_owned()));
        }
        if self.keyword(&["exec", "execute"]) {
            if self.peek().is_some_and(|token| token.is_symbol('(')) {
                return exec::parse_text(self).map(Statement::ExecuteText);
            }
            return exec::parse(self).map(Statement::Execute);
        }
        if self.keyword(&["print"]) {
            return self.print();
        }
        if let Some(statement) = self.transaction()? {
            return Ok(statement);
        }
        if self.keyword(&["if"]) {
            return self.condition();
        }
        let Some(token) = self.peek() else { return Err(syntax("a statement is missing")) };
        if token.is("insert") && self.tokens.get(self.at + 1).is_some_and(|token| token.is("bulk")) {
            self.at += 2;
            return bulk::parse(self).map(Statement::InsertBulk);
        }
        if ["select", "insert", "update", "delete", "with", "values"].iter().any(|word| token.is(word)) {
            return self.query();
        }
        // a batch may begin with the bare name of a procedure
        if first && token.identifier().is_some() && !keywords::begins_other_statement(token) {
            return exec::parse(self).map(Statement::Execute);
        }
        Err(not_understood(&self.shown(Some(token))))
    }

    fn set(&mut self) -> Result<Statement, ServerMessage> {
        if let Some(Token { kind: Kind::Variable(name), .. }) = self.peek() {
            let name = name.to_lowercase();
            self.advance();
            if !self.symbol('=') {
                return Err(syntax(&format!("set {name} wants = and a value")));
            }
            let value = scalar(self, false)?;
            if !self.at_end() {
                return Err(not_understood(&format!("set {name} = … {}", self.shown(self.peek()))));
            }
            return Ok(Statement::Assign(name, value));
        }
        Ok(Statement::Set(self.words()))
    }

    fn print(&mut self) -> Result<Statement, ServerMessage> {
        if let Some(text) = self.peek().and_then(|token| text_of(token, self.syntax.quoted_identifiers)) {
            self.advance();
            return Ok(Statement::Print(Scalar::Literal(Value::Text(Cow::Owned(text.to_owned())))));
        }
        match self.peek().map(|token| &token.kind) {
            Some(Kind::Variable(_) | Kind::Number(_)) => scalar(self, false).map(Statement::Print),
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

    fn transaction(&mut self) -> Result<Option<Statement>, ServerMessage> {
        let next_is_transaction = |parser: &Parser<'_>| {
            parser.tokens.get(parser.at + 1).is_some_and(|token| token.is("tran") || token.is("transaction"))
        };
        let Some(token) = self.peek() else { return Ok(None) };
        let statement = if token.is("begin") {
            if !next_is_transaction(self) {
                return Err(not_understood("begin"));
            }
            self.at += 2;
            Statement::Begin(self.optional_name())
        } else if token.is("commit") {
            self.at += 1;
            self.keyword(&["tran", "transaction", "work"]);
            self.optional_name();
            Statement::Commit
        } else if token.is("rollback") {
            self.at += 1;
            self.keyword(&["tran", "transaction", "work"]);
            Statement::Rollback(self.optional_name())
        } else if token.is("save") && next_is_transaction(self) {
            self.at += 2;
            let name = self.optional_name();
            if name.is_empty() {
                return Err(syntax("save transaction wants a name"));
            }
            Statement::Save(name)
        } else {
            return Ok(None);
        };
        Ok(Some(statement))
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
    fn condition(&mut self) -> Result<Statement, ServerMessage> {
        let variable = matches!(self.advance().map(|token| &token.kind),
            Some(Kind::Variable(name)) if name.eq_ignore_ascii_case("@@trancount"));
        let greater = self.symbol('>');
        let zero =
            matches!(self.advance().map(|token| &token.kind), Some(Kind::Number(digits)) if digits == "0");
        if variable && greater && zero {
            return Ok(Statement::IfInTransaction(Box::new(self.statement(false)?)));
        }
        Err(not_understood("if"))
    }

    fn query(&mut self) -> Result<Statement, ServerMessage> {
        let end = query::end(self.tokens, self.at);
        let tokens = self.tokens.get(self.at..end).unwrap_or(&[]);
        if let Some(variables) = query::variables(tokens) {
            self.at = end;
            return Ok(Statement::Variables(variables));
        }
        query::for_postgres(self, end).map(Statement::Query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEVEN: Syntax = Syntax { quoted_identifiers: true, placeholders: false };
    const DYNAMIC: Syntax = Syntax { quoted_identifiers: false, placeholders: true };

    fn shown(text: &str) -> Vec<String> {
        let batch = parse(text, SEVEN, ["@p1", "@p2"]).unwrap();
        batch.statements.iter().map(show).collect()
    }

    fn show(statement: &Statement) -> String {
        match statement {
            Statement::Query(query) => {
                format!("{} {:?} {:?}", query.sql(|_| String::new()), query.variables, query.assigns)
            }
            other => format!("{other:?}"),
        }
    }

    fn sql(text: &str) -> Vec<String> {
        let batch = parse(text, SEVEN, ["@p1", "@p2"]).unwrap();
        let sql = |statement: &Statement| match statement {
            Statement::Query(query) => query.sql(|_| String::new()),
            other => panic!("{other:?}"),
        };
        batch.statements.iter().map(sql).collect()
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
            shown("IF @@TRANCOUNT > 0 COMMIT BEGIN TRANSACTION"),
            ["IfInTransaction(Commit)", r#"Begin("")"#]
        );
    }

    #[test]
    fn queries_are_passed_one_by_one() {
        assert_eq!(
            sql("select a from [x y].t where b = 'set' select 2; update t set a = 1 where b = 2"),
            ["select a from \"x y\".t where b = 'set'", "select 2", "update t set a = 1 where b = 2"]
        );
        assert_eq!(sql("insert into t select 1 union all select 2").len(), 1);
        assert_eq!(
            shown("select a from t save tran s exec p 1 save transaction s"),
            ["select a from t [] []", r#"Save("s")"#, &shown("exec p 1")[0], r#"Save("s")"#]
        );
    }

    #[test]
    fn databases_are_schemas() {
        assert_eq!(
            sql("select * from log..t, log.dbo.t u where u.a=1.5"),
            ["select * from log.t, log.t u where u.a=1.5"]
        );
    }

    #[test]
    fn variables_become_parameters() {
        assert_eq!(
            shown("select a from t where b=@P1 and c = @p2 or d = @p1"),
            [r#"select a from t where b=$1 and c = $2 or d = $1 ["@p1", "@p2"] []"#]
        );
        assert_eq!(
            shown("declare @n int, @m int select @n = count(*), @m=max(a) from t where b = @p1"),
            [
                r#"Declare([Declaration { name: "@n", sql_type: SqlType { oid: 23, typmod: -1 }, output: false, value: None }, Declaration { name: "@m", sql_type: SqlType { oid: 23, typmod: -1 }, output: false, value: None }])"#,
                r#"select  count(*), max(a) from t where b = $1 ["@p1"] ["@n", "@m"]"#
            ]
        );
        let batch = parse("exec p ?, ? output select ? where a = ?", DYNAMIC, []).unwrap();
        assert_eq!(batch.placeholders, 4);
        assert_eq!(show(&batch.statements[1]), r#"select $1 where a = $2 ["?3", "?4"] []"#);
    }

    #[test]
    fn calls_with_variables() {
        let batch = parse("EXEC @P1 = p @P2, @b = @P2 OUT, @c = default, @d = -1.5", SEVEN, ["@p1", "@p2"]);
        let Statement::Execute(execute) = &batch.unwrap().statements[0] else { panic!() };
        assert_eq!(execute.status.as_deref(), Some("@p1"));
        let names: Vec<_> = execute.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["", "b", "c", "d"]);
        assert!(execute.arguments[1].output && execute.arguments[2].value.is_none());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, name) in [
            ("while 1 = 1 select 1", "while"),
            ("create table t (a int)", "create"),
            ("select * from #t", "#t"),
            ("select @x", "@x"),
            ("exec p @x output", "@x"),
            ("select 1, @p1 = 2", "assigns"),
            ("update t set @p1 = a = 1", "@p1"),
            ("select 1 where 'a' like '[ab]%'", "like"),
            ("select 2 ^ 3", "^"),
            ("update t set a = s.a from t, s", "from"),
            ("waitfor delay '0:0:1'", "waitfor"),
            ("set @p1 = 1 + 2", "+"),
            ("declare @p1 int", "@p1"),
            ("exec p return select 1", "return"),
            ("select a return select 2", "return"),
            ("select a from t where b = 1 while 1 = 1 select 2", "while"),
            ("select x = 1", "="),
            ("select a, (select b = 1) from t", "="),
            ("exec p 1e400", "1e400"),
            ("select 'a\0b'", "NUL"),
        ] {
            let error = parse(text, SEVEN, ["@p1"]).unwrap_err();
            assert!(error.text.contains(name), "{text}: {}", error.text);
        }
    }

    #[test]
    fn comparisons_and_names_like_statements_pass() {
        for text in [
            "select a from t where b = 1",
            "select case when a = 1 then 2 end, a <= 2, count(*) from t join u on t.a = u.a where t.b = 1",
            "select a from (select b from u where c = 1) v where d = 2 order by e",
            "update t set a = 1 where b = 2",
            "select case @p1 when 1 then 2 end from t where @p1 = 3",
            "select load, t.open, case when a = 1 then 2 else close end from t where kill in (1) order by dump",
        ] {
            assert_eq!(sql(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn double_quotes_follow_the_setting() {
        let batch = parse("select \"a\"", DYNAMIC, []).unwrap();
        assert_eq!(show(&batch.statements[0]), "select 'a' [] []");
    }

    proptest! {
        #[test]
        fn every_text_is_read_or_refused(
            text in "(select|exec|declare|set|@p1|@x|=|,|\\?|output|from|like|'a'|\\(|\\)|p|;|1| ){0,12}"
        ) {
            for syntax in [SEVEN, DYNAMIC] {
                if let Ok(batch) = parse(&text, syntax, ["@p1"]) {
                    for statement in &batch.statements {
                        let _ = show(statement);
                    }
                }
            }
        }
    }
}
