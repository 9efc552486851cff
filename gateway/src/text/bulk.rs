//! `insert bulk table [(column type, …)] [with (hint, …)]`: what clients send before the rows of a bulk copy
//! (FreeTDS src/tds/bulk.c tds_bcp_start_insert_stmt; mssql-jdbc SQLServerBulkCopy.createInsertBulkCommand).

use super::lexer::{Kind, Token};
use super::parser::{syntax, Parser};
use crate::catalogue::quoted;
use crate::tds::tokens::message::ServerMessage;

/// Where the rows of a bulk copy go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertBulk {
    /// The table's name in PostgreSQL's SQL.
    pub table: String,
    /// Names of the columns as PostgreSQL has them; empty: all columns of the table.
    pub columns: Vec<String>,
    /// NULL means NULL, also where a column has a default.
    pub keep_nulls: bool,
}

/// Reads what follows `insert bulk`. The declared types say nothing new: the rows come with their own.
pub fn parse(parser: &mut Parser<'_>) -> Result<InsertBulk, ServerMessage> {
    // the owner is always the schema's
    let is_owner =
        parser.peek().and_then(Token::identifier).is_some_and(|name| name.eq_ignore_ascii_case("dbo"));
    if is_owner && parser.tokens.get(parser.at + 1).is_some_and(|token| token.is_symbol('.')) {
        parser.at += 2;
    }
    let start = parser.at;
    loop {
        let named = parser.peek().is_some_and(|token| token.identifier().is_some());
        parser.at += usize::from(named);
        if !parser.symbol('.') {
            break;
        }
    }
    let end = parser.at;
    if end == start {
        return Err(syntax("insert bulk wants a table"));
    }
    let table = table(parser.tokens.get(start..end).unwrap_or(&[]));
    let mut columns = Vec::new();
    if parser.symbol('(') {
        columns = list(parser)?;
        if columns.is_empty() {
            return Err(syntax("insert bulk wants columns between its parentheses"));
        }
    }
    let mut hints = Vec::new();
    if parser.keyword(&["with"]) {
        if !parser.symbol('(') {
            return Err(syntax("insert bulk … with wants a parenthesis"));
        }
        hints = list(parser)?;
    }
    let keep_nulls = hints.iter().any(|hint| hint.eq_ignore_ascii_case("keep_nulls"));
    Ok(InsertBulk { table, columns, keep_nulls })
}

/// That rows follow leaves no place for other statements.
pub fn alone() -> ServerMessage {
    ServerMessage::error(102, 15, "'insert bulk' stands alone in its batch: the rows follow it.")
}

/// `a..b` and `a.dbo.b` mean b in schema a.
fn table(tokens: &[Token]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut names = tokens.iter().filter_map(|token| Some((token, token.identifier()?))).peekable();
    while let Some((token, name)) = names.next() {
        if names.peek().is_some() && !parts.is_empty() && name.eq_ignore_ascii_case("dbo") {
            continue;
        }
        // a bare word is PostgreSQL's to fold, but for the sign of a temporary table
        let is_bare = matches!(&token.kind, Kind::Word(word) if !word.starts_with('#'));
        parts.push(if is_bare { name.to_owned() } else { quoted(name) });
    }
    parts.join(".")
}

/// The first word of each item up to the closing parenthesis.
fn list(parser: &mut Parser<'_>) -> Result<Vec<String>, ServerMessage> {
    let mut words = Vec::new();
    loop {
        if words.is_empty() && parser.symbol(')') {
            return Ok(words);
        }
        let token = parser.advance();
        match token.and_then(Token::identifier) {
            Some(word) => words.push(word.to_owned()),
            None => return Err(syntax(&format!("'{}' in insert bulk", parser.shown(token)))),
        }
        let mut depth = 0u32;
        loop {
            let token = parser.advance();
            match token {
                None => return Err(syntax("a parenthesis of insert bulk is not closed")),
                Some(token) if token.is_symbol('(') => depth += 1,
                Some(token) if token.is_symbol(')') && depth == 0 => return Ok(words),
                Some(token) if token.is_symbol(')') => depth -= 1,
                Some(token) if token.is_symbol(',') && depth == 0 => break,
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch;
    use super::super::parser::Syntax;
    use super::*;
    use crate::program::Action;

    fn read(text: &str) -> Result<InsertBulk, String> {
        let syntax = Syntax { quoted_identifiers: true, placeholders: false };
        match batch::read(text, syntax, []) {
            Ok(program) => match program.unwrap().statements.remove(0).action {
                Action::InsertBulk(bulk) => Ok(bulk),
                other => panic!("{other:?}"),
            },
            Err(message) => Err(message.text),
        }
    }

    #[test]
    fn what_clients_send() {
        let bulk = |table: &str, columns: &[&str], keep_nulls| InsertBulk {
            table: table.to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            keep_nulls,
        };
        // FreeTDS at 7.4 and 5.0, go-mssqldb, tedious, mssql-jdbc
        assert_eq!(
            read("insert bulk log..t ([a] int, [B c] NVARCHAR(20) COLLATE X, [d] numeric(10,2)) with (TABLOCK)"),
            Ok(bulk("log.t", &["a", "B c", "d"], false))
        );
        assert_eq!(read("insert bulk dbo.t"), Ok(bulk("t", &[], false)));
        assert_eq!(read("insert bulk #t"), Ok(bulk("\"#t\"", &[], false)));
        assert_eq!(read("insert bulk log.dbo.[t]"), Ok(bulk("log.\"t\"", &[], false)));
        assert_eq!(
            read("INSERT BULK [my t] ([a] int) WITH (CHECK_CONSTRAINTS,KEEP_NULLS, ORDER([a] ASC, b))"),
            Ok(bulk("\"my t\"", &["a"], true))
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, words) in [
            ("insert bulk", "wants a table"),
            ("insert bulk t (", "'the end of the batch'"),
            ("insert bulk t ()", "wants columns"),
            ("insert bulk t (a int", "not closed"),
            ("insert bulk t (1)", "'1'"),
            ("insert bulk t (a int) with tablock", "parenthesis"),
            ("insert bulk t (a int) select 1", "alone"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
