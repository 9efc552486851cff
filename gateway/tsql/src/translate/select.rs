//! Selects: the list and the clauses.

use super::arithmetic::{arithmetic, sign};
use super::item::{named_twice, titles, Item, Stands, Written, NAMELESS};
use super::order::refuse_order;
use super::sources::Sources;
use super::tables::column_type;
use super::title::{ListItem, ResultType};
use super::translation::{Around, Translation, Verb};
use super::value::{assigned, Value};
use super::{stars, walk};
use crate::error::Error;
use crate::facts::types::{unified, Type, INT};
use crate::postgres::{self, Body, Create, Listed, Scalar, Statement};
use crate::resolve::names::{self, stored};
use crate::schema::{Column, Table, WHOLE};
use crate::tree::{
    Arguments, AssignOperator, ColumnName, Expression, Grouping, LiteralValue, ObjectName, Ordering, Query,
    QueryBody, Select, SelectItem, TableSource, Variable,
};
use std::mem::{replace, take};

impl Translation<'_> {
    /// A statement: it returns rows, assigns to variables or fills tables.
    pub fn outermost(&mut self, query: &Query) -> Result<(Verb, Statement), Error> {
        let Written { sql, items } = self.query(query, Stands::Outermost)?;
        let line = query.at.line;
        if !query.with.is_empty() || !matches!(query.body, QueryBody::Select(_)) {
            self.note(|facts| facts.adds_nulls = true);
        }
        if query.for_browse {
            self.browse(query, &items)?;
        }
        let assigns: Vec<String> = items.iter().filter_map(|item| item.variable.clone()).collect();
        if !assigns.is_empty() {
            if !matches!(query.body, QueryBody::Select(_)) {
                return Err(assigns_in_union(line));
            }
            if assigns.len() != items.len() {
                let text = "A SELECT statement that assigns a value to a variable must not be combined with \
                            data-retrieval operations.";
                return Err(Error::new(141, text, line));
            }
            self.result.assigns = assigns;
            self.result.columns = Some(Vec::new());
            return Ok((Verb::Select, sql.into()));
        }
        let Some(into) = query.body.first_select().and_then(|select| select.into.as_ref()) else {
            let listed = |item: &Item| match item.name {
                None => ListItem::Star,
                Some(_) => ListItem::Value(item.result_type),
            };
            self.result.items = items.iter().map(listed).collect();
            self.result.columns = titles(items).or_else(|| stars::titles(query, &[]));
            return Ok((Verb::Select, sql.into()));
        };
        if items.iter().any(|item| item.name.as_deref() == Some("")) {
            let text =
                "An object or column name is missing or empty. For SELECT INTO statements, verify each \
                        column has a name.";
            return Err(Error::new(1038, text, line));
        }
        if let Some(twice) = named_twice(items.iter().filter_map(|item| item.name.as_deref())) {
            let text = format!(
                "Column names in each table must be unique. Column name '{twice}' in table '{}' is specified more \
                 than once.",
                into.name
            );
            return Err(Error::new(2705, text, into.at).with_severity(16));
        }
        self.result.made = if self.needs_made() { self.made(&items) } else { None };
        let relation = names::relation(into)?;
        let is_temporary = relation.is_temporary();
        let table = if is_temporary { names::quoted(&relation.own) } else { relation.sql.clone() };
        self.result.columns = titles(items).or_else(|| stars::titles(query, &[]));
        let has_limit = match &query.body {
            QueryBody::Select(select) => select.top.is_some() || query.offset.is_some(),
            QueryBody::Combined { .. } => query.offset.is_some(),
            QueryBody::Values(_) | QueryBody::Parenthesised(_) => true,
        };
        let limit = if has_limit { None } else { self.rows_within(None, &table, line)? };
        let of_one_table = match &query.body {
            QueryBody::Select(select) => {
                matches!(select.from[..], [TableSource::Table { .. }]) && select.group_by.is_empty()
            }
            _ => false,
        };
        self.note(|facts| (facts.created, facts.of_one_table) = (Some(relation), of_one_table));
        let (rows, is_open) = (sql.limited(limit), self.variables.marks_lists());
        Ok((Verb::SelectInto, Statement::Create(Create { table, is_temporary, rows, is_open })))
    }

    /// A body is written before its tables exist; a statement of a batch is written again when they do.
    fn needs_made(&self) -> bool {
        !self.variables.are_parameters()
    }

    /// The table that a SELECT INTO of these items makes; None if the columns of a star are not known.
    fn made(&mut self, items: &[Item]) -> Option<Table> {
        let mut made = Table::default();
        made.has_own_rows = true;
        for item in items {
            if let Some(name) = &item.name {
                made.add(Column { name: stored(name), of: item.of, ..Column::default() });
            }
            for source in &item.all_of {
                if source.is_open || !source.columns.is_empty() {
                    return None;
                }
                for table in &source.tables {
                    self.variables.note_use(table, Some(WHOLE));
                    for Column { name, of, .. } in self.scope.table(table)?.columns() {
                        made.add(Column { name: name.clone(), of: *of, ..Column::default() });
                    }
                }
            }
        }
        Some(made)
    }

    /// `for browse`: for a select that returns its rows to the client.
    fn browse(&mut self, query: &Query, items: &[Item]) -> Result<(), Error> {
        let gives_rows =
            |select: &Select| select.into.is_none() && items.iter().all(|item| item.variable.is_none());
        match &query.body {
            QueryBody::Select(select) if gives_rows(select) => self.variables.browse(query.at.line),
            _ => Err(Error::refused(
                "for browse",
                "rows are browsed by one select that returns them",
                query.at,
            )),
        }
    }

    /// A select inside an expression, with this many columns.
    pub fn subselect(
        &mut self,
        query: &Query,
        columns: Option<usize>,
    ) -> Result<Box<postgres::Query>, Error> {
        self.subquery(query, columns).map(|written| Box::new(written.sql))
    }

    /// The same with its items.
    pub fn subquery(&mut self, query: &Query, columns: Option<usize>) -> Result<Written, Error> {
        refuse_order(query, self.dialect())?;
        let aggregates = self.around.aggregates;
        let written = self.query(query, Stands::Inside)?;
        self.around.aggregates = aggregates;
        if columns.is_some_and(|columns| columns != written.items.len()) {
            let text = "Only one expression can be specified in the select list when the subquery is not \
                        introduced with EXISTS.";
            return Err(Error::new(116, text, query.at).with_severity(16));
        }
        Ok(written)
    }

    pub fn query(&mut self, query: &Query, stands: Stands) -> Result<Written, Error> {
        self.around.holds |= query.is_held;
        if query.for_browse && stands != Stands::Outermost {
            return Err(Error::refused(
                "for browse",
                "only the rows of a whole select are browsed",
                query.at,
            ));
        }
        if let Some(json) = &query.for_json {
            return self.for_json(query, json, stands);
        }
        let with = self.with(&query.with, query.max_recursion)?;
        let mut written = match &query.body {
            QueryBody::Select(select) => {
                self.select(select, &query.order_by, query.offset.is_some(), stands)?
            }
            QueryBody::Combined { first, others } => {
                self.combined_in_order(first, others, &query.order_by, stands)?
            }
            QueryBody::Values(rows) => self.values(rows, query.at.line)?,
            QueryBody::Parenthesised(inner) => {
                let stands = if stands == Stands::Outermost { Stands::First } else { stands };
                let inner = self.query(inner, stands)?;
                Written { sql: inner.sql.parenthesised(), ..inner }
            }
        };
        self.offset(query, &mut written.sql)?;
        if stands != Stands::Outermost && written.items.iter().any(|item| item.variable.is_some()) {
            return Err(Error::syntax("=", query.at));
        }
        written.sql.with = with;
        Ok(written)
    }

    pub fn values(&mut self, rows: &[Vec<Expression>], line: u32) -> Result<Written, Error> {
        let mut rows = self.rows(rows, line)?;
        for value in rows.iter_mut().flatten() {
            *value = value.take().map(|value| self.collated_by_default(value));
        }
        let width = rows.first().map_or(0, Vec::len);
        let item = |of| Item { of, ..Item::new(Scalar::Null, Some(String::new())) };
        let items = (0..width).map(|place| item(column_of(&rows, place))).collect();
        let row = |row: Vec<Option<Value>>| row.into_iter().flatten().map(|value| value.sql).collect();
        let rows = Body::Values(rows.into_iter().map(row).collect());
        Ok(Written { sql: rows.into(), items })
    }

    // --- one select ---

    pub fn select(
        &mut self,
        select: &Select,
        order_by: &[Ordering],
        has_offset: bool,
        stands: Stands,
    ) -> Result<Written, Error> {
        if let (Some(into), Stands::Inside) = (&select.into, stands) {
            return Err(Error::keyword("into", into.at));
        }
        self.around.selects += 1;
        let for_json = take(&mut self.around.for_json);
        let named = self.named_sources(&select.from)?;
        self.names.sources.push(named);
        let sources = self.sources_of(select)?;
        self.around.aggregates = 0;
        let around = replace(&mut self.around.is_ordered, select.distinct || !order_by.is_empty());
        let mut items = match self.grown(select, order_by)? {
            Some(item) => vec![item],
            None => self.items(select, stands)?,
        };
        self.around.is_ordered = around;
        if for_json {
            self.note_properties(select, &mut items)?;
        }
        // groups differ by their keys
        let counts_keys = self.dialect().distinct_counts_keys;
        let distinct = select.distinct && (select.group_by.is_empty() || !counts_keys);
        let beside = if distinct && counts_keys { self.keys_beside(order_by, &items)? } else { Vec::new() };
        let is_of_rows = stands == Stands::Outermost && is_of_rows(select) && self.around.aggregates == 0;
        let row_sources = if is_of_rows { self.row_sources(&select.from)? } else { Vec::new() };
        if !sources.from.is_empty() {
            self.note(|facts| facts.reads = true);
        }
        let titles = Titles::of(select, &items);
        let group_by = self.groupings(&select.group_by, &titles)?;
        let mut having: Vec<Scalar> = self.ungrouped(select, order_by, stands)?.into_iter().collect();
        let own = select.having.as_ref().map(|having| self.condition(having)).transpose()?;
        having.extend(self.ungrouped_stars(select)?);
        having.extend(own);
        let list = items.iter().map(Item::listed).chain(beside.iter().cloned().map(Listed::from)).collect();
        let Sources { from, conditions } = sources;
        let one = postgres::Select { distinct, list, is_open: false, from, conditions, group_by, having };
        let mut query = postgres::Query::from(one);
        // no other select encloses it
        let mut is_whole = true;
        if !order_by.is_empty() {
            let clause = if distinct { None } else { self.order_by(order_by, &items)? };
            match clause {
                Some(clause) => query.order_by = clause,
                None if !beside.is_empty() => {
                    (query, is_whole) = (self.order_beside(query, order_by, &items)?, false);
                }
                None => (query, is_whole) = self.order_of_columns(query, order_by, &items)?,
            }
        }
        match &select.top {
            None => {}
            Some(top) if has_offset => {
                let text = "A TOP can not be used in the same query or sub-query as a OFFSET.";
                return Err(Error::new(10741, text, top.at));
            }
            Some(top) => {
                let (first, is_still_whole) = self.top(top, select, order_by, &items, query)?;
                query = first;
                is_whole &= is_still_whole;
            }
        }
        query.locks = self.locks(select)?;
        if let (Body::Select(written), true, false) = (&mut query.body, is_whole, row_sources.is_empty()) {
            written.is_open = self.variables.marks_lists();
            self.result.row_sources = row_sources;
        }
        self.names.sources.pop();
        self.around.selects -= 1;
        Ok(Written { sql: query, items })
    }

    pub fn items(&mut self, select: &Select, stands: Stands) -> Result<Vec<Item>, Error> {
        select.items.iter().map(|item| self.item(item, select, stands)).collect()
    }

    pub fn item(&mut self, item: &SelectItem, select: &Select, stands: Stands) -> Result<Item, Error> {
        match item {
            SelectItem::Star { table: None, at } => {
                if select.from.is_empty() {
                    return Err(Error::new(263, "Must specify table to select from.", *at).with_severity(16));
                }
                Ok(Item { all_of: self.all_of(None), ..Item::star(None) })
            }
            SelectItem::Star { table: Some(table), .. } => {
                let row = self.qualifier(table)?;
                Ok(Item { all_of: self.all_of(Some(table)), ..Item::star(Some(row)) })
            }
            SelectItem::Value { value, alias } => {
                let is_plain = stands == Stands::Outermost
                    && (select.into.is_none() || !self.needs_made())
                    && !self.around.combining
                    && !self.around.is_ordered;
                let Around { variables, new_ids, .. } = self.around;
                let written = if is_plain { self.plain(value)? } else { self.value(value)? };
                let written = self.collated_by_default(written);
                let names_variables = self.scope.procedure && self.around.variables > variables;
                let has_new_id = self.around.new_ids > new_ids;
                let is_int = written.is_null() && stands == Stands::Outermost;
                let known = written.of.or(is_int.then_some(INT));
                let result_type = known.map(|of| ResultType { of, not_null: never_null(value) });
                let sql = if is_int { Scalar::Null.cast("integer") } else { written.sql.clone() };
                let fills = select.into.is_some();
                let sql = match known.filter(|_| fills && !matches!(value, Expression::Column(_))) {
                    Some(of) => sql.cast(column_type(of, select.at.line)?),
                    None => sql,
                };
                let (name, is_own) = match (alias, value.without_collation()) {
                    (Some(alias), _) => (alias.text.clone(), false),
                    (None, Expression::Column(column)) => (column.column.clone(), true),
                    (None, _) => (String::new(), false),
                };
                // a column alone is sent as declared
                let is_column = matches!(value.without_collation(), Expression::Column(_));
                let result_type =
                    result_type.filter(|_| !is_column || self.around.combining && self.around.selects == 1);
                let shown = match alias {
                    Some(alias) => Some(names::name(alias)?),
                    None if is_own => None,
                    None => Some(NAMELESS.to_owned()),
                };
                // the outermost select's rows are sent with the types of its columns
                let is_wide = stands == Stands::Inside && self.is_wide(value)?;
                Ok(Item {
                    alias: shown,
                    is_own,
                    names_variables,
                    has_new_id,
                    result_type,
                    of: known,
                    is_wide,
                    ..Item::new(sql, Some(name))
                })
            }
            SelectItem::Assign { variable, .. } if stands == Stands::Inside && self.around.combining => {
                Err(assigns_in_union(variable.at.line))
            }
            SelectItem::Assign { variable, operator, value } => {
                self.assigned_item(variable, *operator, value, select)
            }
            SelectItem::Identity { at, .. } => Err(Error::refused(
                "identity(…) in select into",
                "create the table with an identity column",
                *at,
            )),
        }
    }

    /// `@a = expression`: the value has the variable's type.
    fn assigned_item(
        &mut self,
        variable: &Variable,
        operator: AssignOperator,
        expression: &Expression,
        select: &Select,
    ) -> Result<Item, Error> {
        let (name, line) = (&variable.name, variable.at.line);
        if variable.is_global() {
            return Err(Error::syntax(name, line));
        }
        let target = self.scope.type_of(name, line)?;
        let operator = operator.computes();
        let over_rows = !select.from.is_empty();
        if over_rows && (operator.is_some() || walk::names_variable(expression, name)) {
            let what = format!("{name} = … {name} … over rows");
            let why = "use an aggregate or a loop; a text may grow by each row, with order by columns";
            return Err(Error::refused(&what, why, line));
        }
        let is_elsewhere = |item: &SelectItem| match item {
            SelectItem::Assign { value, .. } => {
                !std::ptr::eq(value, expression) && walk::names_variable(value, name)
            }
            _ => false,
        };
        if over_rows && select.items.iter().any(is_elsewhere) {
            let what = format!("{name} assigned and used over rows");
            return Err(Error::refused(&what, "use an aggregate or a loop", line));
        }
        let mut value = self.value(expression)?;
        if let Some(sign) = operator.and_then(sign) {
            let before = self.variable(variable)?;
            value = arithmetic(sign, before, value, line, self.dialect())?;
        }
        if let Some(target) = target {
            value = assigned(value, target, line, self.dialect())?;
        }
        if !over_rows {
            self.assigned.insert(name.clone(), value.clone());
        }
        let item = Item::new(value.sql, Some(String::new()));
        Ok(Item { variable: Some(name.clone()), of: value.of, ..item })
    }

    fn groupings(
        &mut self,
        groupings: &[Grouping],
        titles: &Titles,
    ) -> Result<Vec<postgres::Grouping>, Error> {
        groupings.iter().map(|one| self.grouping(one, titles)).collect()
    }

    fn grouping(&mut self, grouping: &Grouping, titles: &Titles) -> Result<postgres::Grouping, Error> {
        let has_totals = matches!(grouping, Grouping::Rollup(_) | Grouping::Cube(_) | Grouping::Sets(_));
        self.note(|facts| facts.adds_nulls |= has_totals);
        Ok(match grouping {
            Grouping::Value(value) => postgres::Grouping::Value(self.grouped(value, titles)?),
            Grouping::Values(values) => {
                let values: Result<_, _> = values.iter().map(|one| self.grouped(one, titles)).collect();
                postgres::Grouping::Values(values?)
            }
            Grouping::Rollup(items) => postgres::Grouping::Of("rollup", self.groupings(items, titles)?),
            Grouping::Cube(items) => postgres::Grouping::Of("cube", self.groupings(items, titles)?),
            Grouping::Sets(items) => postgres::Grouping::Of("grouping sets", self.groupings(items, titles)?),
        })
    }

    fn grouped(&mut self, expression: &Expression, titles: &Titles) -> Result<Scalar, Error> {
        let value = match titles.column(expression)? {
            Some(column) => self.plain(&column)?,
            None => self.plain(expression)?,
        };
        if value.constant != super::value::Constant::None {
            let text =
                "Each GROUP BY expression must contain at least one column that is not an outer reference.";
            return Err(Error::new(164, text, expression.at()));
        }
        Ok(match walk::any(expression, &mut names_text) {
            true => self.collated_by_default(value).sql,
            // all letters of such a text have one case
            false => value.sql,
        })
    }
}

