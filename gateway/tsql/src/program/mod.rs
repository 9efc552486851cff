//! The program of a batch, which the gateway's session runs: a tree of statements, with queries in PostgreSQL's SQL.

mod bound;
mod demanded;
mod execute;
mod sql;

pub(crate) use bound::Tree;
pub use bound::{Bound, Source, Use, Uses};
pub(crate) use demanded::demanded;
#[cfg(test)]
pub(crate) use demanded::each;
pub use demanded::Demanded;
pub use execute::{Argument, Execute, Executed, GivenTable, InsertExecute};
pub use sql::Sql;

pub use crate::bind::{Changes, Current, Filled, ListItem, Met, ResultType, Title};
use crate::databases::Known;
pub use crate::facts::session::{CLOCKS, CURRENT, SENT_TEXT};
use crate::facts::types::Type;
pub use crate::fragments::RowSource;
use crate::lexer::Syntax;
use crate::long_names::LongNames;
use crate::resolve::names::Relation;
pub use crate::schema::Partial;
use crate::{Databases, Dialect};
use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

/// The settings under which a text is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The schema that the client uses.
    pub database: String,
    pub databases: Arc<Databases>,
    pub quoted_identifiers: bool,
    pub dialect: &'static Dialect,
    /// `set ansi_nulls off`: a null variable or literal equals null.
    pub nulls_equal: bool,
    /// `set rowcount` is in effect.
    pub limits_rows: bool,
    /// `?` is a placeholder of a parameter.
    pub placeholders: bool,
    /// The variables already declared; None: the type is only PostgreSQL's.
    pub variables: BTreeMap<String, Type>,
    /// Tables that the text may name and that lack rows, by their names in SQL with schema.
    pub partial: BTreeMap<String, Partial>,
    /// The table of `set identity_insert … on`, by its name in SQL.
    pub identity_insert: Option<String>,
    /// The text creates a procedure, whose body is the program.
    pub procedure: bool,
    /// The text runs inside another, whose table variables are not its own.
    pub is_inside: bool,
    /// The text was stored in a procedure, function or trigger.
    pub is_stored: bool,
    /// The declarations of the text's parameters, if some of them are tables.
    pub given: String,
}

impl Settings {
    pub fn known(&self) -> Known<'_> {
        Known { databases: &self.databases, schema: &self.database }
    }

    /// The syntax options of the client's texts.
    pub fn syntax(&self) -> Syntax {
        Syntax {
            quoted_identifiers: self.quoted_identifiers,
            placeholders: self.placeholders,
            is_stored: self.is_stored,
            dialect: self.dialect,
        }
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Program {
    /// The parameters, if it is a procedure's body; the value of each is its default.
    pub parameters: Vec<Declaration>,
    pub statements: Vec<Statement>,
    /// The number of its `?`: the variables ?1, ?2 and so on.
    pub placeholders: usize,
    /// Literals that are variables of the program, which can thus run for texts with other literals.
    pub lifted: Vec<Lifted>,
    /// Its table variables, with @.
    pub table_variables: Vec<String>,
    /// It creates temporary tables.
    pub makes_temporary: bool,
    /// At TDS 5.0: the tables that must exist before any of it runs.
    pub demanded: Vec<Demanded>,
    pub long_names: LongNames,
    /// The declarations that it depends on.
    pub uses: Uses,
}

/// A literal of the text that is replaced by a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifted {
    /// The name of the variable: `#0` for the first literal of the text.
    pub name: String,
    /// The number of the literal in the text, from 0.
    pub index: u32,
    pub of: Type,
    /// A minus precedes it.
    pub negative: bool,
}

#[derive(Debug, PartialEq)]
pub struct Statement {
    /// The line of its first token, from 1.
    pub line: u32,
    pub action: Action,
}

