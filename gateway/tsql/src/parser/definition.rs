//! Tables, indexes, views and rights.

use super::column::LOCKED;
use super::Parser;
use crate::error::Error;
use crate::facts::database_options;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// The reason for which an option of a database is refused.
const NO_SUCH_SETTING: &str = "PostgreSQL has no such setting, and it would have an effect";

impl<'t> Parser<'t> {
    pub(super) fn create(&mut self) -> Result<StatementKind, Error> {
        let start = self.at;
        let line = self.position();
        self.expect_word("create")?;
        // ASE: create or replace
        let again = self.words(&["or", "alter"]) || self.words(&["or", "replace"]);
        let mode = if again { Mode::CreateOrAlter } else { Mode::Create };
        if let Some(definition) = self.text_definition(start, mode)? {
            return Ok(definition);
        }
        if mode == Mode::CreateOrAlter {
            let what = format!("create or alter {}", self.advance()?.shown());
            return Err(Error::refused(&what, "procedures, functions, views and triggers are", line));
        }
        if self.word("table") {
            return self.create_table();
        }
        if self.word("type") {
            return self.create_type(line);
        }
        if self.next_is_any(&["database", "schema"]) {
            return self.create_schema();
        }
        if self.word("sequence") {
            return self.sequence(true);
        }
        if self.next_is_any(&["rule", "default"]) {
            return self.create_bindable(start);
        }
        let unique = self.word("unique");
        let clustered = self.any_word(&["clustered", "nonclustered"]);
        if self.word("index") {
            return self.create_index(unique);
        }
        if unique || clustered {
            return Err(self.wrong());
        }
        let what = format!("create {}", self.advance()?.shown());
        let why = "tables, indexes, views, procedures, functions and triggers can be created";
        Err(Error::refused(&what, why, line))
    }

    /// Procedures, functions, triggers and views, which ALTER defines anew by their whole text.
    fn text_definition(&mut self, start: usize, mode: Mode) -> Result<Option<StatementKind>, Error> {
        if self.next_is_any(&["proc", "procedure"]) {
            return self.procedure(start, mode).map(Some);
        }
        if self.next_is("function") {
            return self.function(start, mode).map(Some);
        }
        if self.next_is("trigger") {
            return self.trigger(start, mode).map(Some);
        }
        if self.word("view") {
            return self.view(mode).map(Some);
        }
        Ok(None)
    }

    fn create_table(&mut self) -> Result<StatementKind, Error> {
        let table = self.object_name()?;
        let mut indexes = Vec::new();
        let elements = self.elements_and_indexes(&mut indexes)?;
        self.storage()?;
        for index in &mut indexes {
            index.table = table.clone();
        }
        Ok(StatementKind::CreateTable(Box::new(CreateTable { table, elements, indexes })))
    }

    /// `create database name … [collate c]`, whose files have no effect here, and `create schema name`
    fn create_schema(&mut self) -> Result<StatementKind, Error> {
        let of = if self.word("database") { ObjectKind::Database } else { ObjectKind::Schema };
        if of == ObjectKind::Database {
            let name = self.name()?;
            let mut collation = None;
            while !self.at_statement_end() || self.next_is("with") {
                if self.next_is_symbol("(") {
                    self.skip_parentheses()?;
                } else if self.word("collate") {
                    collation = Some(self.name()?);
                } else if self.next_is("for") {
                    return Err(self.wrong());
                } else {
                    self.at += 1;
                }
            }
            return Ok(StatementKind::CreateSchema { kind: of, name, collation });
        }
        self.at += 1;
        // `create schema authorization owner` uses the owner's name
        let name = if self.next_is("authorization") { None } else { Some(self.name()?) };
        let owner = if self.word("authorization") { Some(self.name()?) } else { None };
        match (name, owner) {
            (Some(name), owner) if owner.as_ref().is_none_or(|owner| owner.is("dbo")) => {
                Ok(StatementKind::CreateSchema { kind: of, name, collation: None })
            }
            (_, owner) => {
                let at = owner.map_or_else(|| self.position(), |owner| owner.at);
                Err(Error::refused("create schema … authorization", "a schema belongs to its maker", at))
            }
        }
    }

