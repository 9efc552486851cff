//! Insert, update and delete.

use super::names::is_free;
use super::query::assignment;
use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::tree::*;

impl<'t> Parser<'t> {
    /// A query or change that begins with WITH.
    pub(super) fn with(&mut self) -> Result<StatementKind, Error> {
        let start = self.position();
        let with = self.common_tables()?;
        if self.next_is("insert") {
            return self.insert(with);
        }
        if self.next_is("update") {
            return self.update(with);
        }
        if self.next_is("delete") {
            return self.delete(with);
        }
        if self.next_is("merge") {
            return self.merge(with);
        }
        if !self.next_is("select") && !self.next_is_symbol("(") {
            return Err(self.wrong());
        }
        let query = self.query_with(with, start)?;
        self.with_options(query).map(Box::new).map(StatementKind::Select)
    }

    pub(super) fn value_or_default(&mut self) -> Result<Expression, Error> {
        if self.next_is("default") {
            let at = self.position();
            self.at += 1;
            return Ok(Expression::Default(at));
        }
        self.value()
    }

    pub(super) fn target(&mut self) -> Result<Target, Error> {
        if self.next_is_variable() {
            return self.own_variable().map(Target::Variable);
        }
        self.object_name().map(Target::Table)
    }

    pub(super) fn insert(&mut self, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
        let start = self.at;
        self.expect_word("insert")?;
        // insert bulk ..t
        let names_table = self.ahead(1).is_none_or(is_free) || self.ahead_is_symbol(1, ".");
        if self.next_is("bulk") && with.is_empty() && names_table {
            self.at += 1;
            return self.insert_bulk(start).map(StatementKind::InsertBulk);
        }
        let top = self.top()?;
        self.word("into");
        let target = self.target()?;
        let locks_table = self.hints_of_change()?;
        let columns = if self.next_is_symbol("(") && !self.opens_query() {
            self.in_parentheses(Self::inserted_column)?
        } else {
            Vec::new()
        };
        let output = self.output()?;
        let source = self.insert_source()?;
        Ok(StatementKind::Insert(Box::new(Insert {
            with,
            top,
            target,
            locks_table,
            columns,
            output,
            source,
        })))
    }

    /// It begins a batch, and must be its only statement.
    fn insert_bulk(&mut self, start: usize) -> Result<InsertBulk, Error> {
        let alone = |at: Position| {
            let message = "'insert bulk' must be the only statement of its batch: the rows follow it.";
            Error::new(102, message, at)
        };
        if start > 0 {
            return Err(alone(self.position()));
        }
        let table = self.object_name()?;
        let columns = if self.next_is_symbol("(") {
            self.in_parentheses(|parser| {
                let name = parser.part()?;
                parser.skip_item()?;
                Ok(Name { text: name, at: parser.position() })
            })?
        } else {
            Vec::new()
        };
        let hints = if self.word("with") {
            self.in_parentheses(|parser| {
                let hint = parser.part()?.to_lowercase();
                parser.skip_item()?;
                Ok(hint)
            })?
        } else {
            Vec::new()
        };
        while self.symbol(";") {}
        if !self.at_end() {
            return Err(alone(self.position()));
        }
        Ok(InsertBulk { table, columns, hints })
    }

