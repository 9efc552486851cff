use super::{list, Lines, Optional};
use crate::lexer::as_quoted;
use crate::tree::*;
use std::fmt::{self, Display, Formatter};

impl Display for TransactionName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TransactionName::Name(name) => name.fmt(f),
            TransactionName::Variable(variable) => variable.fmt(f),
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Display for StatementKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use StatementKind as Kind;
        match self {
            Kind::Select(query) => query.fmt(f),
            Kind::Insert(insert) => insert.fmt(f),
            Kind::Update(update) => update.fmt(f),
            Kind::Delete(delete) => delete.fmt(f),
            Kind::Merge(merge) => merge.fmt(f),
            Kind::Truncate(table) => write!(f, "truncate table {table}"),
            Kind::InsertBulk(bulk) => bulk.fmt(f),
            Kind::Declare(declared) => write!(f, "declare {}", list(declared)),
            Kind::DeclareTable(table) => {
                write!(f, "declare {} table ({})", table.variable, list(&table.elements))
            }
            Kind::Assign(assign) => write!(f, "set {} {} {}", assign.variable, assign.operator, assign.value),
            Kind::Block(body) => write!(f, "begin\n{}\nend", Lines(body)),
            Kind::If { condition, then, otherwise } => {
                write!(f, "if {condition}\n{then}{}", Optional("\nelse ", otherwise))
            }
            Kind::While { condition, body } => write!(f, "while {condition}\n{body}"),
            Kind::Break => f.write_str("break"),
            Kind::Continue => f.write_str("continue"),
            Kind::Return(value) => write!(f, "return{}", Optional(" ", value)),
            Kind::Goto(label) => write!(f, "goto {label}"),
            Kind::Label(label) => write!(f, "{}:", label.text),
            Kind::TryCatch { body, catch } => {
                write!(f, "begin try\n{}\nend try\nbegin catch\n{}\nend catch", Lines(body), Lines(catch))
            }
            Kind::WaitforDelay(value) => write!(f, "waitfor delay {value}"),
            Kind::WaitforTime(value) => write!(f, "waitfor time {value}"),
            Kind::Print { text, arguments } => write!(f, "print {text}{}", More(arguments)),
            Kind::Raise(raise) => raise.fmt(f),
            Kind::Throw(None) => f.write_str("throw"),
            Kind::Throw(Some(throw)) => {
                write!(f, "throw {}, {}, {}", throw.number, throw.message, throw.state)
            }
            Kind::Execute(execute) => execute.fmt(f),
            Kind::ExecuteText(execute) => execute.fmt(f),
            Kind::DeclareCursor(cursor) => cursor.fmt(f),
            Kind::OpenCursor(cursor) => write!(f, "open {cursor}"),
            Kind::Fetch(fetch) => fetch.fmt(f),
            Kind::CloseCursor(cursor) => write!(f, "close {cursor}"),
            Kind::DeallocateCursor(cursor) => write!(f, "deallocate {cursor}"),
            Kind::Use(database) => write!(f, "use {database}"),
            Kind::Set(words) => {
                f.write_str("set")?;
                words.iter().try_for_each(|word| write!(f, " {word}"))
            }
            Kind::SetIdentityInsert { table, on } => {
                write!(f, "set identity_insert {table} {}", if *on { "on" } else { "off" })
            }
            Kind::BeginTransaction(name) => write!(f, "begin transaction{}", Optional(" ", name)),
            Kind::Commit(name) => write!(f, "commit transaction{}", Optional(" ", name)),
            Kind::Rollback(name) => write!(f, "rollback transaction{}", Optional(" ", name)),
            Kind::RollbackTrigger(None) => f.write_str("rollback trigger"),
            Kind::RollbackTrigger(Some(raise)) => write!(f, "rollback trigger with {raise}"),
            Kind::Save(name) => write!(f, "save transaction {name}"),
            Kind::CreateTable(table) => table.fmt(f),
            Kind::AlterTable { table, action } => write!(f, "alter table {table} {action}"),
            Kind::CreateIndex(index) => index.fmt(f),
            Kind::CreateView(view) => view.fmt(f),
            Kind::CreateProcedure(procedure) => procedure.fmt(f),
            Kind::CreateFunction(function) => function.fmt(f),
            Kind::CreateTrigger(trigger) => trigger.fmt(f),
            Kind::CreateType(create) => create.fmt(f),
            Kind::CreateTableType(create) => create.fmt(f),
            Kind::CreateSchema { kind, name, collation } => {
                write!(f, "create {kind} {name}{}", Optional(" collate ", collation))
            }
            Kind::Sequence(sequence) => sequence.fmt(f),
            Kind::CreateBindable(create) => create.fmt(f),
            Kind::Drop(objects) => objects.fmt(f),
            Kind::DropIndexes(indexes) => {
                let if_exists = indexes.first().is_some_and(|index| index.if_exists);
                write!(f, "drop index {}{}", if if_exists { "if exists " } else { "" }, list(indexes))
            }
            Kind::Grant(grant) => grant.fmt(f),
            Kind::AlterDatabase(alter) => alter.fmt(f),
            Kind::CheckIdentity(check) => check.fmt(f),
            Kind::Readtext(text) => {
                write!(f, "readtext {} {} {} {}", text.column, text.pointer, text.offset, text.size)?;
                f.write_str(if text.by_characters { " using chars" } else { "" })
            }
            Kind::Updatetext(text) => {
                write!(f, "updatetext {} {} {} {}", text.column, text.pointer, text.offset, text.length)?;
                match &text.source {
                    TextSource::Nothing => Ok(()),
                    TextSource::Value(value) => write!(f, " {value}"),
                    TextSource::Column { column, pointer } => write!(f, " {column} {pointer}"),
                }
            }
            Kind::WritetextBulk(text) => {
                write!(f, "writetext bulk {} {}", text.column, text.pointer)?;
                write!(f, "{}", Optional(" timestamp = ", &text.timestamp))
            }
            Kind::Writetext(writetext) => {
                write!(f, "writetext {} {} {}", writetext.column, writetext.pointer, writetext.value)
            }
        }
    }
}

