//! What a function takes and gives, as its callers see it: composite arguments unfolded into their fields.

use crate::convert::{Capacity, PgType};
use crate::metrics::CallMetrics;
use crate::postgres::commit::{Owner, Statement};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    InOut,
    Out,
}

impl Direction {
    pub fn is_input(self) -> bool {
        self != Direction::Out
    }

    pub fn is_output(self) -> bool {
        self != Direction::In
    }
}

/// An argument as PostgreSQL declares it.
#[derive(Debug)]
pub struct Argument {
    /// "" when the function does not name it.
    pub name: String,
    pub direction: Direction,
    pub has_default: bool,
    pub oid: u32,
    /// Its fields, more than one only for a composite.
    pub fields: Range<usize>,
    pub is_composite: bool,
}

/// A parameter as callers see it.
#[derive(Debug)]
pub struct Field {
    /// Without the @ that arguments of procedures compiled from T-SQL begin with.
    pub name: String,
    pub oid: u32,
    pub pg_type: PgType,
    /// What the column that a composite's field is of holds at most.
    pub capacity: Option<Capacity>,
    pub argument: usize,
    /// No other parameter of the function has this name.
    pub is_unique: bool,
}

/// A field of a composite type.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: String,
    pub oid: u32,
    /// What it stands for in the end, where it is a domain.
    pub pg_type: PgType,
    /// The length or precision it was declared with, as PostgreSQL keeps it; -1: none.
    pub typmod: i32,
}

/// What a call gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// int: the return status
    Status,
    Nothing,
    /// OUT and INOUT arguments
    Outputs,
    /// rows, or one value of another type
    Rows,
}

#[derive(Debug)]
pub struct Function {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub is_procedure: bool,
    pub returns: Returns,
    /// Where the return status stands in the row of a function that gives outputs too.
    pub status_column: Option<usize>,
    /// Its calls may share a transaction with those of other procedures of this owner.
    pub joins_group: Option<Owner>,
    /// STABLE or IMMUTABLE: leaves nothing behind on its connection.
    pub only_reads: bool,
    pub arguments: Vec<Argument>,
    pub fields: Vec<Field>,
    pub metrics: CallMetrics,
    by_name: HashMap<String, Vec<usize>>,
    statements: Mutex<HashMap<Vec<bool>, Arc<Statement>>>,
}

static NEXT_STATEMENT: AtomicU64 = AtomicU64::new(1);

const INT2: u32 = 21;
const INT4: u32 = 23;
const VOID: u32 = 2278;

/// The OUT argument that is the return status of a function with outputs.
const RETURN_STATUS: &str = "return_status";

impl Function {
    /// As messages show it.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Whether it is the system's own.
    pub fn is_system(&self) -> bool {
        self.schema == super::SYSTEM || self.schema == super::OF_SYBASE
    }

    /// The places of parameters called `name`, without regard to case.
    pub fn places(&self, name: &str) -> &[usize] {
        self.by_name.get(&name.to_lowercase()).map_or(&[], Vec::as_slice)
    }

    /// The statement that calls it with the arguments marked in `given`; the others take their defaults.
    pub fn statement(&self, given: &[bool]) -> Arc<Statement> {
        let mut statements = self.statements.lock();
        if let Some(statement) = statements.get(given) {
            return statement.clone();
        }
        let statement = Arc::new(Statement {
            id: NEXT_STATEMENT.fetch_add(1, Ordering::Relaxed),
            procedure: self.oid,
            owner: self.joins_group.unwrap_or(Owner::Site(0)),
            sql: self.sql(given),
            parameter_types: self.given(given).map(|argument| argument.oid).collect(),
            parameter_formats: self.given(given).map(|argument| self.format(argument)).collect(),
        });
        statements.insert(given.to_vec(), statement.clone());
        statement
    }

    /// The input arguments that a call gives.
    fn given<'a>(&'a self, given: &'a [bool]) -> impl Iterator<Item = &'a Argument> {
        self.arguments
            .iter()
            .zip(given)
            .filter(|(argument, given)| **given && argument.direction.is_input())
            .map(|(argument, _)| argument)
    }

    /// How an argument is sent, 0 for text and 1 for binary.
    fn format(&self, argument: &Argument) -> i16 {
        let field = self.fields.get(argument.fields.start);
        i16::from(argument.is_composite || !field.is_some_and(|field| field.pg_type.wants_text()))
    }

