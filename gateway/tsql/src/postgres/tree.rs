//! Expressions, queries and changes of PostgreSQL. Names are as SQL writes them, in quotes where it needs them.

use crate::tree::Frame;
use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::mem::take;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Null,
    Boolean(bool),
    /// DEFAULT of a column.
    Default,
    /// `*` of `count(*)`.
    Star,
    /// Digits, after a minus if it is negative.
    Number(String),
    Text(String),
    /// The digits of a binary literal.
    Bytes(String),
    /// A variable of the statement, by its index.
    Parameter(usize),
    /// Names as SQL writes them: a variable of PL/pgSQL, or a column with the name of its row.
    Column(Option<String>, String),
    Call(Box<Call>),
    /// An operator before its operand.
    Prefix(Operator, Box<Scalar>),
    Infix(Operator, Box<[Scalar; 2]>),
    /// To the type of this name.
    Cast(Box<Scalar>, Cow<'static, str>),
    /// Conditions with their values, and the value if none is true.
    Case(Vec<(Scalar, Scalar)>, Option<Box<Scalar>>),
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    Not(Box<Scalar>),
    IsNull(Box<Scalar>),
    IsNotNull(Box<Scalar>),
    Array(Vec<Scalar>, &'static str),
    /// An element of an array, by its number from 1.
    Element(Box<Scalar>, usize),
    /// A subquery of a value that is evaluated once, not for each row.
    Once(Box<Scalar>),
    Query(Box<Query>),
    Exists(Box<Query>),
    /// The right side of a comparison with the rows of a query: `any` or `all`.
    Quantified(&'static str, Box<Query>),
    /// A value among the rows of a query.
    In(Box<Scalar>, Box<Query>),
    Row(Vec<Scalar>),
    /// An argument with the name of its parameter.
    Named(&'static str, Box<Scalar>),
}

/// An operator of PostgreSQL, or one of schema tsql.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Plain(&'static str),
    Tsql(&'static str),
}

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub function: Cow<'static, str>,
    pub arguments: Vec<Scalar>,
    pub distinct: bool,
    /// The order in which an aggregate takes its rows.
    pub order_by: Vec<Order>,
    pub over: Option<Over>,
    pub mark: Mark,
}

/// The kind of a function's name. It is written as blanks before the arguments, and PostgreSQL's error for a missing function
/// is translated by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    #[default]
    None,
    /// A function of the system, or one with its owner's name.
    Owned,
    /// A function that returns rows.
    OfRows,
}

/// The window of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Over {
    pub partition_by: Vec<Scalar>,
    pub order_by: Vec<Order>,
    pub frame: Option<Frame>,
}

/// A key by which rows are ordered. Null is the least value.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub key: Scalar,
    pub descending: bool,
    /// No key is null: PostgreSQL may read an index in its own order of nulls.
    pub has_no_nulls: bool,
}

impl Order {
    pub fn by(key: Scalar, descending: bool) -> Order {
        Order { key, descending, has_no_nulls: false }
    }
}

/// `function(argument, …)`
pub fn call(function: impl Into<Cow<'static, str>>, arguments: impl Into<Vec<Scalar>>) -> Scalar {
    Scalar::from(Call { function: function.into(), arguments: arguments.into(), ..Call::default() })
}

impl From<Call> for Scalar {
    fn from(call: Call) -> Scalar {
        Scalar::Call(Box::new(call))
    }
}

impl Scalar {
    pub fn number(number: impl Display) -> Scalar {
        Scalar::Number(number.to_string())
    }

    pub fn text(text: impl Into<String>) -> Scalar {
        Scalar::Text(text.into())
    }

    /// An array of texts.
    pub fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Scalar {
        Scalar::Array(texts.into_iter().map(Scalar::text).collect(), "text")
    }

    /// A column of the row with this name.
    pub fn of_row(row: impl Into<String>, name: impl Into<String>) -> Scalar {
        Scalar::Column(Some(row.into()), name.into())
    }

    /// A column without the name of its row.
    pub fn column(name: impl Into<String>) -> Scalar {
        Scalar::Column(None, name.into())
    }

