//! Reserved words of T-SQL, which no name is unless it stands in brackets.

use super::lexer::Token;

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

/// Words that follow the list of a select.
const CONTINUE_QUERY: [&str; 12] = [
    "compute",
    "except",
    "for",
    "from",
    "group",
    "having",
    "intersect",
    "into",
    "option",
    "order",
    "union",
    "where",
];

pub fn begins_other_statement(token: &Token) -> bool {
    OTHER_STATEMENTS.iter().any(|word| token.is(word))
}

pub fn continues_query(token: &Token) -> bool {
    CONTINUE_QUERY.iter().any(|word| token.is(word))
}
