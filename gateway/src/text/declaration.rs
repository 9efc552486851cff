//! Declarations of variables and parameters: `@a int, @b nvarchar(40) = 'x' output`.

use super::lexer::{tokens, Kind, Token};
use super::literal::scalar;
use super::parser::{syntax, Parser, Syntax};
use crate::convert::SqlType;
use crate::program::Declaration;
use crate::tds::tokens::message::ServerMessage;

/// Reads the text that declares the parameters of sp_executesql and sp_prepare.
pub fn parse(text: &str) -> Result<Vec<Declaration>, ServerMessage> {
    let tokens = tokens(text).map_err(|problem| syntax(&problem))?;
    let reading = Syntax { quoted_identifiers: true, placeholders: false };
    let mut parser = Parser::new(text, &tokens, reading);
    if parser.peek().is_none() {
        return Ok(Vec::new());
    }
    let declarations = list(&mut parser)?;
    match parser.peek() {
        None => Ok(declarations),
        found => Err(syntax(&format!("'{}' in a declaration", parser.shown(found)))),
    }
}

/// Reads declarations separated by commas.
pub fn list(parser: &mut Parser<'_>) -> Result<Vec<Declaration>, ServerMessage> {
    let mut declarations: Vec<Declaration> = Vec::new();
    loop {
        let declaration = declaration(parser)?;
        if declarations.iter().any(|other| other.name == declaration.name) {
            return Err(ServerMessage::error(
                134,
                15,
                format!("The variable name '{}' has already been declared.", declaration.name),
            ));
        }
        declarations.push(declaration);
        if !parser.symbol(',') {
            return Ok(declarations);
        }
    }
}

fn declaration(parser: &mut Parser<'_>) -> Result<Declaration, ServerMessage> {
    let name = match parser.advance() {
        Some(Token { kind: Kind::Variable(name), .. }) if !name.starts_with("@@") => name.to_lowercase(),
        found => return Err(syntax(&format!("'{}' where a variable is declared", parser.shown(found)))),
    };
    parser.keyword(&["as"]);
    let sql_type = sql_type(parser)?;
    let value = if parser.symbol('=') { Some(scalar(parser, false)?) } else { None };
    let output = parser.keyword(&["output", "out"]);
    parser.keyword(&["readonly"]);
    Ok(Declaration { name, sql_type, output, value })
}

/// The numbers in parentheses after a type's name; `max` counts as none.
struct Lengths {
    first: Option<u32>,
    second: Option<u32>,
}

fn sql_type(parser: &mut Parser<'_>) -> Result<SqlType, ServerMessage> {
    let mut name = type_word(parser)?;
    // sys.int, dbo.int
    if parser.symbol('.') {
        name = type_word(parser)?;
    }
    let two_words = match name.as_str() {
        "double" => parser.keyword(&["precision"]),
        "char" | "character" | "binary" | "nchar" => parser.keyword(&["varying"]),
        "national" => {
            name = type_word(parser)?;
            parser.keyword(&["varying"])
        }
        "unsigned" => {
            name = format!("u{}", type_word(parser)?);
            false
        }
        _ => false,
    };
    let lengths = lengths(parser)?;
    let length = lengths.first;
    Ok(match name.as_str() {
        "char" | "character" | "nchar" | "unichar" if !two_words => SqlType::char(length.or(Some(1))),
        "varchar" | "nvarchar" | "univarchar" | "char" | "character" | "nchar" => SqlType::varchar(length),
        "sysname" | "longsysname" => SqlType::varchar(Some(128)),
        "text" | "ntext" | "unitext" => SqlType::TEXT,
        "bit" => SqlType::BOOL,
        "tinyint" | "utinyint" | "smallint" => SqlType::INT2,
        "int" | "integer" | "usmallint" => SqlType::INT4,
        "bigint" | "uint" | "uinteger" => SqlType::INT8,
        "ubigint" => SqlType::numeric(20, 0),
        "real" => SqlType::FLOAT4,
        "float" if length.is_some_and(|digits| digits <= 24) => SqlType::FLOAT4,
        "float" | "double" => SqlType::FLOAT8,
        "decimal" | "dec" | "numeric" => {
            let digits = u8::try_from(length.unwrap_or(18)).ok().filter(|digits| *digits <= 38);
            let scale = u8::try_from(lengths.second.unwrap_or(0)).ok();
            match (digits, scale) {
                (Some(digits @ 1..), Some(scale)) if scale <= digits => SqlType::numeric(digits, scale),
                _ => return Err(syntax(&format!("a {name} has 1 to 38 digits"))),
            }
        }
        "money" => SqlType::numeric(19, 4),
        "smallmoney" => SqlType::numeric(10, 4),
        "binary" | "varbinary" | "image" | "timestamp" | "rowversion" => SqlType::BYTEA,
        "date" => SqlType::DATE,
        "time" | "bigtime" => SqlType::TIME,
        "datetime" | "smalldatetime" | "datetime2" | "bigdatetime" => SqlType::TIMESTAMP,
        "datetimeoffset" => SqlType::TIMESTAMPTZ,
        "uniqueidentifier" => SqlType::UUID,
        "xml" => SqlType::XML,
        _ => {
            return Err(ServerMessage::error(
                2715,
                16,
                format!("Cannot find data type {name}: ringlog has no such type."),
            ))
        }
    })
}

