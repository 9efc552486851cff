//! The sources of queries: tables, joins, subqueries.

use super::query::begins_no_statement;
use super::{Parser, LONGEST_CHAIN};
use crate::error::Error;
use crate::lexer::Token;
use crate::tree::{JoinKind, Locks, Name, ObjectName, Query, QueryBody, TableSource};

/// Hints without effect here.
const HARMLESS: [&str; 7] =
    ["nolock", "readuncommitted", "readcommitted", "readcommittedlock", "rowlock", "paglock", "noexpand"];
const LOCKING: [&str; 8] =
    ["holdlock", "updlock", "tablock", "tablockx", "xlock", "readpast", "serializable", "nowait"];
/// Hints that prevent others from inserting matching rows, or from writing to the whole table.
const OF_TABLES: [&str; 3] = ["holdlock", "serializable", "tablockx"];
const WHY: &str = "it changes what is locked or read";

/// The use of the table with the hints.
#[derive(Clone, Copy, PartialEq)]
enum Hinted {
    Read,
    Changed,
    /// A table of the catalogue, which is never locked.
    System,
}

fn has_condition(kind: JoinKind) -> bool {
    !matches!(kind, JoinKind::Cross | JoinKind::CrossApply | JoinKind::OuterApply)
}

impl<'t> Parser<'t> {
    /// A table and those joined to it.
    pub(super) fn table_source(&mut self) -> Result<TableSource, Error> {
        let source = self.joined_source()?;
        self.refuse_pivot()?;
        Ok(source)
    }

    /// Whether the next table is joined to another before its own ON.
    fn joins_before_on(&self) -> bool {
        let mut depth = 0_u32;
        for token in &self.tokens[self.at..] {
            if token.is_symbol("(") {
                depth += 1;
            } else if token.is_symbol(")") {
                let Some(less) = depth.checked_sub(1) else { return false };
                depth = less;
            } else if depth == 0 {
                if token.is_any(&["join", "apply"]) {
                    return true;
                }
                if token.is_any(&["on", "where", "select", "order", "group"]) || token.is_symbol(",") {
                    return false;
                }
            }
        }
        false
    }

    /// A table with the joins whose ON precedes the next one.
    fn joined_source(&mut self) -> Result<TableSource, Error> {
        let mut left = self.table_factor()?;
        let mut chain = 0;
        while let Some(kind) = self.join()? {
            chain += 1;
            if chain > LONGEST_CHAIN {
                return Err(Error::nested_too_deeply(self.position()));
            }
            let conditional = has_condition(kind);
            // a join b join c on … on …
            let nested = conditional && self.joins_before_on();
            let right =
                if nested { self.deeper(Self::joined_source)? } else { self.deeper(Self::table_factor)? };
            let condition = match conditional {
                true => {
                    self.expect_word("on")?;
                    Some(self.condition()?)
                }
                false => None,
            };
            left = TableSource::Join { kind, left: Box::new(left), right: Box::new(right), condition };
        }
        Ok(left)
    }

    fn join(&mut self) -> Result<Option<JoinKind>, Error> {
        let Some(token) = self.peek() else { return Ok(None) };
        let kind = if token.is("join") {
            JoinKind::Inner
        } else if token.is("inner") {
            self.at += 1;
            JoinKind::Inner
        } else if token.is("left") {
            self.at += 1;
            self.word("outer");
            JoinKind::Left
        } else if token.is("right") {
            self.at += 1;
            self.word("outer");
            JoinKind::Right
        } else if token.is("full") {
            self.at += 1;
            self.word("outer");
            JoinKind::Full
        } else if token.is("cross") {
            self.at += 1;
            if self.word("apply") {
                return Ok(Some(JoinKind::CrossApply));
            }
            JoinKind::Cross
        } else if token.is("outer") {
            self.at += 1;
            self.expect_word("apply")?;
            return Ok(Some(JoinKind::OuterApply));
        } else {
            return Ok(None);
        };
        // hints of the join method
        if self.next_is_any(&["hash", "loop", "merge", "remote"]) && self.ahead_is(1, "join") {
            self.at += 1;
        }
        self.expect_word("join")?;
        Ok(Some(kind))
    }