    fn sql(&self, given: &[bool]) -> String {
        let mut next = 0;
        let mut arguments = Vec::new();
        let all_given = self
            .arguments
            .iter()
            .zip(given)
            .all(|(argument, given)| *given || !argument.direction.is_input());
        for (argument, given) in self.arguments.iter().zip(given) {
            let value = if argument.direction == Direction::Out {
                if !self.is_procedure {
                    continue;
                }
                // CALL wants a place for every OUT argument
                "null".to_owned()
            } else if *given {
                next += 1;
                format!("${next}")
            } else {
                continue;
            };
            arguments.push(if all_given || argument.name.is_empty() {
                value
            } else {
                format!("{} => {value}", quoted(&argument.name))
            });
        }
        let call = format!("{}.{}({})", quoted(&self.schema), quoted(&self.name), arguments.join(", "));
        match (self.is_procedure, self.returns) {
            (true, _) => format!("call {call}"),
            (false, Returns::Status | Returns::Nothing) => format!("select {call}"),
            (false, Returns::Outputs | Returns::Rows) => format!("select * from {call}"),
        }
    }
}

/// An identifier quoted for PostgreSQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The arguments of a function as they are read.
#[derive(Debug, Default)]
pub struct Parts {
    arguments: Vec<Argument>,
    fields: Vec<Field>,
    composite_outputs: usize,
    status_column: Option<usize>,
}

impl Parts {
    /// Adds an argument. `attributes` are those of a composite: name, type, and what the type stands for.
    pub fn argument(
        &mut self,
        name: &str,
        direction: Direction,
        has_default: bool,
        oid: u32,
        pg_type: PgType,
        attributes: Option<Vec<Attribute>>,
    ) {
        let start = self.fields.len();
        let argument = self.arguments.len();
        if direction == Direction::Out && name == RETURN_STATUS && oid == INT4 {
            self.status_column = Some(self.arguments.iter().filter(|one| one.direction.is_output()).count());
            self.arguments.push(Argument {
                name: name.to_owned(),
                direction,
                has_default,
                oid,
                fields: start..start,
                is_composite: false,
            });
            return;
        }
        // an output of composite type is not unfolded
        self.composite_outputs += usize::from(attributes.is_some() && direction.is_output());
        let attributes = attributes.filter(|_| direction == Direction::In);
        let is_composite = attributes.is_some();
        let shown = name.strip_prefix('@').unwrap_or(name);
        let fields = attributes
            .unwrap_or_else(|| vec![Attribute { name: shown.to_owned(), oid, pg_type, typmod: -1 }]);
        self.fields.extend(fields.into_iter().map(|field| Field {
            capacity: Capacity::of(field.pg_type, field.typmod),
            name: field.name,
            oid: field.oid,
            pg_type: field.pg_type,
            argument,
            is_unique: true,
        }));
        self.arguments.push(Argument {
            name: name.to_owned(),
            direction,
            has_default,
            oid,
            fields: start..self.fields.len(),
            is_composite,
        });
    }

    #[allow(clippy::too_many_arguments)]
    pub fn function(
        mut self,
        oid: u32,
        schema: &str,
        name: &str,
        is_procedure: bool,
        is_set: bool,
        return_type: u32,
        joins_group: Option<Owner>,
        only_reads: bool,
        metrics: CallMetrics,
    ) -> Function {
        let outputs = self.arguments.iter().filter(|argument| argument.direction.is_output()).count();
        let has_outputs = outputs > 0;
        let returns = match (is_set, has_outputs, return_type) {
            (true, _, _) => Returns::Rows,
            // the only output is a row, which PostgreSQL spreads over columns
            (false, true, _) if outputs == 1 && self.composite_outputs == 1 => Returns::Rows,
            (false, true, _) => Returns::Outputs,
            (false, false, INT2 | INT4) => Returns::Status,
            (false, false, VOID | 0) => Returns::Nothing,
            (false, false, _) if is_procedure => Returns::Nothing,
            (false, false, _) => Returns::Rows,
        };
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, field) in self.fields.iter().enumerate() {
            by_name.entry(field.name.to_lowercase()).or_default().push(place);
        }
        for places in by_name.values().filter(|places| places.len() > 1) {
            for place in places {
                if let Some(field) = self.fields.get_mut(*place) {
                    field.is_unique = false;
                }
            }
        }
        Function {
            oid,
            schema: schema.to_owned(),
            name: name.to_owned(),
            is_procedure,
            returns,
            status_column: self.status_column,
            joins_group: joins_group.filter(|_| returns != Returns::Rows),
            only_reads,
            arguments: self.arguments,
            fields: self.fields,
            metrics,
            by_name,
            statements: Mutex::new(HashMap::new()),
        }
    }
}
