//! A batch split into statements. Those about the session itself are answered by the gateway; queries go to
//! PostgreSQL as they stand; what is neither is refused by name.

use super::exec::{self, Execute};
use super::lexer::{tokens, Kind, Token};
use super::{keywords, query};
use crate::tds::tokens::message::ServerMessage;

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
    /// `select @@a, @@b name`: variables with the names of their columns.
    Variables(Vec<(String, String)>),
    Print(String),
    /// `if @@trancount > 0 …`
    IfInTransaction(Box<Statement>),
    /// SQL for PostgreSQL; whether it is a query that gives rows is PostgreSQL's to say.
    Query(String),
}

/// Words that begin a statement of their own.
const LEADING: [&str; 12] = [
    "select", "insert", "update", "delete", "exec", "execute", "use", "begin", "commit", "rollback", "print",
    "if",
];

/// Reads a whole batch before any of it runs, as T-SQL does: an error means that nothing ran.
/// `quoted_identifiers`: whether "x" is a name (otherwise it is a text).
pub fn parse(text: &str, quoted_identifiers: bool) -> Result<Vec<Statement>, ServerMessage> {
    if text.contains('\0') {
        return Err(syntax("the batch holds a NUL character"));
    }
    let tokens = tokens(text).map_err(|problem| syntax(&problem))?;
    let mut parser = Parser { text, tokens: &tokens, at: 0, quoted_identifiers };
    let mut statements = Vec::new();
    while parser.skip_semicolons() {
        let statement = parser.statement(statements.is_empty())?;
        statements.push(statement);
    }
    Ok(statements)
}

pub fn syntax(problem: &str) -> ServerMessage {
    ServerMessage::error(102, 15, format!("Incorrect syntax: {problem}."))
}

fn not_understood(what: &str) -> ServerMessage {
    ServerMessage::error(
        102,
        15,
        format!("'{what}' is not understood: ringlog runs procedure calls, queries and session settings."),
    )
}

pub struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    quoted_identifiers: bool,
}

impl<'a> Parser<'a> {
    pub fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    pub fn advance(&mut self) -> Option<&'a Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    /// Takes the next token when it is `symbol`.
    pub fn symbol(&mut self, symbol: char) -> bool {
        let found = self.peek().is_some_and(|token| token.is_symbol(symbol));
        self.at += usize::from(found);
        found
    }

    /// Takes the next token when it is one of the keywords.
    pub fn keyword(&mut self, keywords: &[&str]) -> bool {
        let found = self.peek().is_some_and(|token| keywords.iter().any(|keyword| token.is(keyword)));
        self.at += usize::from(found);
        found
    }

    /// Whether the statement ends here.
    pub fn at_end(&self) -> bool {
        self.peek().is_none_or(|token| {
            token.is_symbol(';')
                || token.is("set")
                || LEADING.iter().any(|leading| token.is(leading))
                || keywords::begins_other_statement(token)
        })
    }

    /// The text of a token, for messages.
    pub fn shown(&self, token: Option<&Token>) -> String {
        token.and_then(|token| self.text.get(token.span.clone())).unwrap_or("the end of the batch").to_owned()
    }

    /// Skips semicolons; whether anything is left.
    fn skip_semicolons(&mut self) -> bool {
        while self.symbol(';') {}
        self.peek().is_some()
    }

    fn statement(&mut self, first: bool) -> Result<Statement, ServerMessage> {
        if self.keyword(&["set"]) {
            return Ok(Statement::Set(self.words()));
        }
        if self.keyword(&["use"]) {
            let token = self.advance();
            let name =
                token.and_then(Token::identifier).ok_or_else(|| syntax("use wants a database name"))?;
            return Ok(Statement::Use(name.to_owned()));
        }
        if self.keyword(&["exec", "execute"]) {
            return exec::parse(self).map(Statement::Execute);
        }
        if self.keyword(&["print"]) {
            return match self.advance().map(|token| &token.kind) {
                Some(Kind::Text(text)) => Ok(Statement::Print(text.clone())),
                Some(Kind::DoubleQuoted(text)) if !self.quoted_identifiers => {
                    Ok(Statement::Print(text.clone()))
                }
                _ => Err(syntax("print wants a text")),
            };
        }
        if let Some(statement) = self.transaction()? {
            return Ok(statement);
        }
        if self.keyword(&["if"]) {
            return self.condition();
        }
        let Some(token) = self.peek() else { return Err(syntax("a statement is missing")) };
        if ["select", "insert", "update", "delete", "with", "values"].iter().any(|word| token.is(word)) {
            return self.query();
        }
        // a batch may begin with the bare name of a procedure
        if first && token.identifier().is_some() && !keywords::begins_other_statement(token) {
            return exec::parse(self).map(Statement::Execute);
        }
        Err(not_understood(&self.shown(Some(token))))
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
        let start = self.at;
        let end = query::end(self.tokens, start);
        self.at = end;
        let tokens = self.tokens.get(start..end).unwrap_or(&[]);
        if let Some(variables) = query::variables(tokens) {
            return Ok(Statement::Variables(variables));
        }
        query::for_postgres(self.text, tokens, self.quoted_identifiers).map(Statement::Query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        parse(text, true).unwrap().iter().map(|statement| format!("{statement:?}")).collect()
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
            shown("select a from [x y].t where b = 'set' select 2; update t set a = 1 where b = 2"),
            [
                r#"Query("select a from \"x y\".t where b = 'set'")"#,
                r#"Query("select 2")"#,
                r#"Query("update t set a = 1 where b = 2")"#
            ]
        );
        assert_eq!(shown("insert into t select 1 union all select 2").len(), 1);
        assert_eq!(
            shown("select a from t save tran s exec p 1 save transaction s"),
            [r#"Query("select a from t")"#, r#"Save("s")"#, &shown("exec p 1")[0], r#"Save("s")"#]
        );
    }

    #[test]
    fn databases_are_schemas() {
        assert_eq!(
            shown("select * from log..t, log.dbo.t u where u.a=1.5"),
            [r#"Query("select * from log.t, log.t u where u.a=1.5")"#]
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, name) in [
            ("while 1 = 1 select 1", "while"),
            ("declare @x int", "declare"),
            ("create table t (a int)", "create"),
            ("select * from #t", "#t"),
            ("select @x", "@x"),
            ("select 1 where 'a' like '[ab]%'", "like"),
            ("select 2 ^ 3", "^"),
            ("update t set a = s.a from t, s", "from"),
            ("waitfor delay '0:0:1'", "waitfor"),
            ("exec p return select 1", "return"),
            ("select a return select 2", "return"),
            ("select a from t where b = 1 while 1 = 1 select 2", "while"),
            ("select count(*) from t declare @a int", "declare"),
            ("select x = 1", "="),
            ("select a, (select b = 1) from t", "="),
            ("exec p 1e400", "1e400"),
            ("select 'a\0b'", "NUL"),
        ] {
            let error = parse(text, true).unwrap_err();
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
            "select load, t.open, case when a = 1 then 2 else close end from t where kill in (1) order by dump",
        ] {
            assert_eq!(parse(text, true).map(|statements| statements.len()), Ok(1), "{text}");
        }
    }

    #[test]
    fn double_quotes_follow_the_setting() {
        let statements = parse("select \"a\"", false).unwrap();
        assert_eq!(format!("{statements:?}"), r#"[Query("select 'a'")]"#);
    }
}
