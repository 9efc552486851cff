//! Columns and constraints of tables.

use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
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

impl<'t> Parser<'t> {
    /// `(column, constraint, …)`, without indexes.
    pub(super) fn table_elements(&mut self) -> Result<Vec<TableElement>, Error> {
        let mut indexes = Vec::new();
        let elements = self.elements_and_indexes(&mut indexes)?;
        self.refuse_indexes(&indexes)?;
        Ok(elements)
    }

    pub(super) fn refuse_indexes(&self, indexes: &[CreateIndex]) -> Result<(), Error> {
        match indexes.first() {
            None => Ok(()),
            Some(index) => Err(Error::refused("index", "create index makes one of a table", index.name.at)),
        }
    }

    /// The same, with `index name (columns)` among them.
    pub(super) fn elements_and_indexes(
        &mut self,
        indexes: &mut Vec<CreateIndex>,
    ) -> Result<Vec<TableElement>, Error> {
        self.expect_symbol("(")?;
        let mut elements = Vec::new();
        loop {
            if let Some(mut element) = self.table_element(indexes)? {
                let of_table = match &mut element {
                    TableElement::Column(column) => keys_of_table(column),
                    TableElement::Constraint(_) => Vec::new(),
                };
                elements.push(element);
                elements.extend(of_table.into_iter().map(TableElement::Constraint));
            }
            // a comma may precede the parenthesis
            if !self.symbol(",") || self.next_is_symbol(")") {
                break;
            }
        }
        self.expect_symbol(")")?;
        let is_column = |element: &TableElement| matches!(element, TableElement::Column(_));
        if !elements.iter().any(is_column) {
            return Err(self.wrong());
        }
        Ok(elements)
    }

    pub(super) fn table_element(
        &mut self,
        indexes: &mut Vec<CreateIndex>,
    ) -> Result<Option<TableElement>, Error> {
        if self.next_is_any(&["constraint", "primary", "unique", "check", "foreign", "default"]) {
            return self.table_constraint().map(TableElement::Constraint).map(Some);
        }
        if self.next_is("index") {
            indexes.push(self.index_of_table(None)?);
            return Ok(None);
        }
        self.column_definition(indexes).map(TableElement::Column).map(Some)
    }

    pub(super) fn column_definition(
        &mut self,
        indexes: &mut Vec<CreateIndex>,
    ) -> Result<ColumnDefinition, Error> {
        let name = self.name()?;
        let kind = self.column_kind(&name)?;
        let mut column = ColumnDefinition {
            name,
            kind,
            nullable: None,
            identity: None,
            collation: None,
            constraints: Vec::new(),
            with_values: false,
        };
        while self.column_property(&mut column, indexes)? {}
        Ok(column)
    }

    fn column_kind(&mut self, name: &Name) -> Result<ColumnKind, Error> {
        if self.word("as") {
            let value = self.value()?;
            return Ok(ColumnKind::Computed { value, persisted: self.word("persisted") });
        }
        let ends =
            [",", ")", ";"].iter().any(|symbol| self.next_is_symbol(symbol)) || self.ahead(0).is_none();
        if name.is("timestamp") && ends {
            return Ok(ColumnKind::Typed(TypeName::named("timestamp", name.at)));
        }
        self.type_name().map(ColumnKind::Typed)
    }