    fn create_type(&mut self, line: Position) -> Result<StatementKind, Error> {
        let name = self.object_name()?;
        if self.words(&["as", "table"]) {
            let start = self.at - 1;
            let elements = self.table_elements()?;
            let tokens: Vec<String> = self.tokens[start..self.at].iter().map(Token::written).collect();
            let create = CreateTableType { name, elements, declared: tokens.join(" ") };
            return Ok(StatementKind::CreateTableType(Box::new(create)));
        }
        if !self.word("from") {
            let what = format!("create type … {}", self.advance()?.shown());
            return Err(Error::refused(&what, "types are made of other types (from)", line));
        }
        let type_ = self.type_name()?;
        let nullable = !self.words(&["not", "null"]);
        self.word("null");
        Ok(StatementKind::CreateType(Box::new(CreateType { name, type_, nullable })))
    }

    /// A rule or a default.
    fn create_bindable(&mut self, start: usize) -> Result<StatementKind, Error> {
        let is_rule = self.next_is("rule");
        let (kind, what) =
            if is_rule { (ObjectKind::Rule, "RULE") } else { (ObjectKind::Default, "DEFAULT") };
        self.begins_batch(start, Mode::Create, what)?;
        self.at += 1;
        let name = self.object_name()?;
        self.expect_word("as")?;
        let begins = self.at;
        let value = if is_rule { self.condition()? } else { self.value()? };
        let variables = self.tokens[begins..self.at].iter().filter(|token| token.kind == TokenKind::Variable);
        let variable = variables.map(|token| token.value.to_lowercase()).next();
        if self.skip_semicolons() || is_rule != variable.is_some() {
            // its text is the whole batch
            return Err(self.wrong());
        }
        Ok(StatementKind::CreateBindable(Box::new(CreateBindable { kind, name, value, variable })))
    }

    fn create_index(&mut self, unique: bool) -> Result<StatementKind, Error> {
        let name = self.name()?;
        self.expect_word("on")?;
        let table = self.object_name()?;
        let columns = self.index_columns()?;
        let index = self.index_of(name, table, unique, columns)?;
        Ok(StatementKind::CreateIndex(Box::new(index)))
    }

    /// The columns of an index, each with whether it is descending.
    pub(super) fn index_columns(&mut self) -> Result<Vec<(Name, bool)>, Error> {
        self.in_parentheses(|parser| {
            let column = parser.name()?;
            let descending = parser.word("desc");
            if !descending {
                parser.word("asc");
            }
            Ok((column, descending))
        })
    }

    /// The clauses after the columns of an index.
    pub(super) fn index_of(
        &mut self,
        name: Name,
        table: ObjectName,
        unique: bool,
        columns: Vec<(Name, bool)>,
    ) -> Result<CreateIndex, Error> {
        let include = if self.word("include") { self.names_in_parentheses()? } else { Vec::new() };
        let condition = if self.word("where") { Some(self.condition()?) } else { None };
        self.storage()?;
        Ok(CreateIndex { name, table, unique, columns, include, condition })
    }

    fn view(&mut self, mode: Mode) -> Result<StatementKind, Error> {
        let name = self.object_name()?;
        let columns = if self.next_is_symbol("(") { self.names_in_parentheses()? } else { Vec::new() };
        if self.word("with") {
            self.list(|parser| parser.expect_any(&["schemabinding", "view_metadata"]))?;
        }
        self.expect_word("as")?;
        if !self.next_is_any(&["select", "with"]) && !self.next_is_symbol("(") {
            return Err(self.wrong());
        }
        let query = self.query()?;
        let check_option = self.words(&["with", "check", "option"]);
        let view = CreateView { mode, name, columns, query, check_option };
        Ok(StatementKind::CreateView(Box::new(view)))
    }

    pub(super) fn alter(&mut self) -> Result<StatementKind, Error> {
        let start = self.at;
        let line = self.position();
        self.expect_word("alter")?;
        if let Some(definition) = self.text_definition(start, Mode::Alter)? {
            return Ok(definition);
        }
        if self.word("database") {
            return self.alter_database();
        }
        if self.word("sequence") {
            return self.sequence(false);
        }
        if !self.word("table") {
            let what = format!("alter {}", self.advance()?.shown());
            let why = "tables, views, procedures, functions and triggers can be altered";
            return Err(Error::refused(&what, why, line));
        }
        let table = self.object_name()?;
        if self.words(&["lock"]) && self.any_word(&LOCKED) {
            return Ok(self.nothing_changed(line, "PostgreSQL locks rows. Nothing has changed."));
        }
        let action = Box::new(self.alter_action()?);
        Ok(StatementKind::AlterTable { table, action })
    }

