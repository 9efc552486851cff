//! Tables, indexes, views and rights.

use super::column::LOCKED;
use super::{column, procedure, sequence};
use crate::error::Error;
use crate::facts::database_options;
use crate::lexer::{Token, TokenKind};
use crate::parser::{expression, names, query, statements, Parser};
use crate::tree::*;
use std::collections::BTreeSet;

/// The reason for which an option of a database is refused.
const NO_SUCH_SETTING: &str = "PostgreSQL has no such setting, and it would have an effect";

pub(super) fn create(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let start = parser.at;
    let line = parser.position();
    parser.expect_word("create")?;
    // ASE: create or replace
    let again = parser.words(&["or", "alter"]) || parser.words(&["or", "replace"]);
    let mode = if again { Mode::CreateOrAlter } else { Mode::Create };
    if let Some(definition) = text_definition(parser, start, mode)? {
        return Ok(definition);
    }
    if mode == Mode::CreateOrAlter {
        let what = format!("create or alter {}", parser.advance()?.shown());
        return Err(Error::refused(&what, "procedures, functions, views and triggers are", line));
    }
    if parser.word("table") {
        return create_table(parser);
    }
    if parser.word("type") {
        return create_type(parser, line);
    }
    if parser.next_is_any(&["database", "schema"]) {
        return create_schema(parser, start);
    }
    if parser.word("sequence") {
        return sequence::sequence(parser, true);
    }
    if parser.next_is_any(&["rule", "default"]) {
        return create_bindable(parser, start);
    }
    let unique = parser.word("unique");
    let clustered = column::clustered(parser);
    if parser.word("index") {
        return create_index(parser, [unique, clustered == Some(true)]);
    }
    if unique || clustered.is_some() {
        return Err(parser.wrong());
    }
    let what = format!("create {}", parser.advance()?.shown());
    let why = "tables, indexes, views, procedures, functions and triggers can be created";
    Err(Error::refused(&what, why, line))
}

/// Procedures, functions, triggers and views, which ALTER defines anew by their whole text.
fn text_definition(
    parser: &mut Parser<'_>,
    start: usize,
    mode: Mode,
) -> Result<Option<StatementKind>, Error> {
    if parser.next_is_any(&["proc", "procedure"]) {
        return procedure::procedure(parser, start, mode).map(Some);
    }
    if parser.next_is("function") {
        return procedure::function(parser, start, mode).map(Some);
    }
    if parser.next_is("trigger") {
        return procedure::trigger(parser, start, mode).map(Some);
    }
    if parser.word("view") {
        return view(parser, mode).map(Some);
    }
    Ok(None)
}

fn create_table(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let table = names::object_name(parser)?;
    let mut indexes = Vec::new();
    let elements = column::elements_and_indexes(parser, &mut indexes)?;
    column::storage(parser)?;
    for index in &mut indexes {
        index.table = table.clone();
    }
    Ok(StatementKind::CreateTable(Box::new(CreateTable { table, elements, indexes })))
}

/// `create database name … [collate c]`, whose files have no effect here, and `create schema name`
fn create_schema(parser: &mut Parser<'_>, start: usize) -> Result<StatementKind, Error> {
    let of = if parser.word("database") { ObjectKind::Database } else { ObjectKind::Schema };
    if of == ObjectKind::Database {
        let name = names::name(parser)?;
        let mut collation = None;
        while !procedure::at_statement_end(parser) || parser.next_is("with") {
            if parser.next_is_symbol("(") {
                column::skip_parentheses(parser)?;
            } else if parser.word("collate") {
                collation = Some(names::name(parser)?);
            } else if parser.next_is("for") {
                return Err(parser.wrong());
            } else {
                parser.at += 1;
            }
        }
        return Ok(StatementKind::CreateSchema { kind: of, name, collation });
    }
    if parser.dialect.is_strict {
        procedure::begins_batch(parser, start, Mode::Create, "SCHEMA")?;
    }
    parser.at += 1;
    // `create schema authorization owner` uses the owner's name
    let name = if parser.next_is("authorization") { None } else { Some(names::name(parser)?) };
    let owner = if parser.word("authorization") { Some(names::name(parser)?) } else { None };
    if parser.next_is_any(&["create", "grant", "deny", "revoke"]) {
        let what = format!("create schema … {}", parser.advance()?.shown());
        return Err(Error::refused(
            &what,
            "the statements of its objects follow in a batch of their own",
            parser.position(),
        ));
    }
    match (name, owner) {
        (Some(name), owner) if owner.as_ref().is_none_or(|owner| owner.is("dbo")) => {
            Ok(StatementKind::CreateSchema { kind: of, name, collation: None })
        }
        (_, owner) => {
            let at = owner.map_or_else(|| parser.position(), |owner| owner.at);
            Err(Error::refused("create schema … authorization", "a schema belongs to its maker", at))
        }
    }
}