#[derive(Debug, PartialEq)]
pub enum Action {
    Query(Query),
    /// `select @a, @@b name`: variables with the names of their columns.
    Variables(Vec<(String, String)>),
    Declare(Declaration),
    /// `set @a = value`
    Assign(String, Expression),
    If {
        condition: Condition,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    While {
        condition: Condition,
        body: Vec<Statement>,
    },
    Break,
    Continue,
    Return(Option<Expression>),
    Print(Expression),
    /// One row: number, severity, state, text.
    Raise {
        message: Sql,
        /// @@error is set to the number at every severity.
        sets_error: bool,
        /// It is sent to the client at once.
        at_once: bool,
    },
    /// Seconds.
    Wait(Expression),
    Execute(Execute),
    /// `exec ('text')`
    ExecuteText(Expression),
    InsertExecute(Box<InsertExecute>),
    /// The table of a parameter receives the rows of the call.
    GiveTable(Box<GivenTable>),
    Use(String),
    /// `set name value …`
    Set(Vec<String>),
    /// The name of the transaction, or the variable that contains it, with its @, or "".
    Begin(String),
    Commit,
    /// The same, or of a savepoint; "" for the whole transaction.
    Rollback(String),
    Save(String),
    Try {
        body: Vec<Statement>,
        catch: Vec<Statement>,
    },
    /// One row: number, text, state; None: the error being handled, again.
    Throw(Option<Sql>),
    /// To the label with this number.
    Goto(u32),
    Label(u32),
    Cursor(CursorAction),
    Define(Define),
    /// WRITETEXT and UPDATETEXT.
    ChangeText(Sql),
    /// The value follows in a separate message.
    SendText(Box<SentText>),
    /// `set identity_insert table on`; the table's name in SQL.
    IdentityInsert {
        table: String,
        on: bool,
    },
    /// The rows follow in a separate message.
    InsertBulk(InsertBulk),
}

/// An action on a cursor, by its name in lower case.
#[derive(Clone, Debug, PartialEq)]
pub enum CursorAction {
    Declare {
        name: String,
        query: Box<Query>,
        scrolls: bool,
        /// Static or keyset-driven: @@cursor_rows is the number of its rows.
        is_filled: bool,
        /// A rollback leaves it open.
        is_static: bool,
        /// It ends with its text.
        is_local: bool,
        changes: Changes,
    },
    Open(String),
    /// Without variables the row is sent to the client.
    Fetch {
        name: String,
        from: FetchFrom,
        into: Vec<String>,
        /// Converts the row's values to the types of the variables; the values are `#taken_1` and so on.
        taken: Option<Sql>,
    },
    Close(String),
    Deallocate(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum FetchFrom {
    Next,
    Prior,
    First,
    Last,
    Absolute(Expression),
    Relative(Expression),
}

/// A value computed by PostgreSQL, unless it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Literal(Literal),
    /// By its name with @, or `?1` for the first placeholder of a dynamic statement.
    Variable(String),
    Sql(Sql),
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Integer(i64),
    /// `-12.50`
    Decimal(String),
    Float(f64),
    /// In ten-thousandths.
    Money(i64),
    Text(String),
    Binary(Vec<u8>),
}

#[derive(Debug, PartialEq)]
pub enum Condition {
    /// `@@trancount > 0`, which drivers evaluate before a commit or a rollback.
    InTransaction,
    /// One boolean; NULL is false.
    Sql(Sql),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// Returns rows or, for `select into`, their number.
    Select,
    Insert,
    Update,
    Delete,
    Merge,
    /// Has no row count.
    Definition(Definition),
    /// A definition that is not in the text: nothing is sent for it, and @@rowcount is unchanged.
    Unsaid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// For a table or an index.
    Create,
    AlterTable,
    Truncate,
    Drop,
    Other,
}

impl QueryKind {
    /// Whether it changes rows.
    pub fn is_change(self) -> bool {
        matches!(self, QueryKind::Insert | QueryKind::Update | QueryKind::Delete | QueryKind::Merge)
    }
}

/// SQL for PostgreSQL as a statement of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub sql: Sql,
    pub kind: QueryKind,
    /// `select @a = …`: the variables that receive the last row's values.
    pub assigns: Vec<String>,
    pub current: Option<Current>,
    /// The names of the result's columns, if they differ from PostgreSQL's.
    pub columns: Option<Vec<Title>>,
    /// The table of an insert, by its name in SQL.
    pub into: Option<String>,
    /// The table in which it changes, or creates, no more rows than the limit of `set rowcount`. None: all rows.
    pub limited: Option<String>,
    /// A new column whose values `set ansi_padding off` would cut.
    pub padded: Option<String>,
    /// For a dynamic statement: the types that its placeholders meet.
    pub met: BTreeMap<String, Met>,
    /// `select … for browse`
    pub browses: bool,
}

impl Query {
    /// The table of `select … into`.
    pub fn made(&self) -> Option<&Relation> {
        self.sql.facts.created.as_ref().filter(|_| self.kind == QueryKind::Select)
    }

    pub fn makes_a_table(&self) -> bool {
        self.made().is_some()
    }

    /// It selects, and creates no table.
    pub fn only_reads(&self) -> bool {
        self.kind == QueryKind::Select && !self.makes_a_table()
    }
}

/// `@a int`, `@b nvarchar(40) = 'x' output`
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// With its @, in lower case.
    pub name: String,
    /// As written.
    pub shown: String,
    pub of: Type,
    pub output: bool,
    pub value: Option<Expression>,
}

/// `create procedure` and other definitions, compiled: SQL that runs as a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    pub statements: Vec<String>,
    /// All objects that it creates or drops belong to the session.
    pub is_temporary: bool,
    /// A message to the client that defines it.
    pub notice: Option<String>,
}

/// A text that the client sends after its writetext.
#[derive(Clone, Debug, PartialEq)]
pub struct SentText {
    /// Fails if the text could not be written.
    pub check: Sql,
    /// A query of the column.
    pub column: Sql,
    /// Writes the variable SENT_TEXT, and returns the column's new timestamp.
    pub change: Sql,
}

