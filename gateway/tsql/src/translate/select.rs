//! Selects: the list, the clauses, and UNION, INTERSECT and EXCEPT.

use super::arithmetic::arithmetic;
use super::expressions::sign;
use super::listing::Asked;
use super::order::Kind;
use super::tables::column_type;
use super::title::{ResultType, Title};
use super::translation::{Made, Translation, Verb};
use super::value::{assigned, implicit, Value};
use super::{stars, walk};
use crate::error::Error;
use crate::facts::types::{unified, Family, Type, GUID, INT};
use crate::resolve::names::{self, identifier, table};
use crate::tree::{
    Arguments, AssignOperator, ColumnName, Expression, Grouping, LiteralValue, ObjectName, Ordering, Query,
    QueryBody, Select, SelectItem, SetOperator, Variable,
};

/// What PostgreSQL calls a column without a name.
pub const NAMELESS: &str = "\"?column?\"";

/// An item of a select list.
#[derive(Clone, Debug)]
pub struct Item {
    pub sql: String,
    /// The same without its name.
    pub value: String,
    pub kind: Kind,
    /// As shown: "" for none, None for a star.
    pub name: Option<String>,
    /// The name is that of the table's column.
    pub is_own: bool,
    /// What it is assigned to.
    pub variable: Option<String>,
    /// Its type, where it is known and does not follow from a table's column.
    pub result_type: Option<ResultType>,
}

/// A query and the items of its list, which is the first of several selects'.
#[derive(Debug)]
pub struct Written {
    pub sql: String,
    pub items: Vec<Item>,
}

/// Where a select stands.
#[derive(Clone, Copy, PartialEq)]
pub enum Stands {
    /// It may assign to variables and fill a table; a bare NULL is an int.
    Outermost,
    /// The first of several that are combined: it may fill a table.
    First,
    Inside,
}