    /// The next property of a column; false if there is none.
    fn column_property(
        &mut self,
        column: &mut ColumnDefinition,
        indexes: &mut Vec<CreateIndex>,
    ) -> Result<bool, Error> {
        let at = column.name.at;
        if self.next_is("index") {
            indexes.push(self.index_of_table(Some(&column.name))?);
        } else if self.words(&["not", "for", "replication"]) {
            // replication is not supported
        } else if self.words(&["not", "null"]) {
            column.nullable = Some(false);
        } else if self.word("null") {
            column.nullable = Some(true);
        } else if self.word("identity") {
            column.identity = Some(self.identity()?);
        } else if self.word("collate") {
            column.collation = Some(self.name()?);
        } else if self.next_is_any(&[
            "constraint",
            "default",
            "primary",
            "unique",
            "check",
            "references",
            "foreign",
        ]) {
            let mut constraint = self.column_constraint()?;
            // default 'x' collate c: the collation is the column's
            if let ConstraintKind::Default { value, .. } = &mut constraint.kind {
                while let Expression::Collate { operand, collation } = value {
                    column.collation = Some(std::mem::take(collation));
                    *value = std::mem::replace(&mut **operand, Expression::Default(at));
                }
            }
            column.constraints.push(constraint);
        } else if self.words(&["with", "values"]) {
            column.with_values = true;
        } else if self.any_word(&["rowguidcol", "sparse"]) {
            // these change nothing here
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn identity(&mut self) -> Result<Identity, Error> {
        if !self.symbol("(") {
            return Ok(Identity { seed: 1, increment: 1 });
        }
        let seed = self.integer()?;
        // ASE: identity (precision)
        let increment = if self.symbol(",") { self.integer()? } else { 1 };
        self.expect_symbol(")")?;
        Ok(Identity { seed, increment })
    }

    fn column_constraint(&mut self) -> Result<Constraint, Error> {
        let at = self.position();
        let name = if self.word("constraint") { Some(self.name()?) } else { None };
        let kind = if self.word("default") {
            ConstraintKind::Default { value: self.value()?, column: None }
        } else if self.next_is("primary") || self.next_is("unique") {
            self.key()?
        } else if self.word("check") {
            ConstraintKind::Check(self.check()?)
        } else {
            self.words(&["foreign", "key"]);
            self.expect_word("references")?;
            ConstraintKind::ForeignKey { columns: Vec::new(), references: self.references()? }
        };
        Ok(Constraint { name, kind, at })
    }

    fn check(&mut self) -> Result<Expression, Error> {
        self.words(&["not", "for", "replication"]);
        self.expect_symbol("(")?;
        let condition = self.condition()?;
        self.expect_symbol(")")?;
        Ok(condition)
    }

    /// `primary key [clustered] [(columns)]`, `unique …`, and storage options, which are ignored.
    fn key(&mut self) -> Result<ConstraintKind, Error> {
        let primary = self.word("primary");
        self.expect_word(if primary { "key" } else { "unique" })?;
        self.any_word(&["clustered", "nonclustered"]);
        let columns = if self.next_is_symbol("(") {
            self.in_parentheses(|parser| {
                let column = parser.name()?;
                parser.any_word(&["asc", "desc"]);
                Ok(column)
            })?
        } else {
            Vec::new()
        };
        self.storage()?;
        Ok(if primary { ConstraintKind::PrimaryKey { columns } } else { ConstraintKind::Unique { columns } })
    }

    /// `index name [unique] [clustered] [(columns)] …`; without columns it is on the column `own`.
    fn index_of_table(&mut self, own: Option<&Name>) -> Result<CreateIndex, Error> {
        self.expect_word("index")?;
        let name = self.name()?;
        let unique = self.word("unique");
        self.any_word(&["clustered", "nonclustered"]);
        let columns = match own {
            Some(own) if !self.next_is_symbol("(") => vec![(own.clone(), false)],
            _ => self.index_columns()?,
        };
        self.index_of(name, ObjectName::default(), unique, columns)
    }

    /// `with (…)`, `with option = value, …`, `on filegroup`, ASE's `lock datarows`: options of storage and locks, which
    /// are ignored.
    pub(super) fn storage(&mut self) -> Result<(), Error> {
        loop {
            if self.next_is("with") && self.ahead_is_symbol(1, "(") {
                self.at += 1;
                let first = self.at;
                self.skip_parentheses()?;
                let ignores = self.tokens[first..self.at]
                    .windows(3)
                    .find(|part| part[0].is("ignore_dup_key") && part[1].is_symbol("=") && part[2].is("on"));
                if let Some(part) = ignores {
                    let why = "an insert of rows that are there is an error";
                    return Err(Error::refused("ignore_dup_key = on", why, part[0].at));
                }
            } else if self.next_is("with") && self.ahead(1).is_some_and(|next| next.is_any(&STORAGE)) {
                self.at += 1;
                self.list(Self::storage_option)?;
            } else if self.next_is("lock") && self.ahead(1).is_some_and(|next| next.is_any(&LOCKED)) {
                self.at += 2;
            } else if self.next_is("on")
                && !self.ahead(1).is_some_and(|next| next.is_any(&["delete", "update"]))
                || self.next_is("textimage_on")
            {
                self.at += 1;
                let is_text = self.peek().is_some_and(|token| matches!(token.kind, TokenKind::Text { .. }));
                if is_text {
                    self.at += 1;
                } else if !self.word("primary") {
                    self.name()?;
                }
            } else {
                return Ok(());
            }
        }
    }

    /// `fillfactor = 90`
    fn storage_option(&mut self) -> Result<(), Error> {
        let at = self.position();
        if self.expect_any(&STORAGE).is_err() {
            let option = self.peek().map(|token| token.shown()).unwrap_or_default();
            return Err(Error::refused(&format!("with {option}"), "rows are stored in one way", at));
        }
        if self.symbol("=") {
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn skip_parentheses(&mut self) -> Result<(), Error> {
        let mut depth = 0_u32;
        loop {
            let token = self.advance()?;
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
    fn references(&mut self) -> Result<References, Error> {
        let table = self.object_name()?;
        let columns = if self.next_is_symbol("(") { self.names_in_parentheses()? } else { Vec::new() };
        let (mut on_delete, mut on_update) = (KeyAction::NoAction, KeyAction::NoAction);
        loop {
            if self.words(&["on", "delete"]) {
                on_delete = self.key_action()?;
            } else if self.words(&["on", "update"]) {
                on_update = self.key_action()?;
            } else if !self.words(&["not", "for", "replication"]) {
                return Ok(References { table, columns, on_delete, on_update });
            }
        }
    }

    fn key_action(&mut self) -> Result<KeyAction, Error> {
        if self.word("cascade") {
            return Ok(KeyAction::Cascade);
        }
        if self.words(&["set", "null"]) {
            return Ok(KeyAction::SetNull);
        }
        if self.words(&["set", "default"]) {
            return Ok(KeyAction::SetDefault);
        }
        self.expect_word("no")?;
        self.expect_word("action")?;
        Ok(KeyAction::NoAction)
    }

    fn table_constraint(&mut self) -> Result<Constraint, Error> {
        let at = self.position();
        let name = if self.word("constraint") { Some(self.name()?) } else { None };
        let kind = if self.word("check") {
            ConstraintKind::Check(self.check()?)
        } else if self.words(&["foreign", "key"]) {
            let columns = if self.next_is_symbol("(") { self.names_in_parentheses()? } else { Vec::new() };
            self.expect_word("references")?;
            ConstraintKind::ForeignKey { columns, references: self.references()? }
        } else if self.word("default") {
            let value = self.value()?;
            self.expect_word("for")?;
            ConstraintKind::Default { value, column: Some(self.name()?) }
        } else {
            let key = self.key()?;
            let columns = match &key {
                ConstraintKind::PrimaryKey { columns } | ConstraintKind::Unique { columns } => columns,
                _ => return Err(self.wrong()),
            };
            if columns.is_empty() {
                return Err(self.wrong());
            }
            key
        };
        Ok(Constraint { name, kind, at })
    }
}

/// Moves keys that follow a column and name columns to the table.
fn keys_of_table(column: &mut ColumnDefinition) -> Vec<Constraint> {
    let names_columns = |constraint: &Constraint| match &constraint.kind {
        ConstraintKind::PrimaryKey { columns } | ConstraintKind::Unique { columns } => !columns.is_empty(),
        _ => false,
    };
    let constraints = std::mem::take(&mut column.constraints);
    let (of_table, own) = constraints.into_iter().partition(names_columns);
    column.constraints = own;
    of_table
}
