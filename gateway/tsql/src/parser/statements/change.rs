//! Insert, update and delete.

use super::{cursor, procedure};
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::names::is_free;
use crate::parser::query::{assign_operator, hints, source};
use crate::parser::{expression, names, query, Parser};
use crate::tree::*;

/// A query or change that begins with WITH.
pub(super) fn with(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let start = parser.position();
    if parser.follows_unended() {
        let text = "Incorrect syntax near the keyword 'with'. If this statement is a common table expression, an \
                    xmlnamespaces clause or a change tracking context clause, the previous statement must be terminated \
                    with a semicolon.";
        return Err(Error::new(319, text, start));
    }
    let with = query::common_tables(parser)?;
    if parser.next_is("insert") {
        return insert(parser, with);
    }
    if parser.next_is("update") {
        return update(parser, with);
    }
    if parser.next_is("delete") {
        return delete(parser, with);
    }
    if parser.next_is("merge") {
        return merge(parser, with);
    }
    if !parser.next_is("select") && !parser.next_is_symbol("(") {
        return Err(parser.wrong());
    }
    let begins = parser.at;
    let query = query::query_with(parser, with, start)?;
    let rest = &parser.tokens[begins..parser.at];
    let is_used = |table: &CommonTable| rest.iter().any(|token| table.name.is(&token.value));
    if parser.is_strict() && !query.with.iter().any(is_used) {
        return Err(Error::new(422, "Common table expression defined but not used.", start));
    }
    query::with_options(parser, query).map(Box::new).map(StatementKind::Select)
}

pub(super) fn target(parser: &mut Parser<'_>) -> Result<Target, Error> {
    if names::next_is_variable(parser) {
        return names::own_variable(parser).map(Target::Variable);
    }
    names::object_name(parser).map(Target::Table)
}

pub(super) fn insert(parser: &mut Parser<'_>, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
    let start = parser.at;
    parser.expect_word("insert")?;
    // insert bulk ..t
    let names_table = parser.ahead(1).is_none_or(is_free) || parser.ahead_is_symbol(1, ".");
    if parser.next_is("bulk") && with.is_empty() && names_table {
        parser.at += 1;
        return insert_bulk(parser, start).map(StatementKind::InsertBulk);
    }
    let top = query::top(parser)?;
    parser.word("into");
    let target = target(parser)?;
    if parser.is_strict()
        && matches!(target, Target::Variable(_))
        && parser.next_is("with")
        && parser.ahead_is_symbol(1, "(")
    {
        return Err(parser.wrong());
    }
    let locks_table = source::hints_of_change(parser)?;
    let columns = if parser.next_is_symbol("(") && !source::opens_query(parser) {
        parser.in_parentheses(inserted_column)?
    } else {
        Vec::new()
    };
    let output = output(parser)?;
    let source = insert_source(parser)?;
    Ok(StatementKind::Insert(Box::new(Insert { with, top, target, locks_table, columns, output, source })))
}

/// It begins a batch, and must be its only statement.
fn insert_bulk(parser: &mut Parser<'_>, start: usize) -> Result<InsertBulk, Error> {
    let alone = |at: Position| {
        let message = "'insert bulk' must be the only statement of its batch: the rows follow it.";
        Error::new(102, message, at)
    };
    if start > 0 {
        return Err(alone(parser.position()));
    }
    let table = names::object_name(parser)?;
    let columns = if parser.next_is_symbol("(") {
        parser.in_parentheses(|parser| {
            let name = names::part(parser)?;
            skip_item(parser)?;
            Ok(Name { text: name, at: parser.position() })
        })?
    } else {
        Vec::new()
    };
    let hints = if parser.word("with") {
        parser.in_parentheses(|parser| {
            let hint = names::part(parser)?.to_lowercase();
            skip_item(parser)?;
            Ok(hint)
        })?
    } else {
        Vec::new()
    };
    while parser.symbol(";") {}
    if !parser.at_end() {
        return Err(alone(parser.position()));
    }
    Ok(InsertBulk { table, columns, hints })
}

/// Skips to the comma or the parenthesis that ends an item of a list.
fn skip_item(parser: &mut Parser<'_>) -> Result<(), Error> {
    let mut depth = 0_u32;
    loop {
        let token = parser.peek().ok_or_else(|| parser.wrong())?;
        match &*token.value {
            "(" if token.kind == TokenKind::Symbol => depth += 1,
            ")" if token.kind == TokenKind::Symbol && depth == 0 => return Ok(()),
            ")" if token.kind == TokenKind::Symbol => depth -= 1,
            "," if token.kind == TokenKind::Symbol && depth == 0 => return Ok(()),
            _ => {}
        }
        parser.at += 1;
    }
}