    fn table_factor(&mut self) -> Result<TableSource, Error> {
        if self.next_is_symbol("(") {
            return self.deeper(Self::source_in_parentheses);
        }
        if self.next_is_variable() {
            let variable = self.own_variable()?;
            self.refuse_method()?;
            let alias = self.table_alias()?;
            self.harmless_hints()?;
            return Ok(TableSource::Variable { variable, alias });
        }
        // SQL Server 2000: a function of the system
        if self.ahead_is_symbol(2, "(") {
            self.symbol("::");
        }
        self.refuse_method()?;
        let name = self.object_name()?;
        if self.next_is_symbol("(") && !self.bare_hints(&name)? {
            let of = if name.is_bare() { name.name.to_lowercase() } else { String::new() };
            if ["containstable", "freetexttable", "openxml"].contains(&&*of) {
                return Err(Error::refused(&format!("{of}()"), "ringlog has no such function", name.at));
            }
            let call = Box::new(self.deeper(|parser| parser.function_call(name, &of))?);
            if of == "openjson" {
                return self.opened_json(call);
            }
            let alias = self.table_alias()?;
            let columns = self.alias_columns(alias.as_ref())?;
            return Ok(TableSource::Function { call, schema: Vec::new(), alias, columns });
        }
        let of_system =
            name.owner.eq_ignore_ascii_case("sys") || name.owner.eq_ignore_ascii_case("information_schema");
        let mut is_held = self.holds();
        let alias = self.table_alias()?;
        is_held |= self.holds();
        if self.next_is_symbol("(") && !self.bare_hints(&name)? {
            return Err(self.wrong());
        }
        is_held |= self.holds();
        let mut locks = self.hints(if of_system { Hinted::System } else { Hinted::Read })?;
        is_held |= self.holds();
        locks.table |= is_held;
        Ok(TableSource::Table { name, alias, locks })
    }

    /// ASE's words after a table: returns whether `holdlock` is among them. `noholdlock` and `shared` describe the
    /// usual behaviour here.
    fn holds(&mut self) -> bool {
        let mut is_held = false;
        loop {
            if self.word("holdlock") {
                is_held = true;
            } else if !self.any_word(&["noholdlock", "shared"]) {
                return is_held;
            }
        }
    }

    /// `(select …) alias`, `(values …) alias (columns)`, `(a join b on …)`.
    fn source_in_parentheses(&mut self) -> Result<TableSource, Error> {
        let start = self.position();
        let query = if self.ahead_is(1, "values") {
            self.at += 2;
            let rows = self.list(|parser| parser.in_parentheses(Self::value_or_default))?;
            self.expect_symbol(")")?;
            Query::of(QueryBody::Values(rows), self.since(start))
        } else if self.opens_query() {
            self.subquery()?
        } else {
            self.at += 1;
            let source = self.table_source()?;
            self.expect_symbol(")")?;
            return Ok(source);
        };
        let alias = self.table_alias()?;
        let columns = self.alias_columns(alias.as_ref())?;
        self.pivoted(TableSource::Query { query: Box::new(query), alias, columns })
    }

    /// Whether the following parentheses contain a select.
    pub(super) fn opens_query(&self) -> bool {
        let opened = self.tokens[self.at..].iter().take_while(|token| token.is_symbol("(")).count();
        opened > 0 && self.ahead(opened).is_some_and(|token| token.is_any(&["select", "with"]))
    }

    pub(super) fn alias_columns(&mut self, alias: Option<&Name>) -> Result<Vec<Name>, Error> {
        if alias.is_some() && self.next_is_symbol("(") {
            return self.names_in_parentheses();
        }
        Ok(Vec::new())
    }