/// A literal, or a variable, which may be a text.
fn names_text(expression: &Expression) -> bool {
    matches!(expression, Expression::Literal(_) | Expression::Variable(_))
}

/// The type of a column of rows of values, if known.
fn column_of(rows: &[Vec<Option<Value>>], place: usize) -> Option<Type> {
    let values = rows.iter().filter_map(|row| row.get(place)?.as_ref());
    unified(values.filter(|value| !value.is_null()).map(|value| value.of))
}

/// The names of a select list: in PostgreSQL GROUP BY may name them, in T-SQL it names columns of tables only.
struct Titles {
    names: Vec<String>,
    /// The FROM is empty.
    has_none: bool,
    /// The one table of the FROM.
    table: Option<ObjectName>,
}

impl Titles {
    fn of(select: &Select, items: &[Item]) -> Titles {
        let given = items.iter().filter(|item| !item.is_own).filter_map(|item| item.name.as_deref());
        let table = match select.from.as_slice() {
            [TableSource::Table { name, alias: None, .. }] => Some(name.clone()),
            [TableSource::Table { alias: Some(alias), .. }
            | TableSource::Variable { alias: Some(alias), .. }
            | TableSource::Function { alias: Some(alias), .. }
            | TableSource::Query { alias: Some(alias), .. }] => {
                Some(ObjectName { name: alias.text.clone(), at: alias.at, ..ObjectName::default() })
            }
            _ => None,
        };
        Titles { names: given.map(str::to_lowercase).collect(), has_none: select.from.is_empty(), table }
    }

