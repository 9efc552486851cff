//! Reserved words of T-SQL, which no name is unless it stands in brackets.

use super::lexer::{Kind, Token};

/// Words that begin statements other than those a batch is read for.
const OTHER_STATEMENTS: [&str; 37] = [
    "alter",
    "backup",
    "break",
    "bulk",
    "checkpoint",
    "close",
    "continue",
    "create",
    "dbcc",
    "deallocate",
    "declare",
    "deny",
    "drop",
    "dump",
    "else",
    "end",
    "fetch",
    "goto",
    "grant",
    "kill",
    "load",
    "merge",
    "open",
    "raiserror",
    "readtext",
    "reconfigure",
    "return",
    "revoke",
    "save",
    "setuser",
    "shutdown",
    "throw",
    "truncate",
    "updatetext",
    "waitfor",
    "while",
    "writetext",
];

/// Those of them that a query may hold as well.
const ALSO_IN_QUERIES: [&str; 4] = ["else", "end", "fetch", "merge"];

/// Words of a query after which an operand follows.
const BEFORE_OPERANDS: [&str; 28] = [
    "all", "and", "any", "as", "between", "by", "case", "distinct", "else", "exists", "from", "having", "in",
    "into", "is", "join", "like", "limit", "not", "offset", "on", "or", "select", "set", "some", "then",
    "when", "where",
];

pub fn begins_other_statement(token: &Token) -> bool {
    OTHER_STATEMENTS.iter().any(|word| token.is(word))
}

/// Whether `token`, which stands in a query behind `before`, begins another statement. Where an operand must
/// follow it is the name of a column or table, which PostgreSQL allows it to be.
pub fn ends_query(before: &Token, token: &Token) -> bool {
    let operand_follows = match &before.kind {
        Kind::Symbol(symbol) => *symbol != ')',
        Kind::Word(_) => BEFORE_OPERANDS.iter().any(|word| before.is(word)),
        _ => false,
    };
    begins_other_statement(token) && !operand_follows && !ALSO_IN_QUERIES.iter().any(|word| token.is(word))
}