/// Further items after others.
struct More<'a>(&'a [Expression]);

impl Display for More<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|item| write!(f, ", {item}"))
    }
}

impl Display for Declared {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.variable, self.type_, Optional(" = ", &self.value))
    }
}

impl Display for SetWord {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            // a word or a punctuation mark is unchanged, anything else becomes a text
            SetWord::Word(word) if word.chars().all(|c| c.is_alphanumeric() || "_-+.,".contains(c)) => {
                f.write_str(word)
            }
            SetWord::Word(text) => write!(f, "'{}'", as_quoted(text)),
            SetWord::Variable(variable) => variable.fmt(f),
        }
    }
}

impl Display for Raise {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Raise::Severity { message, severity, state, arguments, set_error, nowait, log } => {
                write!(f, "raiserror ({message}, {severity}, {state}{})", More(arguments))?;
                let options = [(set_error, "seterror"), (nowait, "nowait"), (log, "log")];
                let words: Vec<_> = options.iter().filter(|(on, _)| **on).map(|(_, word)| *word).collect();
                if words.is_empty() {
                    return Ok(());
                }
                write!(f, " with {}", list(&words))
            }
            Raise::Number { number, message, arguments } => {
                write!(f, "raiserror {number}{}{}", Optional(" ", message), More(arguments))
            }
        }
    }
}

impl Display for Execute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("exec ")?;
        if let Some(status) = &self.status {
            write!(f, "{status} = ")?;
        }
        match &self.procedure {
            Ok(name) => name.fmt(f)?,
            Err(variable) => variable.fmt(f)?,
        }
        if self.arguments.is_empty() {
            return Ok(());
        }
        write!(f, " {}", list(&self.arguments))
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name} = ")?;
        }
        match &self.value {
            ArgumentValue::Value(value) => value.fmt(f),
            ArgumentValue::Output(variable) => write!(f, "{variable} output"),
            ArgumentValue::Default => f.write_str("default"),
        }
    }
}

impl Display for ExecuteText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "exec ({})", self.text)
    }
}

impl Display for CursorName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CursorName::Name { name, global } => write!(f, "{}{name}", if *global { "global " } else { "" }),
            CursorName::Variable(variable) => variable.fmt(f),
        }
    }
}

impl Display for DeclareCursor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.name {
            CursorName::Name { name, .. } => write!(f, "declare {name} cursor")?,
            CursorName::Variable(variable) => write!(f, "set {variable} = cursor")?,
        }
        self.options.iter().try_for_each(|option| write!(f, " {}", option.word()))?;
        write!(f, " for {}", self.query)?;
        match &self.access {
            Some(Access::Update(columns)) if columns.is_empty() => f.write_str(" for update"),
            Some(Access::Update(columns)) => write!(f, " for update of {}", list(columns)),
            Some(Access::ReadOnly) => f.write_str(" for read only"),
            None => Ok(()),
        }
    }
}

impl Display for Fetch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "fetch {} from {}", self.direction, self.cursor)?;
        if self.into.is_empty() {
            return Ok(());
        }
        write!(f, " into {}", list(&self.into))
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Direction::Next => f.write_str("next"),
            Direction::Prior => f.write_str("prior"),
            Direction::First => f.write_str("first"),
            Direction::Last => f.write_str("last"),
            Direction::Absolute(row) => write!(f, "absolute {row}"),
            Direction::Relative(rows) => write!(f, "relative {rows}"),
        }
    }
}
