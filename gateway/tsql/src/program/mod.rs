//! The program of a batch, which the gateway's session runs: a tree of statements, with queries in PostgreSQL's SQL.

mod bound;
mod demanded;
mod sql;

pub(crate) use bound::Tree;
pub use bound::{Bound, Use, Uses};
pub(crate) use demanded::demanded;
#[cfg(test)]
pub(crate) use demanded::each;
pub use demanded::Demanded;
pub use sql::Sql;

pub use crate::facts::session::{CLOCKS, CURRENT, SENT_TEXT};
use crate::facts::types::Type;
pub use crate::fragments::RowSource;
use crate::lexer::Syntax;
use crate::long_names::LongNames;
use crate::resolve::names::Relation;
pub use crate::schema::Partial;
pub use crate::translate::{Changes, Current, Filled, FilledBy, ListItem, ResultType, Title};
use crate::Dialect;
use std::collections::BTreeMap;
use std::mem::size_of;

/// The conditions under which a text is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The schema that the client uses.
    pub database: String,
    pub quoted_identifiers: bool,
    pub dialect: &'static Dialect,
    /// `set ansi_nulls off`: a variable or literal that is null equals null.
    pub nulls_equal: bool,
    /// `set rowcount` is in effect.
    pub limits_rows: bool,
    /// `?` is a place for a parameter.
    pub placeholders: bool,
    /// The variables declared already; None: of a type that is PostgreSQL's alone.
    pub variables: BTreeMap<String, Option<Type>>,
    /// The columns that an insert without columns fills, by the table as SQL names it: of tables that have identity,
    /// computed or sql_variant columns too.
    pub filled: BTreeMap<String, Vec<String>>,
    /// Those of them that are of type sql_variant.
    pub variants: BTreeMap<String, Vec<String>>,
    /// Tables that the text may name and that lack rows, as SQL names them with their schema.
    pub partial: BTreeMap<String, Partial>,
    /// The table of `set identity_insert … on`, as SQL names it.
    pub identity_insert: Option<String>,
    /// The text makes a procedure, whose body is the program.
    pub procedure: bool,
    /// The declarations of the text's parameters, if some of them are tables.
    pub given: String,
}