/// The target of a bulk copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertBulk {
    pub table: Relation,
    /// Names of the columns in PostgreSQL; empty: all columns of the table.
    pub columns: Vec<String>,
    /// NULL remains NULL, also if a column has a default.
    pub keep_nulls: bool,
}

impl Program {
    /// Its approximate bytes, for the cache.
    pub fn size(&self) -> usize {
        self.statements.iter().map(Statement::size).sum::<usize>() + self.lifted.len() * 64
    }
}

impl Program {
    /// All its SQL, in the order of the text.
    pub fn sql(&self) -> Vec<String> {
        let mut found = Vec::new();
        for statement in &self.statements {
            statement.action.sql(&mut found);
        }
        found
    }
}

impl Statement {
    fn size(&self) -> usize {
        self.action.size() + size_of::<Statement>()
    }
}

impl Action {
    fn sql(&self, found: &mut Vec<String>) {
        self.own_sql(&mut |sql| found.push(sql.numbered()));
        if let Action::Define(define) = self {
            found.extend(define.statements.iter().cloned());
        }
        for statement in self.bodies().into_iter().flatten() {
            statement.action.sql(found);
        }
    }

    /// Its SQL, without that of nested statements.
    pub(crate) fn own_sql<'s>(&'s self, found: &mut dyn FnMut(&'s Sql)) {
        let mut value = |value: &'s Expression| {
            if let Expression::Sql(sql) = value {
                found(sql);
            }
        };
        match self {
            Action::Query(query) => found(&query.sql),
            Action::GiveTable(given) => found(&given.copy.sql),
            Action::Assign(_, assigned) => value(assigned),
            Action::Declare(declaration) => declaration.value.iter().for_each(value),
            Action::Return(returned) => returned.iter().for_each(value),
            Action::Print(text) | Action::ExecuteText(text) | Action::Wait(text) => value(text),
            Action::Execute(execute) => execute.values().for_each(value),
            Action::InsertExecute(insert) => match &insert.source {
                Executed::Procedure(execute) => execute.values().for_each(value),
                Executed::Text(text) => value(text),
            },
            Action::Raise { message: sql, .. } | Action::Throw(Some(sql)) | Action::ChangeText(sql) => {
                found(sql);
            }
            Action::Cursor(CursorAction::Declare { query, .. }) => found(&query.sql),
            Action::If { condition: Condition::Sql(sql), .. }
            | Action::While { condition: Condition::Sql(sql), .. } => found(sql),
            _ => {}
        }
    }

    /// The nested lists of statements.
    pub fn bodies(&self) -> [&[Statement]; 2] {
        match self {
            Action::If { then, otherwise, .. } => [then, otherwise],
            Action::While { body, .. } => [body, &[]],
            Action::Try { body, catch } => [body, catch],
            _ => [&[], &[]],
        }
    }

    /// Its approximate bytes.
    pub fn size(&self) -> usize {
        let all = |statements: &[Statement]| statements.iter().map(Statement::size).sum::<usize>();
        match self {
            Action::Query(query) => {
                let columns =
                    query.columns.iter().flatten().map(|title| title.text.len() + 64).sum::<usize>();
                query.sql.size() + columns
            }
            Action::Assign(_, value) | Action::Print(value) | Action::ExecuteText(value) => value.size(),
            Action::Declare(declaration) => declaration.value.as_ref().map_or(0, Expression::size),
            Action::Raise { message: sql, .. } | Action::Throw(Some(sql)) | Action::ChangeText(sql) => {
                sql.size()
            }
            Action::Execute(execute) => execute.size(),
            Action::InsertExecute(insert) => match &insert.source {
                Executed::Procedure(execute) => execute.size(),
                Executed::Text(text) => text.size(),
            },
            Action::Cursor(CursorAction::Declare { query, .. }) => query.sql.size(),
            Action::Define(define) => define.statements.iter().map(String::len).sum(),
            Action::GiveTable(given) => given.copy.sql.size(),
            Action::If { condition, then, otherwise } => condition.size() + all(then) + all(otherwise),
            Action::While { condition, body } => condition.size() + all(body),
            Action::Try { body, catch } => all(body) + all(catch),
            _ => 0,
        }
    }
}

impl Expression {
    fn size(&self) -> usize {
        match self {
            Expression::Literal(Literal::Text(text)) => text.len(),
            Expression::Literal(Literal::Binary(bytes)) => bytes.len(),
            Expression::Sql(sql) => sql.size(),
            _ => 16,
        }
    }
}

impl Condition {
    fn size(&self) -> usize {
        match self {
            Condition::InTransaction => 0,
            Condition::Sql(sql) => sql.size(),
        }
    }
}

/// Significant characters of the name of a transaction or savepoint.
pub const LONGEST_TRANSACTION_NAME: usize = 32;

/// The name of the n-th placeholder, from 1.
pub fn placeholder(n: usize) -> String {
    format!("?{n}")
}
