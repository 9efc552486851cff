//! Columns and constraints of tables.

use super::definition;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::{expression, names, Parser};
use crate::tree::*;

/// Storage options of tables, keys and indexes.
const STORAGE: [&str; 13] = [
    "compression",
    "consumers",
    "dml_logging",
    "exp_row_size",
    "fillfactor",
    "identity_gap",
    "max_rows_per_page",
    "pad_index",
    "reservepagegap",
    "sort_in_tempdb",
    "sorted_data",
    "statistics",
    "statistics_norecompute",
];
/// ASE's units of locks: here rows are always locked.
pub(super) const LOCKED: [&str; 3] = ["allpages", "datapages", "datarows"];

/// `(column, constraint, …)`, without indexes.
pub(in crate::parser) fn table_elements(parser: &mut Parser<'_>) -> Result<Vec<TableElement>, Error> {
    let mut indexes = Vec::new();
    let elements = elements_and_indexes(parser, &mut indexes)?;
    refuse_indexes(&indexes)?;
    Ok(elements)
}

/// The same of a table variable or a type, whose constraints have no names and refer to no other table. `error`: that of
/// such a word.
pub(super) fn variable_elements<'t>(
    parser: &mut Parser<'t>,
    error: impl Fn(&str, Position) -> Error,
) -> Result<Vec<TableElement>, Error> {
    let elements = table_elements(parser)?;
    if parser.is_strict() && parser.tokens[parser.at - 2].is_symbol(",") {
        return Err(parser.wrong_before());
    }
    let constraints = elements.iter().flat_map(|element| match element {
        TableElement::Column(column) => &column.constraints[..],
        TableElement::Constraint(constraint) => std::slice::from_ref(constraint),
    });
    for constraint in constraints.filter(|_| parser.dialect.is_strict) {
        let word = match (&constraint.name, &constraint.kind) {
            (Some(_), _) => "constraint",
            (None, ConstraintKind::ForeignKey { .. }) => "references",
            _ => continue,
        };
        return Err(error(word, constraint.at));
    }
    Ok(elements)
}

pub(super) fn refuse_indexes(indexes: &[CreateIndex]) -> Result<(), Error> {
    match indexes.first() {
        None => Ok(()),
        Some(index) => Err(Error::refused("index", "create index makes one of a table", index.name.at)),
    }
}

/// The same, with `index name (columns)` among them.
pub(super) fn elements_and_indexes(
    parser: &mut Parser<'_>,
    indexes: &mut Vec<CreateIndex>,
) -> Result<Vec<TableElement>, Error> {
    parser.expect_symbol("(")?;
    let mut elements = Vec::new();
    loop {
        if let Some(mut element) = table_element(parser, indexes)? {
            let of_table = match &mut element {
                TableElement::Column(column) => keys_of_table(column),
                TableElement::Constraint(_) => Vec::new(),
            };
            elements.push(element);
            elements.extend(of_table.into_iter().map(TableElement::Constraint));
        }
        // a comma may precede the parenthesis
        if !parser.symbol(",") || parser.next_is_symbol(")") {
            break;
        }
    }
    parser.expect_symbol(")")?;
    let is_column = |element: &TableElement| matches!(element, TableElement::Column(_));
    if !elements.iter().any(is_column) {
        return Err(parser.wrong());
    }
    Ok(elements)
}

pub(super) fn table_element(
    parser: &mut Parser<'_>,
    indexes: &mut Vec<CreateIndex>,
) -> Result<Option<TableElement>, Error> {
    if parser.next_is_any(&["constraint", "primary", "unique", "check", "foreign", "default"]) {
        return table_constraint(parser).map(TableElement::Constraint).map(Some);
    }
    if parser.next_is("index") {
        indexes.push(index_of_table(parser, None)?);
        return Ok(None);
    }
    column_definition(parser, indexes).map(TableElement::Column).map(Some)
}

pub(super) fn column_definition(
    parser: &mut Parser<'_>,
    indexes: &mut Vec<CreateIndex>,
) -> Result<ColumnDefinition, Error> {
    let name = names::name(parser)?;
    let kind = column_kind(parser, &name)?;
    let mut column = ColumnDefinition {
        name,
        kind,
        nullable: None,
        identity: None,
        collation: None,
        constraints: Vec::new(),
        with_values: false,
    };
    while column_property(parser, &mut column, indexes)? {}
    Ok(column)
}

fn column_kind(parser: &mut Parser<'_>, name: &Name) -> Result<ColumnKind, Error> {
    if parser.word("as") {
        let value = expression::value(parser)?;
        return Ok(ColumnKind::Computed { value, persisted: parser.word("persisted") });
    }
    let ends =
        [",", ")", ";"].iter().any(|symbol| parser.next_is_symbol(symbol)) || parser.ahead(0).is_none();
    if name.is("timestamp") && ends {
        return Ok(ColumnKind::Typed(TypeName::named("timestamp", name.at)));
    }
    names::type_name(parser).map(ColumnKind::Typed)
}