/// A column may be qualified by its table.
fn inserted_column(parser: &mut Parser<'_>) -> Result<Name, Error> {
    let name = names::object_name(parser)?;
    Ok(Name { text: name.name, at: name.at })
}

fn insert_source(parser: &mut Parser<'_>) -> Result<InsertSource, Error> {
    if parser.words(&["default", "values"]) {
        return Ok(InsertSource::DefaultValues);
    }
    if parser.word("values") {
        let at = parser.position();
        let rows = parser.list(|parser| parser.in_parentheses(expression::value_or_default))?;
        if parser.dialect.is_strict && rows.windows(2).any(|rows| rows[0].len() != rows[1].len()) {
            let text = "The number of columns for each row in a table value constructor must be the same.";
            return Err(Error::new(10709, text, at).with_severity(16));
        }
        let at = parser.position();
        if hints::plan_hints(parser)?.is_some() {
            return Err(Error::refused("option (maxrecursion …)", "there is no query", at));
        }
        return Ok(InsertSource::Values(rows));
    }
    if parser.next_is_any(&["exec", "execute"]) {
        return Ok(match procedure::execute(parser)? {
            StatementKind::ExecuteText(execute) => InsertSource::ExecuteText(execute),
            StatementKind::Execute(execute) => InsertSource::Execute(execute),
            _ => return Err(parser.wrong_before()),
        });
    }
    if parser.next_is_any(&["select", "with"]) || parser.next_is_symbol("(") {
        return query::query(parser).map(Box::new).map(InsertSource::Query);
    }
    Err(parser.wrong())
}

/// `output items [into table [(columns)]]`, if there is one.
fn output(parser: &mut Parser<'_>) -> Result<Option<Output>, Error> {
    if !parser.word("output") {
        return Ok(None);
    }
    let items = parser.list(query::item)?;
    if !parser.word("into") {
        return Ok(Some(Output { items, into: None }));
    }
    let target = target(parser)?;
    let columns = if parser.next_is_symbol("(") && !source::opens_query(parser) {
        names::names_in_parentheses(parser)?
    } else {
        Vec::new()
    };
    Ok(Some(Output { items, into: Some((target, columns)) }))
}

pub(super) fn update(parser: &mut Parser<'_>, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
    parser.expect_word("update")?;
    if parser.next_is("statistics") {
        let why = "PostgreSQL gathers them by itself";
        return Err(Error::refused("update statistics", why, parser.position()));
    }
    let top = query::top(parser)?;
    let target = target(parser)?;
    let locks_table = source::hints_of_change(parser)?;
    parser.expect_word("set")?;
    let set = parser.list(set_item)?;
    let output = output(parser)?;
    let (from, condition) = change_end(parser)?;
    let update = Update { with, top, target, locks_table, set, output, from, condition };
    Ok(StatementKind::Update(Box::new(update)))
}

fn set_item(parser: &mut Parser<'_>) -> Result<SetItem, Error> {
    if !names::next_is_variable(parser) {
        let column = Some(names::column_name(parser)?);
        let operator = assignment(parser)?;
        return Ok(SetItem {
            variable: None,
            column,
            operator,
            value: expression::value_or_default(parser)?,
        });
    }
    let variable = Some(names::own_variable(parser)?);
    let operator = assignment(parser)?;
    if operator == AssignOperator::Set && assigns_column(parser) {
        let column = Some(names::column_name(parser)?);
        let operator = assignment(parser)?;
        return Ok(SetItem { variable, column, operator, value: expression::value(parser)? });
    }
    Ok(SetItem { variable, column: None, operator, value: expression::value(parser)? })
}

/// Whether `column =` comes next.
fn assigns_column(parser: &Parser<'_>) -> bool {
    parser.peek().is_some_and(names::is_free) && parser.ahead(1).and_then(assign_operator).is_some()
}

pub(super) fn assignment(parser: &mut Parser<'_>) -> Result<AssignOperator, Error> {
    let operator = parser.peek().and_then(assign_operator).ok_or_else(|| parser.wrong())?;
    parser.at += 1;
    Ok(operator)
}

pub(super) fn delete(parser: &mut Parser<'_>, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
    parser.expect_word("delete")?;
    let top = query::top(parser)?;
    parser.word("from");
    let target = target(parser)?;
    let locks_table = source::hints_of_change(parser)?;
    let output = output(parser)?;
    let (from, condition) = change_end(parser)?;
    Ok(StatementKind::Delete(Box::new(Delete { with, top, target, locks_table, output, from, condition })))
}