    pub fn cast(self, to: impl Into<Cow<'static, str>>) -> Scalar {
        Scalar::Cast(Box::new(self), to.into())
    }

    /// `self operator other`, by PostgreSQL's operator.
    pub fn infix(self, operator: &'static str, other: Scalar) -> Scalar {
        Scalar::Infix(Operator::Plain(operator), Box::new([self, other]))
    }

    /// The same by an operator of schema tsql.
    pub fn tsql(self, operator: &'static str, other: Scalar) -> Scalar {
        Scalar::Infix(Operator::Tsql(operator), Box::new([self, other]))
    }

    /// `self || other`
    pub fn concatenated(self, other: Scalar) -> Scalar {
        self.infix("||", other)
    }

    pub fn and(self, other: Scalar) -> Scalar {
        Scalar::And(vec![self, other])
    }

    pub fn or(self, other: Scalar) -> Scalar {
        Scalar::Or(vec![self, other])
    }

    /// An argument with the name of its parameter.
    pub fn named(self, parameter: &'static str) -> Scalar {
        Scalar::Named(parameter, Box::new(self))
    }

    /// `- self`, by one of the two operators.
    pub fn negative(self, minus: Operator) -> Scalar {
        Scalar::Prefix(minus, Box::new(self))
    }

    /// `not self`, if it is negated.
    pub fn negated_if(self, negated: bool) -> Scalar {
        match negated {
            true => Scalar::Not(Box::new(self)),
            false => self,
        }
    }

    /// `self is null` or `self is not null`.
    pub fn is_null(self, is_null: bool) -> Scalar {
        match is_null {
            true => Scalar::IsNull(Box::new(self)),
            false => Scalar::IsNotNull(Box::new(self)),
        }
    }

    /// One of two values, by a condition.
    pub fn either(condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar {
        Scalar::Case(vec![(condition, then)], Some(Box::new(otherwise)))
    }

    pub fn once(self) -> Scalar {
        Scalar::Once(Box::new(self))
    }

    /// The bytes of its text.
    pub fn size(&self) -> usize {
        let mut counted = Counted(0);
        // counting does not fail
        let _ = write!(counted, "{self}");
        counted.0
    }
}

/// Adds up the bytes of a text instead of storing them.
struct Counted(usize);

impl Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

// --- queries ---

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: With,
    pub body: Body,
    pub order_by: Vec<Order>,
    pub offset: Option<Scalar>,
    pub limit: Option<Scalar>,
    /// The limit includes all rows that are equal to the last one.
    pub with_ties: bool,
    pub locks: Vec<Lock>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Scalar>>),
    /// Queries with `union` and the like between them.
    Combined(Box<Query>, Vec<(&'static str, Query)>),
    Parenthesised(Box<Query>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub list: Vec<Listed>,
    /// More columns may be added to the list.
    pub is_open: bool,
    pub from: Vec<Source>,
    pub conditions: Vec<Scalar>,
    pub group_by: Vec<Grouping>,
    pub having: Vec<Scalar>,
}

/// An item of a list, with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub value: Scalar,
    pub name: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Grouping {
    Value(Scalar),
    Values(Vec<Scalar>),
    /// `rollup`, `cube` or `grouping sets`.
    Of(&'static str, Vec<Grouping>),
}

/// Rows in FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A table or view, by its name in SQL.
    Table(String, Option<Alias>),
    /// The rows of a function.
    Call(Scalar, Option<Alias>),
    Query(Box<Query>, Option<Alias>),
    /// Two sources with the words of a join between them, and its condition.
    Join(&'static str, Box<[Source; 2]>, Option<Scalar>),
}

/// Names in SQL of rows and of their columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub name: String,
    pub columns: Vec<String>,
}

impl Alias {
    /// A name of rows alone.
    pub fn of(name: impl Into<String>) -> Alias {
        Alias { name: name.into(), columns: Vec::new() }
    }
}

/// The queries before a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct With {
    pub is_recursive: bool,
    pub tables: Vec<(Alias, Statement)>,
}

/// The rows of a source, locked until the transaction ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    pub of: String,
    /// For rows that others have locked: ` skip locked`, ` nowait`, or nothing.
    pub otherwise: &'static str,
}