impl Settings {
    /// How a text of the client is read.
    pub fn syntax(&self) -> Syntax {
        Syntax {
            quoted_identifiers: self.quoted_identifiers,
            placeholders: self.placeholders,
            close_signs: self.dialect.close_signs,
        }
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Program {
    /// Of the procedure whose body it is; the value of each is its default.
    pub parameters: Vec<Declaration>,
    pub statements: Vec<Statement>,
    /// How many `?` it has: the variables ?1, ?2 and so on.
    pub placeholders: usize,
    /// Literals that are variables of the program, so that it serves for texts with others in their places.
    pub lifted: Vec<Lifted>,
    /// Tables that an insert without columns fills, or one with values of types that the text says, as SQL names them,
    /// of which neither the text nor the settings say what columns take values, and which are sql_variants.
    pub unlisted: Vec<String>,
    /// Its variables that are tables, with @.
    pub table_variables: Vec<String>,
    /// It makes temporary tables.
    pub makes_temporary: bool,
    /// At TDS 5.0: the tables without which nothing of it runs.
    pub demanded: Vec<Demanded>,
    /// The tables and views that it creates, changes or drops.
    pub redefined: Vec<Relation>,
    pub long_names: LongNames,
    /// What of the schema it depends on.
    pub uses: Uses,
}

/// A literal of the text that a variable stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifted {
    /// Of the variable: `#0` for the first literal of the text.
    pub name: String,
    /// Which literal of the text it is, from 0.
    pub place: u32,
    pub of: Type,
    /// A minus stands before it.
    pub negative: bool,
}

#[derive(Debug, PartialEq)]
pub struct Statement {
    /// Of its first token, from 1.
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
        /// @@error gets the number at every severity.
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
    /// The table of a parameter takes the rows that the call gives it.
    GiveTable(Box<GivenTable>),
    Use(String),
    /// `set name value …`
    Set(Vec<String>),
    /// The name of the transaction, or the variable that has it, with its @, or "".
    Begin(String),
    Commit,
    /// The same, or of a savepoint; "" for the whole transaction.
    Rollback(String),
    Save(String),
    Try {
        body: Vec<Statement>,
        catch: Vec<Statement>,
    },
    /// One row: number, text, state; None: the error that is being caught, again.
    Throw(Option<Sql>),
    /// By the label's number.
    Goto(u32),
    Label(u32),
    Cursor(CursorAction),
    Define(Define),
    /// Writetext and updatetext.
    ChangeText(Sql),
    /// The value follows in a message of its own.
    SendText(Box<SentText>),
    /// `set identity_insert table on`; the table as SQL names it.
    IdentityInsert {
        table: String,
        on: bool,
    },
    /// The rows follow in a message of their own.
    InsertBulk(InsertBulk),
}

/// An action on a cursor, by its name in lower case.
#[derive(Clone, Debug, PartialEq)]
pub enum CursorAction {
    Declare {
        name: String,
        query: Sql,
        /// The names of its columns, where PostgreSQL would give them others.
        columns: Option<Vec<Title>>,
        scrolls: bool,
        /// Static or keyset-driven: @@cursor_rows is the number of its rows.
        is_filled: bool,
        changes: Changes,
    },
    Open(String),
    /// Without variables the row goes to the client.
    Fetch {
        name: String,
        from: FetchFrom,
        into: Vec<String>,
        /// The row's values as those of the variables; its own variables are `#taken_1` and so on.
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

/// A value computed by PostgreSQL unless it is there already.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Literal(Literal),
    /// By its name with @, or `?1` for the first placeholder of a dynamic statement.
    Variable(String),
    Sql(Sql),
}

/// A value as the text writes it.
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
    /// `@@trancount > 0`, which drivers ask before a commit or a rollback.
    InTransaction,
    /// One boolean; NULL is false.
    Sql(Sql),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// Gives rows or, as `select into`, their number.
    Select,
    Insert,
    Update,
    Delete,
    Merge,
    /// Counts nothing.
    Definition(Definition),
    /// A definition that is not in the text: nothing is sent for it, and @@rowcount is not changed.
    Unsaid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Of a table or an index.
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
#[derive(Debug, PartialEq)]
pub struct Query {
    pub sql: Sql,
    pub kind: QueryKind,
    /// `select @a = …`: the variables that take the last row's values.
    pub assigns: Vec<String>,
    pub current: Option<Current>,
    /// What the result's columns are called, where PostgreSQL would call them otherwise.
    pub columns: Option<Vec<Title>>,
    /// The table of an insert, as PostgreSQL reads it.
    pub into: Option<String>,
    /// The table of which it changes, or makes, no more rows than `set rowcount` says. None: all rows, whatever it says.
    pub limited: Option<String>,
    /// A column that it makes, whose values `set ansi_padding off` would cut.
    pub padded: Option<String>,
    /// Of a dynamic statement: the columns that placeholders alone fill.
    pub filled: Option<FilledBy>,
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