    pub(super) fn table_alias(&mut self) -> Result<Option<Name>, Error> {
        if self.word("as") {
            return self.name().map(Some);
        }
        match self.peek() {
            // a word before a colon is a label
            Some(_) if self.ahead_is_symbol(1, ":") => Ok(None),
            Some(token) if token.is_name() && begins_no_statement(token) && !self.is_clause(token) => {
                self.name().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Words that are not aliases in this position, though they are not reserved.
    fn is_clause(&self, token: &Token<'_>) -> bool {
        token.is_any(&["noholdlock", "shared", "lock"])
            || (token.is("at") && self.ahead_is(1, "isolation"))
            || (token.is("output") && !self.ahead_is_symbol(1, ","))
    }

    /// `with (hints)` of a table to change, whose rows the change locks. Returns whether the whole table is locked.
    pub(super) fn hints_of_change(&mut self) -> Result<bool, Error> {
        let at = self.position();
        match self.hints(Hinted::Changed)? {
            Locks { skips: false, table, .. } => Ok(table),
            _ => Err(Error::refused("readpast of what is changed", "choose the rows by a query", at)),
        }
    }

    /// `with (hints)` in a place where hints must not lock.
    pub(super) fn harmless_hints(&mut self) -> Result<(), Error> {
        let at = self.position();
        match self.hints(Hinted::Read)? == Locks::default() {
            true => Ok(()),
            false => Err(Error::refused("with (…)", WHY, at)),
        }
    }

    /// `with (hints)`; hints without effect are skipped.
    fn hints(&mut self, of: Hinted) -> Result<Locks, Error> {
        let (start, mut locks) = (self.position(), Locks::default());
        if !self.next_is("with") || !self.ahead_is_symbol(1, "(") {
            return Ok(locks);
        }
        self.at += 2;
        let (mut reads_all, mut at_table) = (false, false);
        loop {
            let token = self.advance()?;
            if token.is("index") {
                self.index_hint()?;
            } else if token.is_any(&["updlock", "xlock"]) {
                locks.rows = true;
            } else if token.is("readpast") {
                locks.skips = true;
            } else if token.is("nowait") {
                locks.fails = true;
            } else if token.is("tablock") {
                at_table = true;
            } else if token.is_any(&OF_TABLES) && of != Hinted::System {
                locks.table = true;
            } else if token.is_any(&HARMLESS) {
                reads_all |= token.is_any(&["nolock", "readuncommitted"]);
            } else {
                let what = format!("with ({})", token.shown());
                return Err(Error::refused(&what, WHY, token.at));
            }
            self.symbol(",");
            if self.symbol(")") {
                break;
            }
        }
        if (locks.rows || locks.table) && reads_all {
            return Err(Error::new(1047, "Conflicting locking hints specified.", start));
        }
        // TABLOCK alone, on a table that is only read, ends with the statement
        locks.table |= at_table && (locks.rows || of == Hinted::Changed);
        // the catalogue is never locked, and a reader does not wait
        if of == Hinted::System || locks == (Locks { fails: locks.fails, ..Locks::default() }) {
            return Ok(Locks::default());
        }
        if locks.skips && (locks.table || !locks.rows) {
            return Err(Error::refused("with (readpast)", WHY, start));
        }
        Ok(locks)
    }

    /// `index (i)`, `index = i`, `index i`.
    fn index_hint(&mut self) -> Result<(), Error> {
        self.symbol("=");
        if self.next_is_symbol("(") {
            self.in_parentheses(|parser| parser.advance().map(|_| ()))?;
        } else {
            self.advance()?;
        }
        Ok(())
    }

    /// Hints without WITH: `t (nolock)`, `t (index i)`; false for anything else in parentheses.
    fn bare_hints(&mut self, _table: &ObjectName) -> Result<bool, Error> {
        let Some(inner) = self.ahead(1) else { return Ok(false) };
        if inner.is_any(&LOCKING) && self.ahead_is_symbol(2, ")") {
            return Err(Error::refused(&inner.value, "it changes what is locked", inner.at));
        }
        if inner.is_any(&HARMLESS) && (self.ahead_is_symbol(2, ")") || self.ahead_is_symbol(2, ",")) {
            self.at += 1;
            self.list(|parser| parser.expect_any(&HARMLESS))?;
            self.expect_symbol(")")?;
            return Ok(true);
        }
        if inner.is("index") {
            self.at += 2;
            self.index_hint()?;
            self.expect_symbol(")")?;
            return Ok(true);
        }
        Ok(false)
    }

    fn refuse_pivot(&self) -> Result<(), Error> {
        match self.peek() {
            Some(token) if token.is_any(&["pivot", "unpivot"]) => Err(self.refused_word(token)),
            _ => Ok(()),
        }
    }
}