/// The next property of a column; false if there is none.
fn column_property(
    parser: &mut Parser<'_>,
    column: &mut ColumnDefinition,
    indexes: &mut Vec<CreateIndex>,
) -> Result<bool, Error> {
    let at = column.name.at;
    if parser.next_is("index") {
        indexes.push(index_of_table(parser, Some(&column.name))?);
    } else if parser.words(&["not", "for", "replication"]) {
        // replication is not supported
    } else if parser.words(&["not", "null"]) {
        column.nullable = Some(false);
    } else if parser.word("null") {
        column.nullable = Some(true);
    } else if parser.word("identity") {
        column.identity = Some(identity(parser)?);
    } else if parser.word("collate") {
        column.collation = Some(names::name(parser)?);
    } else if parser.next_is_any(&[
        "constraint",
        "default",
        "primary",
        "unique",
        "check",
        "references",
        "foreign",
    ]) {
        let mut constraint = column_constraint(parser)?;
        // default 'x' collate c: the collation is the column's
        if let ConstraintKind::Default { value, .. } = &mut constraint.kind {
            while let Expression::Collate { operand, collation } = value {
                column.collation = Some(std::mem::take(collation));
                *value = std::mem::replace(&mut **operand, Expression::Default(at));
            }
        }
        column.constraints.push(constraint);
    } else if parser.words(&["with", "values"]) {
        column.with_values = true;
    } else if parser.any_word(&["rowguidcol", "sparse"]) {
        // these change nothing here
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn identity(parser: &mut Parser<'_>) -> Result<Identity, Error> {
    if !parser.symbol("(") {
        return Ok(Identity { seed: 1, increment: 1 });
    }
    let seed = names::integer(parser)?;
    // ASE: identity (precision)
    let increment = if parser.symbol(",") { names::integer(parser)? } else { 1 };
    parser.expect_symbol(")")?;
    Ok(Identity { seed, increment })
}

fn column_constraint(parser: &mut Parser<'_>) -> Result<Constraint, Error> {
    let at = parser.position();
    let name = if parser.word("constraint") { Some(names::name(parser)?) } else { None };
    let kind = if parser.word("default") {
        ConstraintKind::Default { value: expression::value(parser)?, column: None }
    } else if parser.next_is("primary") || parser.next_is("unique") {
        key(parser)?
    } else if parser.word("check") {
        ConstraintKind::Check(check(parser)?)
    } else {
        parser.words(&["foreign", "key"]);
        parser.expect_word("references")?;
        ConstraintKind::ForeignKey { columns: Vec::new(), references: references(parser)? }
    };
    Ok(Constraint { name, kind, at })
}

fn check(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    parser.words(&["not", "for", "replication"]);
    parser.expect_symbol("(")?;
    let condition = expression::condition(parser)?;
    parser.expect_symbol(")")?;
    Ok(condition)
}

/// `primary key [clustered] [(columns)]`, `unique …`, and storage options, which are ignored.
fn key(parser: &mut Parser<'_>) -> Result<ConstraintKind, Error> {
    let primary = parser.word("primary");
    parser.expect_word(if primary { "key" } else { "unique" })?;
    let clustered = clustered(parser);
    let columns = if parser.next_is_symbol("(") {
        parser.in_parentheses(|parser| {
            let column = names::name(parser)?;
            parser.any_word(&["asc", "desc"]);
            Ok(column)
        })?
    } else {
        Vec::new()
    };
    storage(parser)?;
    Ok(ConstraintKind::Key { primary, columns, clustered })
}

/// `clustered` or `nonclustered`; None: neither.
pub(super) fn clustered(parser: &mut Parser<'_>) -> Option<bool> {
    let is_clustered = parser.next_is("clustered");
    parser.any_word(&["clustered", "nonclustered"]).then_some(is_clustered)
}

/// `index name [unique] [clustered] [(columns)] …`; without columns it is on the column `own`.
fn index_of_table(parser: &mut Parser<'_>, own: Option<&Name>) -> Result<CreateIndex, Error> {
    parser.expect_word("index")?;
    let name = names::name(parser)?;
    let unique = parser.word("unique");
    let clustered = clustered(parser) == Some(true);
    let columns = match own {
        Some(own) if !parser.next_is_symbol("(") => vec![(own.clone(), false)],
        _ => definition::index_columns(parser)?,
    };
    definition::index_of(parser, name, ObjectName::default(), [unique, clustered], columns)
}

/// `with (…)`, `with option = value, …`, `on filegroup`, ASE's `lock datarows`: options of storage and locks, which
/// are ignored.
pub(super) fn storage(parser: &mut Parser<'_>) -> Result<(), Error> {
    loop {
        if parser.next_is("with") && parser.ahead_is_symbol(1, "(") {
            parser.at += 1;
            let first = parser.at;
            skip_parentheses(parser)?;
            let ignores = parser.tokens[first..parser.at]
                .windows(3)
                .find(|part| part[0].is("ignore_dup_key") && part[1].is_symbol("=") && part[2].is("on"));
            if let Some(part) = ignores {
                let why = "an insert of rows that are there is an error";
                return Err(Error::refused("ignore_dup_key = on", why, part[0].at));
            }
        } else if parser.next_is("with") && parser.ahead(1).is_some_and(|next| next.is_any(&STORAGE)) {
            parser.at += 1;
            parser.list(storage_option)?;
        } else if parser.next_is("lock") && parser.ahead(1).is_some_and(|next| next.is_any(&LOCKED)) {
            parser.at += 2;
        } else if parser.next_is("on")
            && !parser.ahead(1).is_some_and(|next| next.is_any(&["delete", "update"]))
            || parser.next_is("textimage_on")
        {
            parser.at += 1;
            let is_text = parser.peek().is_some_and(|token| matches!(token.kind, TokenKind::Text { .. }));
            if is_text {
                parser.at += 1;
            } else if !parser.word("primary") {
                names::name(parser)?;
            }
        } else {
            return Ok(());
        }
    }
}

/// `fillfactor = 90`
fn storage_option(parser: &mut Parser<'_>) -> Result<(), Error> {
    let at = parser.position();
    if parser.expect_any(&STORAGE).is_err() {
        let option = parser.peek().map(|token| token.shown()).unwrap_or_default();
        return Err(Error::refused(&format!("with {option}"), "rows are stored in one way", at));
    }
    if parser.symbol("=") {
        parser.advance()?;
    }
    Ok(())
}

pub(super) fn skip_parentheses(parser: &mut Parser<'_>) -> Result<(), Error> {
    let mut depth = 0_u32;
    loop {
        let token = parser.advance()?;
        if token.is_symbol("(") {
            depth += 1;
        } else if token.is_symbol(")") {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return Ok(());
        }
    }
}

/// `table [(columns)] [on delete …] [on update …]`
fn references(parser: &mut Parser<'_>) -> Result<References, Error> {
    let table = names::object_name(parser)?;
    let columns = if parser.next_is_symbol("(") { names::names_in_parentheses(parser)? } else { Vec::new() };
    let (mut on_delete, mut on_update) = (KeyAction::NoAction, KeyAction::NoAction);
    loop {
        if parser.words(&["on", "delete"]) {
            on_delete = key_action(parser)?;
        } else if parser.words(&["on", "update"]) {
            on_update = key_action(parser)?;
        } else if !parser.words(&["not", "for", "replication"]) {
            return Ok(References { table, columns, on_delete, on_update });
        }
    }
}

fn key_action(parser: &mut Parser<'_>) -> Result<KeyAction, Error> {
    if parser.word("cascade") {
        return Ok(KeyAction::Cascade);
    }
    if parser.words(&["set", "null"]) {
        return Ok(KeyAction::SetNull);
    }
    if parser.words(&["set", "default"]) {
        return Ok(KeyAction::SetDefault);
    }
    parser.expect_word("no")?;
    parser.expect_word("action")?;
    Ok(KeyAction::NoAction)
}

fn table_constraint(parser: &mut Parser<'_>) -> Result<Constraint, Error> {
    let at = parser.position();
    let name = if parser.word("constraint") { Some(names::name(parser)?) } else { None };
    let kind = if parser.word("check") {
        ConstraintKind::Check(check(parser)?)
    } else if parser.words(&["foreign", "key"]) {
        let columns =
            if parser.next_is_symbol("(") { names::names_in_parentheses(parser)? } else { Vec::new() };
        parser.expect_word("references")?;
        ConstraintKind::ForeignKey { columns, references: references(parser)? }
    } else if parser.word("default") {
        let value = expression::value(parser)?;
        parser.expect_word("for")?;
        ConstraintKind::Default { value, column: Some(names::name(parser)?) }
    } else {
        let key = key(parser)?;
        if !names_columns(&key) {
            return Err(parser.wrong());
        }
        key
    };
    Ok(Constraint { name, kind, at })
}

/// Moves keys that follow a column and name columns to the table.
fn keys_of_table(column: &mut ColumnDefinition) -> Vec<Constraint> {
    let constraints = std::mem::take(&mut column.constraints);
    let (of_table, own) = constraints.into_iter().partition(|one| names_columns(&one.kind));
    column.constraints = own;
    of_table
}

fn names_columns(kind: &ConstraintKind) -> bool {
    matches!(kind, ConstraintKind::Key { columns, .. } if !columns.is_empty())
}