    /// A column with one of the names, as that of the table; None if they need not be distinguished. Error 207 if there
    /// is no table.
    fn column(&self, expression: &Expression) -> Result<Option<Expression>, Error> {
        let Expression::Column(column) = expression else { return Ok(None) };
        if column.table.is_some() || !self.names.contains(&stored(&column.column)) {
            return Ok(None);
        }
        if self.has_none {
            let text = format!("Invalid column name '{}'.", column.column);
            return Err(Error::new(207, text, column.at).with_severity(16));
        }
        let of_table = |table: &ObjectName| {
            Expression::Column(ColumnName { table: Some(Box::new(table.clone())), ..column.clone() })
        };
        Ok(self.table.as_ref().map(of_table))
    }
}

/// Whether an expression is never null: a literal, or isnull() that ends in one.
fn never_null(expression: &Expression) -> bool {
    match expression {
        Expression::Literal(literal) => literal.value != LiteralValue::Null,
        Expression::Function(call) if is_isnull(&call.name) => match &call.arguments {
            Arguments::Values(values) => values.get(1).is_some_and(never_null),
            Arguments::Star => false,
        },
        _ => false,
    }
}

/// Whether each row of a select is one of its sources', by its clauses.
fn is_of_rows(select: &Select) -> bool {
    let gives_rows = |item: &SelectItem| matches!(item, SelectItem::Star { .. } | SelectItem::Value { .. });
    !select.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.into.is_none()
        && select.items.iter().all(gives_rows)
}

fn is_isnull(name: &ObjectName) -> bool {
    name.is_bare() && name.name.eq_ignore_ascii_case("isnull")
}

fn assigns_in_union(line: u32) -> Error {
    let text = "Variable assignment is not allowed in a statement containing a top level UNION, INTERSECT or EXCEPT \
                operator.";
    Error::new(10734, text, line)
}
