//! The syntax tree of a text: names keep their case, numbers their digits.
//!
//! A tree has the positions of its parts in the text, which comparisons of trees ignore.

mod change;
mod cursor;
mod definition;
mod expression;
mod name;
mod position;
mod procedure;
mod query;
mod statement;
mod types;
mod walk;

pub use change::{
    Delete, Insert, InsertBulk, InsertSource, Merge, MergeAction, MergeClause, MergeRows, Output, SetItem,
    Target, Update, Where,
};
pub use cursor::{Access, CursorName, CursorOption, DeclareCursor, Direction, Fetch};
pub use definition::{
    AlterDatabase, AlterTable, CheckIdentity, ColumnDefinition, ColumnKind, Constraint, ConstraintKind,
    CreateBindable, CreateIndex, CreateTable, CreateType, CreateView, DropIndex, DropObjects, Dropped, Grant,
    Identity, KeyAction, Mode, ObjectKind, References, Reseed, Sequence, TableElement,
};
pub use expression::{
    Arguments, BinaryOperator, Case, Cast, CastKind, ColumnName, Expression, Frame, FrameBound, FrameUnit,
    FunctionCall, Literal, LiteralValue, Quantifier, UnaryOperator, Window, Xml, XmlForm,
};
pub use name::{Name, ObjectName, Variable};
pub use position::{Place, Position};
pub use procedure::{
    Argument, ArgumentValue, CreateFunction, CreateProcedure, CreateTrigger, Execute, ExecuteText, Parameter,
    Returns, TriggerEvent, TriggerTime,
};
pub use query::{
    CommonTable, Grouping, JoinKind, Locks, Ordering, Query, QueryBody, Select, SelectItem, SetOperator,
    TableSource, Top,
};
pub use statement::{
    nulls_equal, set_words, Assign, AssignOperator, Declared, Raise, Readtext, SetWord, Statement,
    StatementKind, TableVariable, TextSource, Throw, TransactionName, Updatetext, Writetext, WritetextBulk,
};
pub use types::{TypeArgument, TypeName, UserType};
pub use walk::{every, Every};