    /// `alter database name set option [=] value, … [with termination]`, with options that have no effect.
    fn alter_database(&mut self) -> Result<StatementKind, Error> {
        let line = self.position();
        let name = if self.word("current") { None } else { Some(self.name()?) };
        if self.word("collate") {
            let collation = Some(self.name()?);
            return Ok(StatementKind::AlterDatabase(AlterDatabase { name, collation, options: Vec::new() }));
        }
        if !self.word("set") {
            let what = format!("alter database … {}", self.advance()?.shown());
            return Err(Error::refused(&what, NO_SUCH_SETTING, line));
        }
        let options = self.list(Self::database_option)?;
        if self.word("with") && !self.word("no_wait") {
            self.expect_word("rollback")?;
            if !self.word("immediate") {
                self.expect_word("after")?;
                self.advance()?;
                self.word("seconds");
            }
        }
        Ok(StatementKind::AlterDatabase(AlterDatabase { name, collation: None, options }))
    }

    fn database_option(&mut self) -> Result<String, Error> {
        let line = self.position();
        let option = self.advance()?.value.to_lowercase();
        let refused = |value: &str| {
            let what = format!("alter database … set {option} {value}");
            Err(Error::refused(what.trim_end(), NO_SUCH_SETTING, line))
        };
        let Some(values) = database_options::values(&option) else { return refused("") };
        if values.is_empty() {
            return Ok(option);
        }
        self.symbol("=");
        let value = self.advance()?;
        let value = value.value.to_lowercase();
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let is_known = values.contains(&value.as_str()) || is_number && values == [database_options::NUMBER];
        if !is_known {
            return refused(&value);
        }
        if is_number {
            self.any_word(&["seconds", "minutes"]);
        }
        Ok(format!("{option} {value}"))
    }

    fn alter_action(&mut self) -> Result<AlterTable, Error> {
        let check_existing = !self.words(&["with", "nocheck"]);
        let with_check = check_existing && self.words(&["with", "check"]);
        if self.word("add") {
            let mut indexes = Vec::new();
            let element = |parser: &mut Self| parser.table_element(&mut indexes);
            let elements =
                if self.next_is_symbol("(") { self.in_parentheses(element)? } else { self.list(element)? };
            self.refuse_indexes(&indexes)?;
            let elements = elements.into_iter().flatten().collect();
            return Ok(AlterTable::Add { elements, check_existing });
        }
        if self.word("drop") {
            return self.dropped().map(AlterTable::Drop);
        }
        let modifies = self.word("modify");
        if modifies || self.words(&["alter", "column"]) {
            return self.alter_column();
        }
        if self.word("replace") {
            let column = self.name()?;
            self.expect_word("default")?;
            return Ok(AlterTable::ReplaceDefault { column, value: self.value()? });
        }
        if self.next_is_any(&["check", "nocheck"]) {
            let enabled = self.word("check");
            self.at += usize::from(!enabled);
            self.expect_word("constraint")?;
            let constraints = if self.word("all") { Vec::new() } else { self.list(Self::name)? };
            return Ok(AlterTable::Check { enabled, check_existing: with_check, constraints });
        }
        if self.next_is_any(&["enable", "disable"]) {
            let enabled = self.word("enable");
            self.at += usize::from(!enabled);
            self.expect_word("trigger")?;
            let triggers = if self.word("all") { Vec::new() } else { self.list(Self::name)? };
            return Ok(AlterTable::Trigger { enabled, triggers });
        }
        let what = format!("alter table … {}", self.peek().ok_or_else(|| self.wrong())?.shown());
        let why = "columns and constraints can be added, altered and dropped";
        Err(Error::refused(&what, why, self.position()))
    }

    fn alter_column(&mut self) -> Result<AlterTable, Error> {
        let column = self.name()?;
        let line = self.position();
        if self.next_is_any(&["add", "drop"]) && self.ahead(1).is_some_and(|next| next.is_name()) {
            let what = format!("alter column … {}", self.advance()?.shown());
            return Err(Error::refused(&what, "its type can be changed", line));
        }
        // ASE: modify column null
        let type_ = self.type_name()?;
        let collation = if self.word("collate") { Some(self.name()?) } else { None };
        let nullable = if self.words(&["not", "null"]) {
            Some(false)
        } else if self.word("null") {
            Some(true)
        } else {
            None
        };
        Ok(AlterTable::AlterColumn { column, type_, collation, nullable })
    }