impl Translation<'_> {
    /// A statement: it returns rows, assigns to variables or fills tables.
    pub fn outermost(&mut self, query: &Query) -> Result<(Verb, String), Error> {
        let Written { sql, items } = self.query(query, Stands::Outermost)?;
        let line = query.at.line;
        let assigns: Vec<String> = items.iter().filter_map(|item| item.variable.clone()).collect();
        if !assigns.is_empty() {
            if assigns.len() != items.len() || !matches!(query.body, QueryBody::Select(_)) {
                let text = "A SELECT statement that assigns a value to a variable must not be combined with \
                            data-retrieval operations.";
                return Err(Error::new(141, text, line));
            }
            self.assigns = assigns;
            self.columns = Some(Vec::new());
            return Ok((Verb::Select, sql));
        }
        let Some(into) = first_select(&query.body).and_then(|select| select.into.as_ref()) else {
            self.listed = self.list_items(query, &items);
            self.columns = titles(items).or_else(|| stars::titles(query, &[]));
            return Ok((Verb::Select, sql));
        };
        if items.iter().any(|item| item.name.as_deref() == Some("")) {
            let text =
                "An object or column name is missing or empty. For SELECT INTO statements, verify each \
                        column has a name.";
            return Err(Error::new(1038, text, line));
        }
        let (created, name) = if into.is_temporary() {
            table(into)?;
            ("temporary table", identifier(&into.name, into.at.line)?)
        } else {
            ("table", table(into)?)
        };
        self.columns = titles(items).or_else(|| stars::titles(query, &[]));
        let made = format!("create {created} {name} as ");
        let sql = made.clone() + &sql;
        self.made = Some(Made { table: name, head: made.len() });
        Ok((Verb::SelectInto, sql))
    }

    /// A select inside an expression, of so many columns.
    pub fn subselect(&mut self, query: &Query, columns: Option<usize>) -> Result<String, Error> {
        let aggregates = self.aggregates;
        let Written { sql, items } = self.query(query, Stands::Inside)?;
        self.aggregates = aggregates;
        if columns.is_some_and(|columns| columns != items.len()) {
            let text = "Only one expression can be specified in the select list when the subquery is not \
                        introduced with EXISTS.";
            return Err(Error::new(116, text, query.at).with_severity(16));
        }
        Ok(sql)
    }

    pub fn query(&mut self, query: &Query, stands: Stands) -> Result<Written, Error> {
        let with = self.with(&query.with, query.max_recursion)?;
        let mut written = match &query.body {
            QueryBody::Select(select) => {
                self.select(select, &query.order_by, query.offset.is_some(), stands)?
            }
            QueryBody::Combined { first, others } => {
                let mut written = self.combined(first, others, stands)?;
                if !query.order_by.is_empty() {
                    let by: Vec<Ordering> = query.order_by.iter().map(of_result).collect();
                    written.sql = self.order_of_columns(&written.sql, &by, &written.items)?;
                }
                written
            }
            QueryBody::Values(rows) => self.values(rows, query.at.line)?,
            QueryBody::Parenthesised(inner) => {
                let stands = if stands == Stands::Outermost { Stands::First } else { stands };
                let inner = self.query(inner, stands)?;
                Written { sql: format!("({})", inner.sql), ..inner }
            }
        };
        self.offset(query, &mut written.sql)?;
        if stands != Stands::Outermost && written.items.iter().any(|item| item.variable.is_some()) {
            return Err(Error::syntax("=", query.at));
        }
        written.sql.insert_str(0, &with);
        if self.depth == 0 && !with.is_empty() {
            self.common = with;
        }
        Ok(written)
    }

    pub fn combined(
        &mut self,
        first: &QueryBody,
        others: &[(SetOperator, QueryBody)],
        stands: Stands,
    ) -> Result<Written, Error> {
        let stands = if stands == Stands::Inside { Stands::Inside } else { Stands::First };
        self.combining |= self.depth == 0;
        let mut parts = vec![self.operand(first, stands)?];
        for (_, other) in others {
            parts.push(self.operand(other, Stands::Inside)?);
        }
        if !self.sybase() {
            alike(&mut parts, first_select(first).map_or(1, |select| select.at.line))?;
        }
        let mut written = parts.remove(0);
        for ((operator, _), other) in others.iter().zip(parts) {
            let word = match operator {
                SetOperator::Union => "union",
                SetOperator::UnionAll => "union all",
                SetOperator::Except => "except",
                SetOperator::Intersect => "intersect",
            };
            together(&mut written.items, &other.items);
            written.sql.push_str(&format!(" {word} {}", other.sql));
        }
        Ok(written)
    }

    pub fn operand(&mut self, body: &QueryBody, stands: Stands) -> Result<Written, Error> {
        let in_parentheses = |written: Written| Written { sql: format!("({})", written.sql), ..written };
        match body {
            QueryBody::Select(select) => {
                let written = self.select(select, &[], false, stands)?;
                // what has a LIMIT must stand by itself
                Ok(if select.top.is_some() { in_parentheses(written) } else { written })
            }
            QueryBody::Combined { first, others } => {
                Ok(in_parentheses(self.combined(first, others, stands)?))
            }
            QueryBody::Values(rows) => self.values(rows, 0),
            QueryBody::Parenthesised(query) => Ok(in_parentheses(self.query(query, stands)?)),
        }
    }

    fn values(&mut self, rows: &[Vec<Expression>], line: u32) -> Result<Written, Error> {
        let rows = self.rows(rows, line)?;
        let width = rows.first().map_or(0, Vec::len);
        let rows: Vec<String> = rows
            .into_iter()
            .map(|row| {
                let values: Vec<String> = row.into_iter().flatten().map(|value| value.sql).collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let item = Item::new(String::new(), Some(String::new()), Kind::Unknown);
        Ok(Written { sql: format!("values {}", rows.join(", ")), items: vec![item; width] })
    }

    // --- one select ---

    fn select(
        &mut self,
        select: &Select,
        order_by: &[Ordering],
        has_offset: bool,
        stands: Stands,
    ) -> Result<Written, Error> {
        if let (Some(into), Stands::Inside) = (&select.into, stands) {
            return Err(Error::keyword("into", into.at));
        }
        let is_outermost = self.depth == 0;
        self.depth += 1;
        let sources = self.sources_of(select)?;
        self.aggregates = 0;
        let known = self.known.get(self.asked.len()).filter(|_| is_outermost);
        let around = self.listing.enter(is_outermost, known);
        let items = self.items(select, stands)?;
        let columns = self.listing.columns();
        let listed: Vec<&str> = items.iter().map(|item| item.sql.as_str()).collect();
        let mut sql =
            format!("select {}{}", if select.distinct { "distinct " } else { "" }, listed.join(", "));
        if !sources.from.is_empty() {
            sql.push_str(&format!(" from {}", sources.from));
        }
        if !sources.condition.is_empty() {
            sql.push_str(&format!(" where {}", sources.condition));
        }
        if !select.group_by.is_empty() {
            sql.push_str(&format!(" group by {}", self.groupings(&select.group_by)?));
        }
        if let Some(having) = &select.having {
            sql.push_str(&format!(" having {}", self.condition(having)?));
        }
        if !order_by.is_empty() {
            let clause = if select.distinct { None } else { self.order_by(order_by, &items)? };
            match clause {
                Some(clause) => sql.push_str(&clause),
                None => sql = self.order_of_columns(&sql, order_by, &items)?,
            }
        }
        let sql = match &select.top {
            None => sql,
            Some(top) if has_offset => {
                let text = "A TOP can not be used in the same query or sub-query as a OFFSET.";
                return Err(Error::new(10741, text, top.at));
            }
            Some(top) => self.top(top, select, order_by, &items, &sources, sql)?,
        };
        self.listing = around;
        self.depth -= 1;
        if is_outermost {
            self.asked.push(Asked { columns, from: sources.from });
        }
        Ok(Written { sql, items })
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
                Ok(Item::star("*".into()))
            }
            SelectItem::Star { table: Some(table), .. } => {
                let sql = format!("{}.*", self.qualifier(table)?);
                Ok(Item::star(sql))
            }
            SelectItem::Value { value, alias } => {
                let written = self.value(value)?;
                let is_int = written.is_null() && stands == Stands::Outermost;
                let kind = Kind::of(value.without_collation(), &written);
                let known = written.of.or(is_int.then_some(INT));
                let result_type = known.map(|of| ResultType { of, not_null: never_null(value) });
                let sql = if is_int { "null::integer".to_owned() } else { written.sql };
                let fills = select.into.is_some();
                let sql = match known.filter(|_| fills && !matches!(value, Expression::Column(_))) {
                    Some(of) => format!("({sql})::{}", column_type(of, select.at.line)?),
                    None => sql,
                };
                let (name, is_own) = match (alias, value.without_collation()) {
                    (Some(alias), _) => (alias.text.clone(), false),
                    (None, Expression::Column(column)) => (column.column.clone(), true),
                    (None, _) => (String::new(), false),
                };
                // a column by itself is sent as it was declared
                let is_column = matches!(value.without_collation(), Expression::Column(_));
                let result_type = result_type.filter(|_| !is_column || self.combining && self.depth == 1);
                let titled = match alias {
                    Some(alias) => format!("{sql} as {}", names::name(alias)?),
                    None if is_own => sql.clone(),
                    None => format!("{sql} as {NAMELESS}"),
                };
                Ok(Item { sql: titled, is_own, result_type, ..Item::new(sql, Some(name), kind) })
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
            return Err(Error::refused(&what, "use an aggregate or a loop", line));
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
            value = arithmetic(sign, before, value, line, self.sybase())?;
        }
        if let Some(target) = target {
            value = assigned(value, target, line, self.sybase())?;
        }
        if !over_rows {
            self.assigned.insert(name.clone(), value.clone());
        }
        let kind = if value.of == Some(GUID) { Kind::Guid } else { Kind::Other };
        Ok(Item { variable: Some(name.clone()), ..Item::new(value.sql, Some(String::new()), kind) })
    }

    fn groupings(&mut self, groupings: &[Grouping]) -> Result<String, Error> {
        let each: Result<Vec<_>, _> = groupings.iter().map(|one| self.grouping(one)).collect();
        Ok(each?.join(", "))
    }

    fn grouping(&mut self, grouping: &Grouping) -> Result<String, Error> {
        Ok(match grouping {
            Grouping::Value(value) => self.grouped(value)?,
            Grouping::Values(values) => {
                let each: Result<Vec<_>, _> = values.iter().map(|one| self.grouped(one)).collect();
                format!("({})", each?.join(", "))
            }
            Grouping::Rollup(items) => format!("rollup ({})", self.groupings(items)?),
            Grouping::Cube(items) => format!("cube ({})", self.groupings(items)?),
            Grouping::Sets(items) => format!("grouping sets ({})", self.groupings(items)?),
        })
    }

    fn grouped(&mut self, expression: &Expression) -> Result<String, Error> {
        let value = self.value(expression)?;
        if value.constant != super::value::Constant::None {
            let text =
                "Each GROUP BY expression must contain at least one column that is not an outer reference.";
            return Err(Error::new(164, text, expression.at()));
        }
        Ok(value.sql)
    }
}