fn change_end(parser: &mut Parser<'_>) -> Result<(Vec<TableSource>, Option<Where>), Error> {
    let from = if parser.word("from") { parser.list(source::table_source)? } else { Vec::new() };
    let condition = if parser.word("where") {
        if parser.words(&["current", "of"]) {
            Some(Where::CurrentOf(cursor::cursor_name(parser)?))
        } else {
            Some(Where::Condition(expression::condition(parser)?))
        }
    } else {
        None
    };
    change_hints(parser)?;
    Ok((from, condition))
}

fn change_hints(parser: &mut Parser<'_>) -> Result<(), Error> {
    let at = parser.position();
    if hints::plan_hints(parser)?.is_some() {
        let why = "select into a table first";
        return Err(Error::refused("option (maxrecursion …)", why, at));
    }
    Ok(())
}

/// `merge [into] target [as alias] using source on condition when … then … [output …]`
pub(super) fn merge(parser: &mut Parser<'_>, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
    parser.expect_word("merge")?;
    if let Some(top) = query::top(parser)? {
        return Err(Error::refused("merge top", "put the top into the source", top.at));
    }
    parser.word("into");
    let target = target(parser)?;
    let mut locks_table = source::hints_of_change(parser)?;
    let alias = if parser.next_is("using") { None } else { source::table_alias(parser)? };
    if parser.is_strict() && parser.next_is("with") {
        return Err(parser.wrong());
    }
    locks_table |= source::hints_of_change(parser)?;
    parser.expect_word("using")?;
    let source = source::table_source(parser)?;
    parser.expect_word("on")?;
    let condition = expression::condition(parser)?;
    let mut clauses = Vec::new();
    while parser.next_is("when") {
        clauses.push(merge_clause(parser)?);
    }
    if clauses.is_empty() {
        return Err(parser.wrong());
    }
    let output = output(parser)?;
    change_hints(parser)?;
    if parser.dialect.merge_ends_with_semicolon && !parser.is_stored && !parser.next_is_symbol(";") {
        let text = "A MERGE statement must be terminated by a semi-colon (;).";
        return Err(Error::new(10713, text, parser.position()));
    }
    let merge = Merge { with, target, locks_table, alias, source, condition, clauses, output };
    Ok(StatementKind::Merge(Box::new(merge)))
}

fn merge_clause(parser: &mut Parser<'_>) -> Result<MergeClause, Error> {
    let start = parser.position();
    parser.expect_word("when")?;
    let rows = if parser.word("not") {
        parser.expect_word("matched")?;
        if parser.words(&["by", "source"]) {
            MergeRows::NotMatchedBySource
        } else {
            parser.words(&["by", "target"]);
            MergeRows::NotMatched
        }
    } else {
        parser.expect_word("matched")?;
        MergeRows::Matched
    };
    let condition = if parser.word("and") { Some(expression::condition(parser)?) } else { None };
    parser.expect_word("then")?;
    let (number, wrong) = match rows {
        MergeRows::NotMatched => (10710, parser.next_is_any(&["delete", "update"])),
        _ => (10711, parser.next_is("insert")),
    };
    if let Some(action) = parser.peek().filter(|_| wrong) {
        let clause = match rows {
            MergeRows::Matched => "WHEN MATCHED",
            MergeRows::NotMatched => "WHEN NOT MATCHED",
            MergeRows::NotMatchedBySource => "WHEN NOT MATCHED BY SOURCE",
        };
        let text = format!(
            "An action of type '{}' is not allowed in the '{clause}' clause of a MERGE statement.",
            action.value.to_uppercase()
        );
        return Err(Error::new(number, text, action.at));
    }
    let action = if rows == MergeRows::NotMatched {
        parser.expect_word("insert")?;
        let columns =
            if parser.next_is_symbol("(") { parser.in_parentheses(inserted_column)? } else { Vec::new() };
        let values = if parser.words(&["default", "values"]) {
            None
        } else {
            parser.expect_word("values")?;
            Some(parser.in_parentheses(expression::value_or_default)?)
        };
        MergeAction::Insert { columns, values }
    } else if parser.word("delete") {
        MergeAction::Delete
    } else {
        parser.expect_word("update")?;
        parser.expect_word("set")?;
        MergeAction::Update(parser.list(set_item)?)
    };
    Ok(MergeClause { rows, condition, action, at: parser.since(start) })
}