impl From<Body> for Query {
    fn from(body: Body) -> Query {
        Query {
            with: With::default(),
            body,
            order_by: Vec::new(),
            offset: None,
            limit: None,
            with_ties: false,
            locks: Vec::new(),
        }
    }
}

impl From<Select> for Query {
    fn from(select: Select) -> Query {
        Query::from(Body::Select(Box::new(select)))
    }
}

impl Query {
    pub fn parenthesised(self) -> Query {
        Query::from(Body::Parenthesised(Box::new(self)))
    }

    /// Its rows in FROM.
    pub fn named(self, name: &str, columns: Vec<String>) -> Source {
        let alias = Alias { name: name.to_owned(), columns };
        Source::Query(Box::new(self), Some(alias))
    }

    /// `select list from source`
    pub fn of(list: impl IntoIterator<Item = Listed>, source: Source) -> Query {
        Query::from(Select { list: list.into_iter().collect(), from: vec![source], ..Select::default() })
    }

    pub fn ordered(self, order_by: Vec<Order>) -> Query {
        Query { order_by, ..self }
    }

    pub fn limited(self, limit: Option<Scalar>) -> Query {
        Query { limit: limit.or(self.limit), ..self }
    }
}

impl Listed {
    pub fn named(value: Scalar, name: impl Into<String>) -> Listed {
        Listed { value, name: Some(name.into()) }
    }
}

impl From<Scalar> for Listed {
    fn from(value: Scalar) -> Listed {
        Listed { value, name: None }
    }
}

impl Source {
    pub fn join(self, words: &'static str, other: Source, on: Option<Scalar>) -> Source {
        Source::Join(words, Box::new([self, other]), on)
    }
}

// --- statements ---

/// A query, or a change of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Query(Query),
    /// A table is created with the rows of a query.
    Create(Create),
    Change(Change),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Create {
    pub table: String,
    pub is_temporary: bool,
    pub rows: Query,
    /// The query may be taken out.
    pub is_open: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub with: With,
    pub kind: ChangeKind,
    pub returning: Vec<Listed>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// Without rows: the columns' defaults.
    Insert {
        into: String,
        filling: Filling,
        rows: Option<Query>,
    },
    Update {
        table: Source,
        set: Vec<(String, Scalar)>,
        from: Vec<Source>,
        conditions: Vec<Scalar>,
    },
    Delete {
        table: Source,
        using: Vec<Source>,
        conditions: Vec<Scalar>,
    },
    Merge {
        into: Source,
        using: Source,
        on: Scalar,
        clauses: Vec<MergeClause>,
    },
}

/// The columns that an insert fills.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filling {
    /// Names in PostgreSQL; None: all columns.
    pub columns: Option<Vec<String>>,
    /// Identity columns take values too.
    pub with_identity: bool,
}

/// The change of rows that are `matched`, `not matched` or `not matched by source`.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeClause {
    pub rows: &'static str,
    pub conditions: Vec<Scalar>,
    pub action: MergeAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    Update(Vec<(String, Scalar)>),
    Delete,
    /// None: the columns' defaults.
    Insert(Filling, Option<Vec<Scalar>>),
}

impl Default for Statement {
    fn default() -> Statement {
        Statement::Query(Body::Values(Vec::new()).into())
    }
}

impl Statement {
    pub fn into_query(self) -> Option<Query> {
        match self {
            Statement::Query(query) => Some(query),
            _ => None,
        }
    }

    /// The list of a select to which columns may be added, and none afterwards.
    pub fn close_list(&mut self) -> Option<&mut Vec<Listed>> {
        let Statement::Query(Query { body: Body::Select(select), .. }) = self else { return None };
        take(&mut select.is_open).then_some(&mut select.list)
    }
}

impl From<Query> for Statement {
    fn from(query: Query) -> Statement {
        Statement::Query(query)
    }
}

impl From<Change> for Statement {
    fn from(change: Change) -> Statement {
        Statement::Change(change)
    }
}

impl From<ChangeKind> for Change {
    fn from(kind: ChangeKind) -> Change {
        Change { with: With::default(), kind, returning: Vec::new() }
    }
}