impl Item {
    pub fn star(sql: String) -> Item {
        Item::new(sql, None, Kind::Unknown)
    }

    /// `name`: as in `Item`.
    fn new(value: String, name: Option<String>, kind: Kind) -> Item {
        Item { sql: value.clone(), value, kind, name, is_own: false, variable: None, result_type: None }
    }
}

/// The names over the columns; None where a star has PostgreSQL's.
pub fn titles(items: Vec<Item>) -> Option<Vec<Title>> {
    let title = |Item { name, is_own, result_type, .. }: Item| {
        name.map(|text| Title { is_own, result_type, ..Title::given(text) })
    };
    items.into_iter().map(title).collect()
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

fn is_isnull(name: &ObjectName) -> bool {
    name.is_bare() && name.name.eq_ignore_ascii_case("isnull")
}

/// The types of the columns of several selects: the one that both have.
fn together(items: &mut [Item], others: &[Item]) {
    let are_aligned = items.len() == others.len();
    for (place, item) in items.iter_mut().enumerate() {
        item.kind = others.get(place).map_or(item.kind, |other| item.kind.and(other.kind));
        let known = |item: &Item| item.result_type.filter(|_| are_aligned);
        item.result_type = match (known(item), others.get(place).and_then(known)) {
            (Some(one), Some(other)) => unified([Some(one.of), Some(other.of)])
                .map(|of| ResultType { of, not_null: one.not_null && other.not_null }),
            _ => None,
        };
    }
}

/// Converts the columns of several selects that are of different kinds, such as int and varchar, to the type of the
/// highest rank ("Data type precedence"), where the types are known: PostgreSQL combines only those of one kind.
fn alike(parts: &mut [Written], line: u32) -> Result<(), Error> {
    let width = parts.first().map_or(0, |part| part.items.len());
    if parts.iter().any(|part| part.items.len() != width || part.items.iter().any(|item| item.name.is_none()))
    {
        return Ok(());
    }
    let mut targets = vec![None; width];
    for (place, target) in targets.iter_mut().enumerate() {
        let types: Option<Vec<Type>> =
            parts.iter().map(|part| part.items[place].result_type.map(|known| known.of)).collect();
        let Some(types) = types else { continue };
        if types.iter().any(|of| kind(*of) != kind(types[0])) {
            *target = unified(types.iter().map(|of| Some(*of)));
        }
    }
    if targets.iter().all(Option::is_none) {
        return Ok(());
    }
    for part in parts {
        let mut columns = Vec::with_capacity(width);
        for ((item, target), column) in part.items.iter().zip(&targets).zip(numbered(&part.items)) {
            let own = format!("\"part\".{column}");
            let name = match item.name.as_deref() {
                None | Some("") => NAMELESS.to_owned(),
                Some(name) => identifier(name, line)?,
            };
            let value = match (target, item.result_type) {
                (Some(target), Some(known)) => implicit(Value::new(own, known.of), *target, line, false)?.sql,
                _ => own,
            };
            columns.push(format!("{value} as {name}"));
        }
        let names = numbered(&part.items).join(", ");
        part.sql = format!("select {} from ({}) as \"part\" ({names})", columns.join(", "), part.sql);
    }
    Ok(())
}

/// Types of one kind are combined by PostgreSQL as by T-SQL.
fn kind(of: Type) -> Family {
    match of.family {
        Family::Money | Family::Decimal | Family::Float => Family::Integer,
        Family::Date => Family::DateTime,
        family => family,
    }
}

/// The first select of several, which may fill a table.
fn first_select(body: &QueryBody) -> Option<&Select> {
    match body {
        QueryBody::Select(select) => Some(select),
        QueryBody::Combined { first, .. } => first_select(first),
        QueryBody::Parenthesised(query) => first_select(&query.body),
        QueryBody::Values(_) => None,
    }
}

/// Error 8155 for a table whose columns have no names.
pub fn refuse_nameless(items: &[Item], table: &str, line: u32) -> Result<(), Error> {
    match items.iter().position(|item| item.name.as_deref() == Some("")) {
        None => Ok(()),
        Some(place) => {
            let text = format!("No column name was specified for column {} of '{table}'.", place + 1);
            Err(Error::new(8155, text, line).with_severity(16))
        }
    }
}

/// What a result of several selects is ordered by: it has no columns but its own.
fn of_result(ordering: &Ordering) -> Ordering {
    let value = match &ordering.value {
        Expression::Column(column) => Expression::Column(ColumnName { table: None, ..column.clone() }),
        other => other.clone(),
    };
    Ordering { value, ..*ordering }
}

/// A name for each item of a list that has no star: `"c1", "c2"`.
pub fn numbered(items: &[Item]) -> Vec<String> {
    (1..=items.len()).map(|place| format!("\"c{place}\"")).collect()
}