    fn dropped(&mut self) -> Result<Vec<Dropped>, Error> {
        let mut of_columns = None;
        self.list(|parser| {
            if parser.word("column") {
                of_columns = Some(true);
            } else if parser.word("constraint") {
                of_columns = Some(false);
            }
            let if_exists = parser.words(&["if", "exists"]);
            let name = parser.name()?;
            Ok(match of_columns {
                Some(true) => Dropped::Column { name, if_exists },
                Some(false) => Dropped::Constraint { name, if_exists },
                None => Dropped::Bare(name),
            })
        })
    }

    /// `enable trigger names on table`, `disable trigger all on table`
    pub(super) fn switch_trigger(&mut self) -> Result<StatementKind, Error> {
        let enabled = self.word("enable");
        self.at += usize::from(!enabled);
        self.expect_word("trigger")?;
        let triggers = if self.word("all") { Vec::new() } else { self.list(Self::name)? };
        self.expect_word("on")?;
        let table = self.object_name()?;
        Ok(StatementKind::AlterTable { table, action: Box::new(AlterTable::Trigger { enabled, triggers }) })
    }

    pub(super) fn drop(&mut self) -> Result<StatementKind, Error> {
        let line = self.position();
        self.expect_word("drop")?;
        let token = self.advance()?;
        let kind = match &*token.value.to_lowercase() {
            "index" => return self.drop_indexes(),
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
        let if_exists = self.words(&["if", "exists"]);
        let names = self.list(Self::object_name)?;
        Ok(StatementKind::Drop(DropObjects { kind, names, if_exists }))
    }

    /// `drop index table.index` (ASE) and `drop index index on table`.
    fn drop_indexes(&mut self) -> Result<StatementKind, Error> {
        let if_exists = self.words(&["if", "exists"]);
        let indexes = self.list(|parser| {
            let first = parser.unplaced_name()?;
            if parser.word("on") {
                let name = Name { text: first.name, at: first.at };
                return Ok(DropIndex { name, table: parser.object_name()?, if_exists });
            }
            if first.owner.is_empty() {
                return Err(parser.wrong());
            }
            let ObjectName { database: owner, owner: table, name, at, .. } = first;
            let table = parser.placed(ObjectName { owner, name: table, at, ..ObjectName::default() })?;
            Ok(DropIndex { name: Name { text: name, at }, table, if_exists })
        })?;
        Ok(StatementKind::DropIndexes(indexes))
    }

    pub(super) fn truncate(&mut self) -> Result<StatementKind, Error> {
        self.expect_word("truncate")?;
        if self.next_is("lob") {
            return Err(Error::refused("truncate lob", "texts have no locators", self.position()));
        }
        self.expect_word("table")?;
        self.object_name().map(StatementKind::Truncate)
    }

    pub(super) fn grant(&mut self) -> Result<StatementKind, Error> {
        let line = self.position();
        let revoke = self.word("revoke");
        self.at += usize::from(!revoke);
        let rights = self.list(|parser| {
            let right = parser.advance()?;
            let known = ["select", "insert", "update", "delete", "execute", "exec", "references", "all"];
            if !right.is_any(&known) {
                let what = format!("{} {}", if revoke { "revoke" } else { "grant" }, right.shown());
                return Err(Error::refused(&what, "rights are on tables and procedures", line));
            }
            Ok(if right.is("exec") { String::from("execute") } else { right.value.to_lowercase() })
        })?;
        self.word("privileges");
        self.expect_word("on")?;
        if self.word("object") {
            self.expect_symbol("::")?;
        }
        let object = self.object_name()?;
        self.expect_word(if revoke { "from" } else { "to" })?;
        let roles = self.list(|parser| {
            let at = parser.position();
            if parser.word("public") {
                return Ok(Name { text: String::from("public"), at });
            }
            parser.name()
        })?;
        if self.next_is_any(&["with", "cascade"]) {
            let what = format!("grant … {}", self.advance()?.value);
            return Err(Error::refused(&what, "only the owner of an object grants rights on it", line));
        }
        // SQL Server: the principal from whom the right to grant comes
        if self.word("as") {
            let grantor = self.name()?;
            if !grantor.is("dbo") {
                let what = format!("grant … as {}", grantor.text);
                return Err(Error::refused(&what, "only the owner of an object grants rights on it", line));
            }
        }
        Ok(StatementKind::Grant(Grant { revoke, rights, object, roles }))
    }
}