fn type_word(parser: &mut Parser<'_>) -> Result<String, ServerMessage> {
    let token = parser.advance();
    match token.and_then(Token::identifier) {
        Some(name) => Ok(name.to_lowercase()),
        None => Err(syntax(&format!("'{}' where a type should stand", parser.shown(token)))),
    }
}

fn lengths(parser: &mut Parser<'_>) -> Result<Lengths, ServerMessage> {
    let mut lengths = Lengths { first: None, second: None };
    if !parser.symbol('(') {
        return Ok(lengths);
    }
    if !parser.keyword(&["max"]) {
        lengths.first = Some(length(parser)?);
    }
    if parser.symbol(',') {
        lengths.second = Some(length(parser)?);
    }
    if !parser.symbol(')') {
        return Err(syntax("a length is not closed by a parenthesis"));
    }
    Ok(lengths)
}

fn length(parser: &mut Parser<'_>) -> Result<u32, ServerMessage> {
    let token = parser.advance();
    match token.map(|token| &token.kind) {
        Some(Kind::Number(digits)) => digits.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| syntax(&format!("'{}' is not a length", parser.shown(token))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn oids(text: &str) -> Vec<(String, u32, i32, bool)> {
        let declarations = parse(text).unwrap();
        let shown = |d: Declaration| (d.name, d.sql_type.oid, d.sql_type.typmod, d.output);
        declarations.into_iter().map(shown).collect()
    }

    #[test]
    fn declarations_as_drivers_write_them() {
        // ctds, go-mssqldb, mssql-jdbc, tedious, FreeTDS
        assert_eq!(
            oids("@param0 TINYINT, @param1 NVARCHAR(3)"),
            [("@param0".into(), 21, -1, false), ("@param1".into(), 1043, 7, false)]
        );
        assert_eq!(oids("@P0 int OUT,@P1 decimal(38,4)")[0], ("@p0".into(), 23, -1, true));
        assert_eq!(oids("@x nvarchar(max), @y varbinary(8000)")[0].2, -1);
        assert_eq!(oids("@d datetime2(7) output, @t time(3)")[0].1, 1114);
        assert_eq!(parse("").unwrap(), []);
        assert_eq!(SqlType::numeric(38, 4).digits(), Some((38, 4)));
    }

    #[test]
    fn types_that_are_not_known_are_named() {
        assert!(parse("@a geography").unwrap_err().text.contains("geography"));
        assert!(parse("@a decimal(39, 1)").is_err());
        assert!(parse("@a int, @A int").unwrap_err().text.contains("@a"));
        assert!(parse("a int").is_err());
    }

    proptest! {
        #[test]
        fn every_text_is_read_or_refused(text in "[@a-z(),0-9 =']{0,40}") {
            let _ = parse(&text);
        }
    }
}