    /// Skips to the comma or the parenthesis that ends an item of a list.
    fn skip_item(&mut self) -> Result<(), Error> {
        let mut depth = 0_u32;
        loop {
            let token = self.peek().ok_or_else(|| self.wrong())?;
            match &*token.value {
                "(" if token.kind == TokenKind::Symbol => depth += 1,
                ")" if token.kind == TokenKind::Symbol && depth == 0 => return Ok(()),
                ")" if token.kind == TokenKind::Symbol => depth -= 1,
                "," if token.kind == TokenKind::Symbol && depth == 0 => return Ok(()),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A column may be qualified by its table.
    fn inserted_column(&mut self) -> Result<Name, Error> {
        let name = self.object_name()?;
        Ok(Name { text: name.name, at: name.at })
    }

    fn insert_source(&mut self) -> Result<InsertSource, Error> {
        if self.words(&["default", "values"]) {
            return Ok(InsertSource::DefaultValues);
        }
        if self.word("values") {
            let rows = self.list(|parser| parser.in_parentheses(Self::value_or_default))?;
            let at = self.position();
            if self.plan_hints()?.is_some() {
                return Err(Error::refused("option (maxrecursion …)", "there is no query", at));
            }
            return Ok(InsertSource::Values(rows));
        }
        if self.next_is_any(&["exec", "execute"]) {
            return Ok(match self.execute()? {
                StatementKind::ExecuteText(execute) => InsertSource::ExecuteText(execute),
                StatementKind::Execute(execute) => InsertSource::Execute(execute),
                _ => return Err(self.wrong_before()),
            });
        }
        if self.next_is_any(&["select", "with"]) || self.next_is_symbol("(") {
            return self.query().map(Box::new).map(InsertSource::Query);
        }
        Err(self.wrong())
    }

    /// `output items [into table [(columns)]]`, if there is one.
    fn output(&mut self) -> Result<Option<Output>, Error> {
        if !self.word("output") {
            return Ok(None);
        }
        let items = self.list(Self::item)?;
        if !self.word("into") {
            return Ok(Some(Output { items, into: None }));
        }
        let target = self.target()?;
        let columns = if self.next_is_symbol("(") && !self.opens_query() {
            self.names_in_parentheses()?
        } else {
            Vec::new()
        };
        Ok(Some(Output { items, into: Some((target, columns)) }))
    }

    pub(super) fn update(&mut self, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
        self.expect_word("update")?;
        if self.next_is("statistics") {
            let why = "PostgreSQL gathers them by itself";
            return Err(Error::refused("update statistics", why, self.position()));
        }
        let top = self.top()?;
        let target = self.target()?;
        let locks_table = self.hints_of_change()?;
        self.expect_word("set")?;
        let set = self.list(Self::set_item)?;
        let output = self.output()?;
        let (from, condition) = self.change_end()?;
        let update = Update { with, top, target, locks_table, set, output, from, condition };
        Ok(StatementKind::Update(Box::new(update)))
    }

    fn set_item(&mut self) -> Result<SetItem, Error> {
        if !self.next_is_variable() {
            let column = Some(self.column_name()?);
            let operator = self.assignment()?;
            return Ok(SetItem { variable: None, column, operator, value: self.value_or_default()? });
        }
        let variable = Some(self.own_variable()?);
        let operator = self.assignment()?;
        if operator == AssignOperator::Set && self.assigns_column() {
            let column = Some(self.column_name()?);
            let operator = self.assignment()?;
            return Ok(SetItem { variable, column, operator, value: self.value()? });
        }
        Ok(SetItem { variable, column: None, operator, value: self.value()? })
    }

    /// Whether `column =` comes next.
    fn assigns_column(&self) -> bool {
        self.peek().is_some_and(super::names::is_free) && self.ahead(1).and_then(assignment).is_some()
    }

    pub(super) fn assignment(&mut self) -> Result<AssignOperator, Error> {
        let operator = self.peek().and_then(assignment).ok_or_else(|| self.wrong())?;
        self.at += 1;
        Ok(operator)
    }

    pub(super) fn column_name(&mut self) -> Result<ColumnName, Error> {
        let name = self.object_name()?;
        Ok(column(name))
    }

    pub(super) fn delete(&mut self, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
        self.expect_word("delete")?;
        let top = self.top()?;
        self.word("from");
        let target = self.target()?;
        let locks_table = self.hints_of_change()?;
        let output = self.output()?;
        let (from, condition) = self.change_end()?;
        Ok(StatementKind::Delete(Box::new(Delete {
            with,
            top,
            target,
            locks_table,
            output,
            from,
            condition,
        })))
    }

    fn change_end(&mut self) -> Result<(Vec<TableSource>, Option<Where>), Error> {
        let from = if self.word("from") { self.list(Self::table_source)? } else { Vec::new() };
        let condition = if self.word("where") {
            if self.words(&["current", "of"]) {
                Some(Where::CurrentOf(self.cursor_name()?))
            } else {
                Some(Where::Condition(self.condition()?))
            }
        } else {
            None
        };
        self.change_hints()?;
        Ok((from, condition))
    }

    fn change_hints(&mut self) -> Result<(), Error> {
        let at = self.position();
        if self.plan_hints()?.is_some() {
            let why = "select into a table first";
            return Err(Error::refused("option (maxrecursion …)", why, at));
        }
        Ok(())
    }

    /// `merge [into] target [as alias] using source on condition when … then … [output …]`
    pub(super) fn merge(&mut self, with: Vec<CommonTable>) -> Result<StatementKind, Error> {
        self.expect_word("merge")?;
        if let Some(top) = self.top()? {
            return Err(Error::refused("merge top", "put the top into the source", top.at));
        }
        self.word("into");
        let target = self.target()?;
        let mut locks_table = self.hints_of_change()?;
        let alias = if self.next_is("using") { None } else { self.table_alias()? };
        locks_table |= self.hints_of_change()?;
        self.expect_word("using")?;
        let source = self.table_source()?;
        self.expect_word("on")?;
        let condition = self.condition()?;
        let mut clauses = Vec::new();
        while self.next_is("when") {
            clauses.push(self.merge_clause()?);
        }
        if clauses.is_empty() {
            return Err(self.wrong());
        }
        let output = self.output()?;
        self.change_hints()?;
        let merge = Merge { with, target, locks_table, alias, source, condition, clauses, output };
        Ok(StatementKind::Merge(Box::new(merge)))
    }

    fn merge_clause(&mut self) -> Result<MergeClause, Error> {
        let start = self.position();
        self.expect_word("when")?;
        let rows = if self.word("not") {
            self.expect_word("matched")?;
            if self.words(&["by", "source"]) {
                MergeRows::NotMatchedBySource
            } else {
                self.words(&["by", "target"]);
                MergeRows::NotMatched
            }
        } else {
            self.expect_word("matched")?;
            MergeRows::Matched
        };
        let condition = if self.word("and") { Some(self.condition()?) } else { None };
        self.expect_word("then")?;
        let action = if rows == MergeRows::NotMatched {
            self.expect_word("insert")?;
            let columns = if self.next_is_symbol("(") {
                self.in_parentheses(Self::inserted_column)?
            } else {
                Vec::new()
            };
            let values = if self.words(&["default", "values"]) {
                None
            } else {
                self.expect_word("values")?;
                Some(self.in_parentheses(Self::value_or_default)?)
            };
            MergeAction::Insert { columns, values }
        } else if self.word("delete") {
            MergeAction::Delete
        } else {
            self.expect_word("update")?;
            self.expect_word("set")?;
            MergeAction::Update(self.list(Self::set_item)?)
        };
        Ok(MergeClause { rows, condition, action, at: self.since(start) })
    }
}

/// A column from an object's name, whose qualifiers are those of its table.
fn column(name: ObjectName) -> ColumnName {
    let ObjectName { database, owner, name: column, at, .. } = name;
    let table = (!owner.is_empty()).then(|| {
        let at: Position = at;
        Box::new(ObjectName { owner: database, name: owner, at, ..ObjectName::default() })
    });
    ColumnName { table, column, at }
}
