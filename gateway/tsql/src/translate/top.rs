//! TOP, and OFFSET … FETCH.

use super::item::{renamed, Item};
use super::locks::locks_rows;
use super::order::in_order;
use super::order::{ordered, unqualified};
use super::sources::Sources;
use super::translation::Translation;
use super::value::converted;
use crate::error::Error;
use crate::facts::session::ROW_LIMIT;
use crate::facts::types::{Family, Type, FLOAT};
use crate::resolve::names::literal;
use crate::tree::{Expression, Ordering, Query, Select, TableSource, Top};

/// A clause with a number of rows, and its errors ("Database Engine events and errors").
struct Clause {
    name: &'static str,
    least: i64,
    no_integer: i32,
    too_small: i32,
    too_small_words: &'static str,
}

const OFFSET: Clause = Clause {
    name: "OFFSET",
    least: 0,
    no_integer: 10743,
    too_small: 10742,
    too_small_words: "The offset specified in a OFFSET clause may not be negative.",
};

const FETCH: Clause = Clause {
    name: "FETCH",
    least: 1,
    no_integer: 10745,
    too_small: 10744,
    too_small_words: "The number of rows provided for a FETCH clause must be greater then zero.",
};

impl Translation<'_> {
    /// Limits `sql` to its first rows. Returns false if this needs more than a clause after it.
    pub fn top(
        &mut self,
        top: &Top,
        select: &Select,
        order_by: &[Ordering],
        items: &[Item],
        sources: &Sources,
        sql: String,
    ) -> Result<(String, bool), Error> {
        let is_ordered = !order_by.is_empty();
        let rows = match top.percent {
            true => self.percent_of(top, &sql)?,
            false => self.row_count(&top.count, top.at.line)?,
        };
        if top.with_ties {
            if !is_ordered {
                let text =
                    "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.";
                return Err(Error::new(1062, text, top.at));
            }
            return Ok((format!("{sql} fetch first ({rows}) rows with ties"), true));
        }
        if is_ordered && !top.percent {
            if let Some(sql) = self.top_by_index(select, order_by, items, sources, &rows)? {
                return Ok((sql, false));
            }
        }
        Ok((format!("{sql} limit {rows}"), true))
    }

    /// A percentage of the rows of a query.
    fn percent_of(&mut self, top: &Top, rows: &str) -> Result<String, Error> {
        let percent = self.value(&top.count)?;
        let percent = converted(percent, FLOAT, top.at.line, self.dialect())?.sql;
        Ok(format!("tsql.top_percent({percent}, (select count(*) from ({rows}) as \"counted\"))"))
    }

    /// A number of rows. Error 1060 if it is not a number, 127 if it is negative.
    pub fn row_count(&mut self, count: &Expression, line: u32) -> Result<String, Error> {
        let number = self.value(count)?;
        let is_other = |of: Type| !matches!(of.family, Family::Integer | Family::Bit);
        if number.is_null() || number.of.is_some_and(is_other) {
            let text =
                "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.";
            return Err(Error::new(1060, text, line));
        }
        match number.integer() {
            Some(integer) if integer < 0 => {
                Err(Error::new(127, "A TOP N or FETCH rowcount value may not be negative.", line))
            }
            Some(_) => Ok(number.sql),
            None => Ok(format!("tsql.top({})", number.sql)),
        }
    }

    /// The most rows that an INSERT, UPDATE or DELETE changes: SQL Server requires parentheses ("TOP").
    pub fn changed_at_most(&mut self, top: &Top) -> Result<String, Error> {
        self.demand_parentheses(top)?;
        self.row_count(&top.count, top.at.line)
    }

    fn demand_parentheses(&self, top: &Top) -> Result<(), Error> {
        match top.bare.as_ref().filter(|_| self.dialect().top_needs_parentheses) {
            None => Ok(()),
            Some(count) => Err(Error::syntax(count, top.at)),
        }
    }

    /// The most rows, of those selected by a query, that a change of this table affects.
    pub fn changed_of(
        &mut self,
        top: Option<&Top>,
        rows: &str,
        table: &str,
        line: u32,
    ) -> Result<Option<String>, Error> {
        let most = match top {
            None => None,
            Some(top) if top.with_ties => return Err(Error::syntax("with", top.at)),
            Some(top) if top.percent => {
                self.demand_parentheses(top)?;
                Some(self.percent_of(top, rows)?)
            }
            Some(top) => Some(self.changed_at_most(top)?),
        };
        self.rows_within(most, table, line)
    }

    /// The most rows that a change of this table affects: by its TOP, and by `set rowcount`.
    pub fn rows_within(
        &mut self,
        top: Option<String>,
        table: &str,
        line: u32,
    ) -> Result<Option<String>, Error> {
        if !self.scope.limits_rows {
            return Ok(top);
        }
        self.result.limited = Some(table.to_owned());
        let set = format!("nullif({}, 0)", self.variables.write(ROW_LIMIT, line)?);
        Ok(Some(top.map_or(set.clone(), |top| format!("least({top}, {set})"))))
    }

    /// `offset n rows fetch next m rows only`
    pub fn offset(&mut self, query: &Query, sql: &mut String) -> Result<(), Error> {
        let Some(offset) = &query.offset else { return Ok(()) };
        let line = offset.at().line;
        if query.order_by.is_empty() {
            return Err(Error::syntax("offset", line));
        }
        sql.push_str(&format!(" offset {}", self.skipped_or_fetched(offset, &OFFSET)?));
        if let Some(fetch) = &query.fetch {
            sql.push_str(&format!(" limit {}", self.skipped_or_fetched(fetch, &FETCH)?));
        }
        Ok(())
    }

    fn skipped_or_fetched(&mut self, count: &Expression, clause: &Clause) -> Result<String, Error> {
        let number = self.value(count)?;
        let fail = |number, text: String| Err(Error::new(number, text, count.at()));
        let no_integer =
            format!("The number of rows provided for a {} clause must be an integer.", clause.name);
        if number.is_null() || number.text().is_some() {
            return fail(clause.no_integer, no_integer);
        }
        let Clause { least, too_small, too_small_words, .. } = clause;
        match number.integer() {
            Some(integer) if integer < *least => fail(*too_small, (*too_small_words).to_owned()),
            Some(_) => Ok(number.sql),
            None => Ok(format!(
                "tsql.rows_of({}, {least}, {}, {}, {too_small}, {})",
                number.sql,
                clause.no_integer,
                literal(&no_integer),
                literal(too_small_words)
            )),
        }
    }

    /// The first rows by a column, by an index on it: `select top 5 * from log order by time desc`.
    ///
    /// T-SQL orders nulls first, PostgreSQL's indexes last. So the first rows with a value and the first without one
    /// are read separately, and the first of both are returned.
    fn top_by_index(
        &mut self,
        select: &Select,
        order_by: &[Ordering],
        items: &[Item],
        sources: &Sources,
        rows: &str,
    ) -> Result<Option<String>, Error> {
        let is_plain = !select.distinct
            && !locks_rows(select)
            && select.group_by.is_empty()
            && select.having.is_none()
            && self.around.aggregates == 0
            && matches!(select.from.as_slice(), [source] if !matches!(source, TableSource::Join { .. }));
        if !is_plain {
            return Ok(None);
        }
        let mut keys = Vec::with_capacity(order_by.len());
        for ordering in order_by {
            let value = self.value(&ordering.value)?;
            match self.plain_key(&ordering.value, items)? {
                None => return Ok(None),
                Some(key) => keys.push((key, value.of, ordering.descending)),
            }
        }
        let has_star = items.iter().any(|item| item.name.is_none());
        let Some(((key, of, descending), others)) =
            keys.split_first().filter(|_| !has_star || items.len() == 1)
        else {
            return Ok(None);
        };
        let rest: Vec<String> =
            others.iter().map(|(key, of, descending)| ordered(&in_order(key, *of), *descending)).collect();
        let listed: Vec<&str> = items.iter().map(|item| item.sql.as_str()).collect();
        let hidden =
            if has_star { String::new() } else { keys.iter().map(|(key, ..)| format!(", {key}")).collect() };
        let condition =
            if sources.condition.is_empty() { String::new() } else { format!("{} and ", sources.condition) };
        let start =
            format!("select {}{hidden} from {} where {condition}{key}", listed.join(", "), sources.from);
        let direction = if *descending { "desc" } else { "asc" };
        let then = if rest.is_empty() { String::new() } else { format!(", {}", rest.join(", ")) };
        let by_rest = if rest.is_empty() { String::new() } else { format!(" order by {}", rest.join(", ")) };
        let with_value =
            format!("{start} is not null order by {} {direction}{then} limit {rows}", in_order(key, *of));
        let without = format!("{start} is null{by_rest} limit {rows}");
        let (shown, columns, names) = if has_star {
            let names = order_by.iter().zip(&keys).map(|(of, (key, ..))| unqualified(&of.value, key));
            ("*".to_owned(), String::new(), names.collect::<Result<Vec<_>, Error>>()?)
        } else {
            let names: Vec<String> = (1..=keys.len()).map(|place| format!("\"k{place}\"")).collect();
            let (shown, columns) = renamed(items)?;
            (shown, format!(" ({columns}, {})", names.join(", ")), names)
        };
        let both: Vec<String> = keys
            .iter()
            .zip(&names)
            .map(|((_, of, descending), name)| ordered(&in_order(name, *of), *descending))
            .collect();
        Ok(Some(format!(
            "select {shown} from (({with_value}) union all ({without})) as \"top\"{columns} order by {} limit {rows}",
            both.join(", ")
        )))
    }
}