    /// It selects, and makes nothing.
    pub fn only_reads(&self) -> bool {
        self.kind == QueryKind::Select && !self.makes_a_table()
    }
}

/// `@a int`, `@b nvarchar(40) = 'x' output`
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// With its @, in lower case.
    pub name: String,
    /// As it is written.
    pub shown: String,
    pub of: Type,
    pub output: bool,
    pub value: Option<Expression>,
}

/// A procedure call written as text.
#[derive(Debug, PartialEq)]
pub struct Execute {
    /// The variable that takes the return status.
    pub status: Option<String>,
    /// The value of a function as a value of that variable's type, as `Argument::taken`.
    pub status_taken: Option<Sql>,
    /// With its qualifiers; the variable that has them, with its @.
    pub procedure: String,
    pub arguments: Vec<Argument>,
}

/// `insert … execute`: a table takes the rows that a procedure or a text selects.
#[derive(Debug, PartialEq)]
pub struct InsertExecute {
    pub target: Filled,
    pub source: Executed,
}

/// The table of a parameter of a table type.
#[derive(Debug, PartialEq)]
pub struct GivenTable {
    /// The parameter, with its @.
    pub parameter: String,
    /// The name of its type.
    pub type_name: String,
    /// Its table, and all columns of that.
    pub target: Filled,
    /// The place of the identity column among them.
    pub identity: Option<usize>,
    /// The places of columns whose values are the table's own.
    pub computed: Vec<usize>,
    /// Copies the rows of the table that the parameter's value names.
    pub copy: Query,
}

#[derive(Debug, PartialEq)]
pub enum Executed {
    Procedure(Execute),
    Text(Expression),
}

#[derive(Debug, PartialEq)]
pub struct Argument {
    /// Without its @; "" for a positional one.
    pub name: String,
    /// None: the word `default`.
    pub value: Option<Expression>,
    /// The value is a variable that takes what the procedure gives back.
    pub output: bool,
    /// The returned value of the variable's type, where that is no type of PostgreSQL's; its own variable is
    /// `#taken_1`.
    pub taken: Option<Sql>,
    /// The type of the value, where the text says it.
    pub of: Option<Type>,
}

/// `create procedure` and the like, compiled: SQL that is run as one.
#[derive(Debug, PartialEq, Eq)]
pub struct Define {
    pub statements: Vec<String>,
    /// All that it makes or drops is the session's own.
    pub is_temporary: bool,
    /// A message to the client that defines it.
    pub notice: Option<String>,
}

/// A text that the client sends behind its writetext.
#[derive(Clone, Debug, PartialEq)]
pub struct SentText {
    /// Fails where the text could not be written.
    pub check: Sql,
    /// A query of the column.
    pub column: Sql,
    /// Writes the variable SENT_TEXT, and gives the column's new timestamp.
    pub change: Sql,
}

/// Where the rows of a bulk copy go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertBulk {
    pub table: Relation,
    /// Names of the columns as PostgreSQL has them; empty: all columns of the table.
    pub columns: Vec<String>,
    /// NULL means NULL, also where a column has a default.
    pub keep_nulls: bool,
}

impl Program {
    /// Bytes that it holds, nearly: what a cache counts.
    pub fn size(&self) -> usize {
        self.statements.iter().map(Statement::size).sum::<usize>() + self.lifted.len() * 64
    }
}

impl Program {
    /// All SQL of it, in the order of the text.
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

    /// The SQL of it, without that of the statements that it is made of.
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
            Action::Cursor(CursorAction::Declare { query, .. }) => found(query),
            Action::If { condition: Condition::Sql(sql), .. }
            | Action::While { condition: Condition::Sql(sql), .. } => found(sql),
            _ => {}
        }
    }

    /// The lists of statements that it is made of.
    pub fn bodies(&self) -> [&[Statement]; 2] {
        match self {
            Action::If { then, otherwise, .. } => [then, otherwise],
            Action::While { body, .. } => [body, &[]],
            Action::Try { body, catch } => [body, catch],
            _ => [&[], &[]],
        }
    }

    /// Bytes that it holds, nearly.
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
            Action::Cursor(CursorAction::Declare { query, .. }) => query.len(),
            Action::Define(define) => define.statements.iter().map(String::len).sum(),
            Action::GiveTable(given) => given.copy.sql.size(),
            Action::If { condition, then, otherwise } => condition.size() + all(then) + all(otherwise),
            Action::While { condition, body } => condition.size() + all(body),
            Action::Try { body, catch } => all(body) + all(catch),
            _ => 0,
        }
    }
}

impl Execute {
    fn values(&self) -> impl Iterator<Item = &Expression> {
        self.arguments.iter().flat_map(|argument| &argument.value)
    }

    fn size(&self) -> usize {
        self.arguments.len() * 64 + self.values().map(Expression::size).sum::<usize>()
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

/// Characters of the name of a transaction or savepoint that count.
pub const LONGEST_TRANSACTION_NAME: usize = 32;

/// The name of the n-th placeholder, from 1.
pub fn placeholder(n: usize) -> String {
    format!("?{n}")
}