fn create_type(parser: &mut Parser<'_>, line: Position) -> Result<StatementKind, Error> {
    let name = names::object_name(parser)?;
    if parser.words(&["as", "table"]) {
        let start = parser.at - 1;
        let elements = column::variable_elements(parser, Error::keyword)?;
        let tokens: Vec<String> = parser.tokens[start..parser.at].iter().map(Token::written).collect();
        let create = CreateTableType { name, elements, declared: tokens.join(" ") };
        return Ok(StatementKind::CreateTableType(Box::new(create)));
    }
    if !parser.word("from") {
        let what = format!("create type … {}", parser.advance()?.shown());
        return Err(Error::refused(&what, "types are made of other types (from)", line));
    }
    let type_ = names::type_name(parser)?;
    let nullable = !parser.words(&["not", "null"]);
    parser.word("null");
    Ok(StatementKind::CreateType(Box::new(CreateType { name, type_, nullable })))
}

/// A rule or a default.
fn create_bindable(parser: &mut Parser<'_>, start: usize) -> Result<StatementKind, Error> {
    let is_rule = parser.next_is("rule");
    let (kind, what) = if is_rule { (ObjectKind::Rule, "RULE") } else { (ObjectKind::Default, "DEFAULT") };
    procedure::begins_batch(parser, start, Mode::Create, what)?;
    parser.at += 1;
    let name = names::object_name(parser)?;
    parser.expect_word("as")?;
    let begins = parser.at;
    let value = if is_rule { expression::condition(parser)? } else { expression::value(parser)? };
    if parser.dialect.is_strict && matches!(value, Expression::Subquery(_)) {
        return Err(Error::no_subquery(value.at()));
    }
    let variables = parser.tokens[begins..parser.at].iter().filter(|token| token.kind == TokenKind::Variable);
    let variables: BTreeSet<String> = variables.map(|token| token.value.to_lowercase()).collect();
    let (number, text) = match variables.len() {
        0 => (160, "Rule does not contain a variable."),
        _ => (161, "Rule contains more than one variable."),
    };
    if is_rule && parser.dialect.is_strict && variables.len() != 1 {
        return Err(Error::new(number, text, name.at));
    }
    let variable = variables.into_iter().next();
    if statements::skip_semicolons(parser) || is_rule != variable.is_some() {
        // its text is the whole batch
        return Err(parser.wrong());
    }
    Ok(StatementKind::CreateBindable(Box::new(CreateBindable { kind, name, value, variable })))
}

fn create_index(parser: &mut Parser<'_>, words: [bool; 2]) -> Result<StatementKind, Error> {
    let name = names::name(parser)?;
    parser.expect_word("on")?;
    let table = names::object_name(parser)?;
    let columns = index_columns(parser)?;
    let index = index_of(parser, name, table, words, columns)?;
    Ok(StatementKind::CreateIndex(Box::new(index)))
}

/// The columns of an index, each with whether it is descending.
pub(super) fn index_columns(parser: &mut Parser<'_>) -> Result<Vec<(Name, bool)>, Error> {
    parser.in_parentheses(|parser| {
        let column = names::name(parser)?;
        let descending = parser.word("desc");
        if !descending {
            parser.word("asc");
        }
        Ok((column, descending))
    })
}

