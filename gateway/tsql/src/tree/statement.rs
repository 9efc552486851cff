//! Statements.

use super::*;

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    pub at: Position,
}

/// The name of a transaction or savepoint.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionName {
    Name(Name),
    Variable(Variable),
}

impl TransactionName {
    /// The text; a variable's begins with @.
    pub fn text(&self) -> &str {
        match self {
            TransactionName::Name(name) => &name.text,
            TransactionName::Variable(variable) => &variable.name,
        }
    }

    /// Whether it is the same name, or the same variable: only names are case-sensitive.
    pub fn is(&self, other: &TransactionName) -> bool {
        match self {
            TransactionName::Name(_) => self.text() == other.text(),
            TransactionName::Variable(_) => self.text().eq_ignore_ascii_case(other.text()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    // rows
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Truncate(ObjectName),
    /// It is the whole batch.
    InsertBulk(InsertBulk),

    // variables
    Declare(Vec<Declared>),
    DeclareTable(TableVariable),
    Assign(Assign),

    // control
    /// `begin … end`
    Block(Vec<Statement>),
    If {
        condition: Expression,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    While {
        condition: Expression,
        body: Box<Statement>,
    },
    Break,
    Continue,
    Return(Option<Expression>),
    Goto(Name),
    Label(Name),
    TryCatch {
        body: Vec<Statement>,
        catch: Vec<Statement>,
    },
    /// `waitfor delay value`
    WaitforDelay(Expression),
    /// `waitfor time value`
    WaitforTime(Expression),

    // messages
    /// ASE: `print 'format %1!', arguments`
    Print {
        text: Expression,
        arguments: Vec<Expression>,
    },
    Raise(Box<Raise>),
    Throw(Option<Box<Throw>>),

    // calls
    Execute(Box<Execute>),
    ExecuteText(Box<ExecuteText>),

    // cursors
    DeclareCursor(Box<DeclareCursor>),
    OpenCursor(CursorName),
    Fetch(Box<Fetch>),
    CloseCursor(CursorName),
    DeallocateCursor(CursorName),

    // the session
    Use(Name),
    /// `set name value …`
    Set(Vec<SetWord>),
    /// `set identity_insert table on`
    SetIdentityInsert {
        table: ObjectName,
        on: bool,
    },
    BeginTransaction(Option<TransactionName>),
    Commit(Option<TransactionName>),
    /// To a savepoint or of a transaction; None for all of it.
    Rollback(Option<TransactionName>),
    /// ASE's rollback of the statement that fired the trigger; the error that it ends with.
    RollbackTrigger(Option<Box<Raise>>),
    Save(TransactionName),

    // definitions
    CreateTable(Box<CreateTable>),
    AlterTable {
        table: ObjectName,
        action: Box<AlterTable>,
    },
    CreateIndex(Box<CreateIndex>),
    CreateView(Box<CreateView>),
    CreateProcedure(Box<CreateProcedure>),
    CreateFunction(Box<CreateFunction>),
    CreateTrigger(Box<CreateTrigger>),
    CreateType(Box<CreateType>),
    CreateTableType(Box<CreateTableType>),
    /// A database or a schema.
    CreateSchema {
        kind: ObjectKind,
        name: Name,
        /// The default one of a database.
        collation: Option<Name>,
    },
    Sequence(Box<Sequence>),
    CreateBindable(Box<CreateBindable>),
    Drop(DropObjects),
    DropIndexes(Vec<DropIndex>),
    Grant(Grant),
    AlterDatabase(AlterDatabase),
    CheckIdentity(CheckIdentity),

    Readtext(Box<Readtext>),
    Writetext(Box<Writetext>),
    /// It must be the only statement of its batch.
    WritetextBulk(Box<WritetextBulk>),
    Updatetext(Box<Updatetext>),
}

/// `@name type [= value]`
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    pub variable: Variable,
    /// `cursor` is a type too.
    pub type_: TypeName,
    pub value: Option<Expression>,
}

/// `declare @t table (…)`
#[derive(Clone, Debug, PartialEq)]
pub struct TableVariable {
    pub variable: Variable,
    pub elements: Vec<TableElement>,
}

/// `set @a = value`, `set @a += value`
#[derive(Clone, Debug, PartialEq)]
pub struct Assign {
    pub variable: Variable,
    pub operator: AssignOperator,
    pub value: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOperator {
    Set,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
}

impl AssignOperator {
    /// The operator of `+=` and similar assignments; None for `=`.
    pub fn computes(self) -> Option<BinaryOperator> {
        Some(match self {
            AssignOperator::Set => return None,
            AssignOperator::Add => BinaryOperator::Add,
            AssignOperator::Subtract => BinaryOperator::Subtract,
            AssignOperator::Multiply => BinaryOperator::Multiply,
            AssignOperator::Divide => BinaryOperator::Divide,
            AssignOperator::Modulo => BinaryOperator::Modulo,
            AssignOperator::BitAnd => BinaryOperator::BitAnd,
            AssignOperator::BitOr => BinaryOperator::BitOr,
            AssignOperator::BitXor => BinaryOperator::BitXor,
        })
    }
}

impl Assign {
    /// `@a + value` for `set @a += value`; None for `set @a = value`.
    pub fn value_assigned(&self) -> Option<Expression> {
        let operator = self.operator.computes()?;
        let at = self.variable.at;
        let (left, right) = (Expression::Variable(self.variable.clone()), self.value.clone());
        Some(Expression::Binary { operator, left: Box::new(left), right: Box::new(right), at })
    }
}

/// A word of SET, in lower case and without quotes, or a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum SetWord {
    Word(String),
    Variable(Variable),
}

/// The words of SET in lower case; a variable is given by its name.
pub fn set_words(words: &[SetWord]) -> Vec<String> {
    let word = |word: &SetWord| match word {
        SetWord::Word(word) => word.to_lowercase(),
        SetWord::Variable(variable) => variable.name.clone(),
    };
    words.iter().map(word).collect()
}

/// Whether null equals null under `set ansi_nulls on | off`, ASE's `set ansinull`; None: it sets other options.
pub fn nulls_equal(words: &[String]) -> Option<bool> {
    let (value, options) = words.split_last()?;
    options.iter().any(|option| matches!(option.as_str(), "ansi_nulls" | "ansinull")).then(|| value != "on")
}

/// `raiserror (message, severity, state, arguments) with …`, ASE: `raiserror number message, arguments`.
#[derive(Clone, Debug, PartialEq)]
pub enum Raise {
    Severity {
        message: Expression,
        severity: Expression,
        state: Expression,
        arguments: Vec<Expression>,
        set_error: bool,
        nowait: bool,
        log: bool,
    },
    Number {
        number: Expression,
        message: Option<Expression>,
        arguments: Vec<Expression>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Throw {
    pub number: Expression,
    pub message: Expression,
    pub state: Expression,
}

/// `readtext t.c pointer offset size [using chars]`
#[derive(Clone, Debug, PartialEq)]
pub struct Readtext {
    pub column: ColumnName,
    pub pointer: Expression,
    pub offset: Expression,
    pub size: Expression,
    pub by_characters: bool,
}

/// `writetext t.c pointer value`
#[derive(Clone, Debug, PartialEq)]
pub struct Writetext {
    pub column: ColumnName,
    pub pointer: Expression,
    pub value: Expression,
}

/// `writetext bulk t.c pointer [timestamp = value]`
#[derive(Clone, Debug, PartialEq)]
pub struct WritetextBulk {
    pub column: ColumnName,
    pub pointer: Expression,
    pub timestamp: Option<Expression>,
}

/// `updatetext t.c pointer offset length [value]`
#[derive(Clone, Debug, PartialEq)]
pub struct Updatetext {
    pub column: ColumnName,
    pub pointer: Expression,
    /// Null: the end.
    pub offset: Expression,
    /// Null: all that follows.
    pub length: Expression,
    pub source: TextSource,
}

/// The text that an updatetext inserts.
#[derive(Clone, Debug, PartialEq)]
pub enum TextSource {
    Nothing,
    Value(Expression),
    Column { column: ColumnName, pointer: Expression },
}
