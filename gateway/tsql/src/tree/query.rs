//! Queries.

use super::*;

/// `with … select … union … order by … offset … fetch …`
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Vec<CommonTable>,
    pub body: QueryBody,
    pub order_by: Vec<Ordering>,
    /// `offset n rows`
    pub offset: Option<Expression>,
    /// `fetch next n rows only`
    pub fetch: Option<Expression>,
    /// `option (maxrecursion n)`; 0: without limit.
    pub max_recursion: Option<u16>,
    /// ASE's `at isolation` with a level that makes writers to the tables wait.
    pub is_held: bool,
    /// `for browse`
    pub for_browse: bool,
    pub for_json: Option<ForJson>,
    pub at: Position,
}

/// `name (columns) as (query)`
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    pub name: Name,
    pub columns: Vec<Name>,
    pub query: Query,
}

impl Query {
    /// A query without further clauses.
    pub fn of(body: QueryBody, at: Position) -> Query {
        Query {
            with: Vec::new(),
            body,
            order_by: Vec::new(),
            offset: None,
            fetch: None,
            max_recursion: None,
            is_held: false,
            for_browse: false,
            for_json: None,
            at,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// `values (…), (…)`, where T-SQL allows rows as a table
    Values(Vec<Vec<Expression>>),
    /// From left to right; `intersect` has higher precedence and thus is one of the operands.
    Combined {
        first: Box<QueryBody>,
        others: Vec<(SetOperator, QueryBody)>,
    },
    /// `(select …)`
    Parenthesised(Box<Query>),
}

impl QueryBody {
    /// The first of the selects that are combined.
    pub fn first_select(&self) -> Option<&Select> {
        match self {
            QueryBody::Select(select) => Some(select),
            QueryBody::Combined { first, .. } => first.first_select(),
            QueryBody::Parenthesised(query) => query.body.first_select(),
            QueryBody::Values(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Top>,
    pub items: Vec<SelectItem>,
    pub into: Option<ObjectName>,
    /// Separated by commas.
    pub from: Vec<TableSource>,
    pub condition: Option<Expression>,
    pub group_by: Vec<Grouping>,
    pub having: Option<Expression>,
    pub at: Position,
}

/// An item of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum Grouping {
    Value(Expression),
    /// `(a, b)` and `()`, as one item of the following
    Values(Vec<Expression>),
    /// `rollup (…)`, and `… with rollup`
    Rollup(Vec<Grouping>),
    /// `cube (…)`, and `… with cube`
    Cube(Vec<Grouping>),
    /// `grouping sets (…)`
    Sets(Vec<Grouping>),
}

/// `top n`, `top (n) percent with ties`
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    pub count: Expression,
    /// The number as written, without parentheses.
    pub bare: Option<String>,
    pub percent: bool,
    pub with_ties: bool,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`, `t.*`
    Star { table: Option<ObjectName>, at: Position },
    /// `value [[as] alias]` or `alias = value`
    Value { value: Expression, alias: Option<Name> },
    /// `@variable = value`
    Assign { variable: Variable, operator: AssignOperator, value: Expression },
    /// `identity(type, seed, increment) as alias`, of `select into`
    Identity { type_: TypeName, identity: Identity, alias: Option<Name>, at: Position },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    pub value: Expression,
    pub descending: bool,
}

/// The locks that a table's hints request. Hints without effect here are omitted; others are refused by the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    /// `updlock`, `xlock`: the rows read.
    pub rows: bool,
    /// `readpast`: locked rows are skipped.
    pub skips: bool,
    /// `nowait`
    pub fails: bool,
    /// `holdlock`, `serializable`, `tablockx`: the table, against writers.
    pub table: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableSource {
    Table {
        name: ObjectName,
        alias: Option<Name>,
        locks: Locks,
    },
    /// A table variable.
    Variable {
        variable: Variable,
        alias: Option<Name>,
    },
    Function {
        call: Box<FunctionCall>,
        /// For `openjson (…) with (…)`.
        schema: Vec<JsonColumn>,
        alias: Option<Name>,
        columns: Vec<Name>,
    },
    Query {
        query: Box<Query>,
        alias: Option<Name>,
        columns: Vec<Name>,
    },
    Join {
        kind: JoinKind,
        left: Box<TableSource>,
        right: Box<TableSource>,
        condition: Option<Expression>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
    CrossApply,
    OuterApply,
}