/// The clauses after the columns of an index, which is unique, clustered.
pub(super) fn index_of(
    parser: &mut Parser<'_>,
    name: Name,
    table: ObjectName,
    [unique, clustered]: [bool; 2],
    columns: Vec<(Name, bool)>,
) -> Result<CreateIndex, Error> {
    let include = if parser.word("include") { names::names_in_parentheses(parser)? } else { Vec::new() };
    let condition = if parser.word("where") { Some(expression::condition(parser)?) } else { None };
    column::storage(parser)?;
    Ok(CreateIndex { name, table, unique, clustered, columns, include, condition })
}

fn view(parser: &mut Parser<'_>, mode: Mode) -> Result<StatementKind, Error> {
    let name = names::object_name(parser)?;
    let columns = if parser.next_is_symbol("(") { names::names_in_parentheses(parser)? } else { Vec::new() };
    if parser.word("with") {
        parser.list(|parser| parser.expect_any(&["schemabinding", "view_metadata"]))?;
    }
    parser.expect_word("as")?;
    if !parser.next_is_any(&["select", "with"]) && !parser.next_is_symbol("(") {
        return Err(parser.wrong());
    }
    let query = query::query(parser)?;
    let check_option = parser.words(&["with", "check", "option"]);
    let view = CreateView { mode, name, columns, query, check_option };
    Ok(StatementKind::CreateView(Box::new(view)))
}

pub(super) fn alter(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let start = parser.at;
    let line = parser.position();
    parser.expect_word("alter")?;
    if let Some(definition) = text_definition(parser, start, Mode::Alter)? {
        return Ok(definition);
    }
    if parser.word("database") {
        return alter_database(parser);
    }
    if parser.word("sequence") {
        return sequence::sequence(parser, false);
    }
    if !parser.word("table") {
        let what = format!("alter {}", parser.advance()?.shown());
        let why = "tables, views, procedures, functions and triggers can be altered";
        return Err(Error::refused(&what, why, line));
    }
    let table = names::object_name(parser)?;
    if parser.words(&["lock"]) && parser.any_word(&LOCKED) {
        return Ok(statements::nothing_changed(parser, line, "PostgreSQL locks rows. Nothing has changed."));
    }
    let action = Box::new(alter_action(parser)?);
    Ok(StatementKind::AlterTable { table, action })
}

/// `alter database name set option [=] value, … [with termination]`, with options that have no effect.
fn alter_database(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let line = parser.position();
    let name = if parser.word("current") { None } else { Some(names::name(parser)?) };
    if parser.word("collate") {
        let collation = Some(names::name(parser)?);
        return Ok(StatementKind::AlterDatabase(AlterDatabase { name, collation, options: Vec::new() }));
    }
    if !parser.word("set") {
        let what = format!("alter database … {}", parser.advance()?.shown());
        return Err(Error::refused(&what, NO_SUCH_SETTING, line));
    }
    let options = parser.list(database_option)?;
    if parser.word("with") && !parser.word("no_wait") {
        parser.expect_word("rollback")?;
        if !parser.word("immediate") {
            parser.expect_word("after")?;
            parser.advance()?;
            parser.word("seconds");
        }
    }
    Ok(StatementKind::AlterDatabase(AlterDatabase { name, collation: None, options }))
}

fn database_option(parser: &mut Parser<'_>) -> Result<String, Error> {
    let line = parser.position();
    let option = parser.advance()?.value.to_lowercase();
    let refused = |value: &str| {
        let what = format!("alter database … set {option} {value}");
        Err(Error::refused(what.trim_end(), NO_SUCH_SETTING, line))
    };
    let Some(values) = database_options::values(&option) else { return refused("") };
    if values.is_empty() {
        return Ok(option);
    }
    parser.symbol("=");
    let value = parser.advance()?;
    let value = value.value.to_lowercase();
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = values.contains(&value.as_str()) || is_number && values == [database_options::NUMBER];
    if !is_known {
        return refused(&value);
    }
    if is_number {
        parser.any_word(&["seconds", "minutes"]);
    }
    Ok(format!("{option} {value}"))
}

