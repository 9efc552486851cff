//! Reserved words, and words that begin statements.

/// The class of a word at the beginning of a statement or in place of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Not a name without brackets; begins a statement.
    Statement,
    /// Begins a statement, except in place of an operand: there it is a name.
    StatementOrName,
    /// Not a name without brackets. Words that T-SQL reserves but that are used as names of columns (file, percent,
    /// read, …) are plain.
    Reserved,
    Plain,
}

const LONGEST: usize = 20;

/// The class of a word, in upper or lower case.
pub fn class(word: &str) -> Class {
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..word.len()) else { return Class::Plain };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        b"alter" | b"begin" | b"break" | b"checkpoint" | b"commit" | b"continue" | b"create" | b"dbcc"
        | b"deallocate" | b"declare" | b"delete" | b"deny" | b"drop" | b"dump" | b"exec" | b"execute"
        | b"goto" | b"grant" | b"if" | b"insert" | b"kill" | b"print" | b"raiserror" | b"readtext"
        | b"reconfigure" | b"return" | b"revoke" | b"rollback" | b"save" | b"select" | b"set"
        | b"setuser" | b"shutdown" | b"truncate" | b"update" | b"updatetext" | b"use" | b"waitfor"
        | b"while" | b"writetext" => Class::Statement,
        b"backup" | b"bulk" | b"close" | b"disable" | b"enable" | b"fetch" | b"load" | b"merge" | b"open"
        | b"restore" | b"throw" => Class::StatementOrName,
        b"add" | b"all" | b"and" | b"any" | b"as" | b"asc" | b"authorization" | b"between" | b"by"
        | b"case" | b"collate" | b"column" | b"compute" | b"constraint" | b"convert" | b"cross"
        | b"current_date" | b"current_time" | b"current_timestamp" | b"current_user" | b"cursor"
        | b"default" | b"desc" | b"distinct" | b"else" | b"end" | b"escape" | b"except" | b"exists"
        | b"exit" | b"for" | b"foreign" | b"from" | b"full" | b"function" | b"group" | b"having"
        | b"holdlock" | b"identity" | b"identity_insert" | b"in" | b"index" | b"inner" | b"intersect"
        | b"into" | b"is" | b"join" | b"key" | b"left" | b"like" | b"nocheck" | b"not" | b"null"
        | b"nullif" | b"of" | b"off" | b"on" | b"option" | b"or" | b"order" | b"outer" | b"over"
        | b"pivot" | b"plan" | b"primary" | b"proc" | b"procedure" | b"public" | b"references"
        | b"restrict" | b"right" | b"rowcount" | b"schema" | b"session_user" | b"some" | b"statistics"
        | b"system_user" | b"table" | b"then" | b"to" | b"top" | b"tran" | b"transaction" | b"trigger"
        | b"union" | b"unique" | b"unpivot" | b"user" | b"values" | b"varying" | b"view" | b"when"
        | b"where" | b"with" => Class::Reserved,
        _ => Class::Plain,
    }
}