fn alter_action(parser: &mut Parser<'_>) -> Result<AlterTable, Error> {
    let check_existing = !parser.words(&["with", "nocheck"]);
    let with_check = check_existing && parser.words(&["with", "check"]);
    if parser.word("add") {
        let mut indexes = Vec::new();
        let element = |parser: &mut Parser<'_>| column::table_element(parser, &mut indexes);
        let elements = if parser.next_is_symbol("(") {
            parser.in_parentheses(element)?
        } else {
            parser.list(element)?
        };
        column::refuse_indexes(&indexes)?;
        let elements = elements.into_iter().flatten().collect();
        return Ok(AlterTable::Add { elements, check_existing });
    }
    if parser.word("drop") {
        return dropped(parser).map(AlterTable::Drop);
    }
    let modifies = parser.word("modify");
    if modifies || parser.words(&["alter", "column"]) {
        return alter_column(parser);
    }
    if parser.word("replace") {
        let column = names::name(parser)?;
        parser.expect_word("default")?;
        return Ok(AlterTable::ReplaceDefault { column, value: expression::value(parser)? });
    }
    if parser.next_is_any(&["check", "nocheck"]) {
        let enabled = parser.word("check");
        parser.at += usize::from(!enabled);
        parser.expect_word("constraint")?;
        let constraints = if parser.word("all") { Vec::new() } else { parser.list(names::name)? };
        return Ok(AlterTable::Check { enabled, check_existing: with_check, constraints });
    }
    if parser.next_is_any(&["enable", "disable"]) {
        let enabled = parser.word("enable");
        parser.at += usize::from(!enabled);
        parser.expect_word("trigger")?;
        let triggers = if parser.word("all") { Vec::new() } else { parser.list(names::name)? };
        return Ok(AlterTable::Trigger { enabled, triggers });
    }
    let what = format!("alter table … {}", parser.peek().ok_or_else(|| parser.wrong())?.shown());
    let why = "columns and constraints can be added, altered and dropped";
    Err(Error::refused(&what, why, parser.position()))
}

fn alter_column(parser: &mut Parser<'_>) -> Result<AlterTable, Error> {
    let column = names::name(parser)?;
    let line = parser.position();
    if parser.next_is_any(&["add", "drop"]) && parser.ahead(1).is_some_and(|next| next.is_name()) {
        let what = format!("alter column … {}", parser.advance()?.shown());
        return Err(Error::refused(&what, "its type can be changed", line));
    }
    // ASE: modify column null
    let type_ = names::type_name(parser)?;
    let collation = if parser.word("collate") { Some(names::name(parser)?) } else { None };
    let nullable = if parser.words(&["not", "null"]) {
        Some(false)
    } else if parser.word("null") {
        Some(true)
    } else {
        None
    };
    Ok(AlterTable::AlterColumn { column, type_, collation, nullable })
}

fn dropped(parser: &mut Parser<'_>) -> Result<Vec<Dropped>, Error> {
    let mut of_columns = None;
    parser.list(|parser| {
        if parser.word("column") {
            of_columns = Some(true);
        } else if parser.word("constraint") {
            of_columns = Some(false);
        }
        let if_exists = parser.words(&["if", "exists"]);
        let name = names::name(parser)?;
        Ok(match of_columns {
            Some(true) => Dropped::Column { name, if_exists },
            Some(false) => Dropped::Constraint { name, if_exists },
            None => Dropped::Bare(name),
        })
    })
}

/// `enable trigger names on table`, `disable trigger all on table`
pub(super) fn switch_trigger(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let enabled = parser.word("enable");
    parser.at += usize::from(!enabled);
    parser.expect_word("trigger")?;
    let triggers = if parser.word("all") { Vec::new() } else { parser.list(names::name)? };
    parser.expect_word("on")?;
    let table = names::object_name(parser)?;
    Ok(StatementKind::AlterTable { table, action: Box::new(AlterTable::Trigger { enabled, triggers }) })
}

pub(super) fn drop(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let line = parser.position();
    parser.expect_word("drop")?;
    let token = parser.advance()?;
    let kind = match &*token.value.to_lowercase() {
        "index" => return drop_indexes(parser),
        "table" => ObjectKind::Table,
        "view" => ObjectKind::View,
        "proc" | "procedure" => ObjectKind::Procedure,
        "function" => ObjectKind::Function,
        "trigger" => ObjectKind::Trigger,
        "type" => ObjectKind::Type,
        "rule" => ObjectKind::Rule,
        "default" => ObjectKind::Default,
        "sequence" => ObjectKind::Sequence,
        "database" => ObjectKind::Database,
        "schema" => ObjectKind::Schema,
        _ => {
            let what = format!("drop {}", token.shown());
            let why = "tables, indexes, views, procedures, functions and triggers can be dropped";
            return Err(Error::refused(&what, why, line));
        }
    };
    let if_exists = parser.words(&["if", "exists"]);
    let names = parser.list(names::object_name)?;
    Ok(StatementKind::Drop(DropObjects { kind, names, if_exists }))
}

/// `drop index table.index` (ASE) and `drop index index on table`.
fn drop_indexes(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let if_exists = parser.words(&["if", "exists"]);
    let indexes = parser.list(|parser| {
        let first = names::unplaced_name(parser)?;
        if parser.word("on") {
            let name = Name { text: first.name, at: first.at };
            return Ok(DropIndex { name, table: names::object_name(parser)?, if_exists });
        }
        if first.owner.is_empty() {
            return Err(parser.wrong());
        }
        let ObjectName { database: owner, owner: table, name, at, .. } = first;
        let table = names::placed(parser, ObjectName { owner, name: table, at, ..ObjectName::default() })?;
        Ok(DropIndex { name: Name { text: name, at }, table, if_exists })
    })?;
    Ok(StatementKind::DropIndexes(indexes))
}

pub(super) fn truncate(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.expect_word("truncate")?;
    if parser.next_is("lob") {
        return Err(Error::refused("truncate lob", "texts have no locators", parser.position()));
    }
    parser.expect_word("table")?;
    names::object_name(parser).map(StatementKind::Truncate)
}

pub(super) fn grant(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let line = parser.position();
    let revoke = parser.word("revoke");
    parser.at += usize::from(!revoke);
    let rights = parser.list(|parser| {
        let right = parser.advance()?;
        let known = ["select", "insert", "update", "delete", "execute", "exec", "references", "all"];
        if !right.is_any(&known) {
            let what = format!("{} {}", if revoke { "revoke" } else { "grant" }, right.shown());
            return Err(Error::refused(&what, "rights are on tables and procedures", line));
        }
        Ok(if right.is("exec") { String::from("execute") } else { right.value.to_lowercase() })
    })?;
    parser.word("privileges");
    parser.expect_word("on")?;
    if parser.word("object") {
        parser.expect_symbol("::")?;
    }
    let object = names::object_name(parser)?;
    parser.expect_word(if revoke { "from" } else { "to" })?;
    let roles = parser.list(|parser| {
        let at = parser.position();
        if parser.word("public") {
            return Ok(Name { text: String::from("public"), at });
        }
        names::name(parser)
    })?;
    if parser.next_is_any(&["with", "cascade"]) {
        let what = format!("grant … {}", parser.advance()?.value);
        return Err(Error::refused(&what, "only the owner of an object grants rights on it", line));
    }
    // SQL Server: the principal from whom the right to grant comes
    if parser.word("as") {
        let grantor = names::name(parser)?;
        if !grantor.is("dbo") {
            let what = format!("grant … as {}", grantor.text);
            return Err(Error::refused(&what, "only the owner of an object grants rights on it", line));
        }
    }
    Ok(StatementKind::Grant(Grant { revoke, rights, object, roles }))
}
