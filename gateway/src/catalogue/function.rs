//! A function or procedure that clients may call.

use super::parameters::{Argument, Direction, Parameters};
use super::schemas::{OF_SYBASE, OWN, SYSTEM};
use super::text::Text;
use crate::convert::PgType;
use crate::metrics::CallMetrics;
use crate::postgres::commit::Statement;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tsql::facts::types::Type;
use tsql::quoting::{literal, quoted};

/// The form of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// int: the return status
    Status,
    Nothing,
    /// OUT and INOUT arguments
    Outputs,
    /// rows, or one value of another type
    Rows,
    /// The value of a function, for `exec @v = function`.
    Value,
}

#[derive(Debug)]
pub struct Function {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub is_procedure: bool,
    pub returns: Returns,
    /// Its calls may share a transaction with those of others: they run the installer's code only.
    pub joins_group: bool,
    /// STABLE or IMMUTABLE: leaves nothing behind on its connection.
    pub only_reads: bool,
    /// Its node; None: this server.
    pub node: Option<Arc<str>>,
    pub parameters: Arc<Parameters>,
    /// A procedure whose text the gateway may run.
    pub text: Option<Text>,
    pub metrics: CallMetrics,
    statements: Mutex<HashMap<Vec<bool>, Arc<Statement>>>,
    /// The type of the value, for a function of T-SQL.
    pub value_type: Option<Type>,
    /// The types of its parameters, for a function of T-SQL.
    pub takes: Arc<[Type]>,
    /// The base type of its result.
    return_type: u32,
    /// It returns one value.
    is_scalar: bool,
    as_value: OnceLock<Arc<Function>>,
}

static NEXT_STATEMENT: AtomicU64 = AtomicU64::new(1);

const INT2: u32 = 21;
const INT4: u32 = 23;
const VOID: u32 = 2278;
/// Oids from this number on belong to the database's own objects, and differ between servers.
const FIRST_OF_DATABASE: u32 = 16384;
/// The first argument of a procedure for any table, which is called on the server of that table.
const TABLE_NAME: &str = "table_name";

/// A function as PostgreSQL declares it, without its arguments.
pub struct Declared<'a> {
    pub oid: u32,
    pub schema: &'a str,
    pub name: &'a str,
    pub is_procedure: bool,
    pub is_set: bool,
    pub return_type: u32,
    pub joins_group: bool,
    pub only_reads: bool,
    pub node: Option<Arc<str>>,
    /// The type of the value, for a function of T-SQL.
    pub value_type: Option<Type>,
    /// The types of the parameters, for a function or procedure of T-SQL.
    pub takes: Arc<[Type]>,
}

impl Declared<'_> {
    fn returns(&self, parameters: &Parameters) -> Returns {
        let outputs = parameters.arguments.iter().filter(|argument| argument.direction.is_output()).count();
        match (self.is_set, outputs, self.return_type) {
            (true, ..) => Returns::Rows,
            // the only output is a row, which PostgreSQL spreads over columns
            (false, 1, _) if parameters.composite_outputs == 1 => Returns::Rows,
            (false, 1.., _) => Returns::Outputs,
            (false, 0, INT2 | INT4) => Returns::Status,
            (false, 0, VOID | 0) => Returns::Nothing,
            (false, 0, _) if self.is_procedure => Returns::Nothing,
            (false, 0, _) => Returns::Rows,
        }
    }
}

impl Function {
    pub fn new(declared: Declared<'_>, parameters: Arc<Parameters>, metrics: CallMetrics) -> Function {
        let returns = declared.returns(&parameters);
        // the oids of types of schema tsql differ from the gateway's own numbers for them
        let return_type = declared.value_type.map_or(declared.return_type, |of| of.oid);
        let has_value = !matches!(PgType::from_oid(return_type), PgType::Void | PgType::Other(_));
        let is_scalar = !declared.is_procedure
            && !declared.is_set
            && matches!(returns, Returns::Status | Returns::Rows)
            && has_value;
        Function {
            value_type: declared.value_type,
            takes: declared.takes,
            return_type,
            is_scalar,
            as_value: OnceLock::new(),
            oid: declared.oid,
            schema: declared.schema.to_owned(),
            name: declared.name.to_owned(),
            is_procedure: declared.is_procedure,
            returns,
            // a plan of a call cannot return a value
            joins_group: declared.joins_group && returns != Returns::Rows && declared.value_type.is_none(),
            only_reads: declared.only_reads,
            node: declared.node,
            parameters,
            text: None,
            metrics,
            statements: Mutex::new(HashMap::new()),
        }
    }

    /// The same function called for its value; unchanged if it does not return one value.
    pub fn for_value(self: Arc<Function>) -> Arc<Function> {
        if !self.is_scalar || self.returns == Returns::Value {
            return self;
        }
        let as_value = self.as_value.get_or_init(|| {
            Arc::new(Function { is_procedure: false, returns: Returns::Value, text: None, ..self.copied() })
        });
        as_value.clone()
    }

    /// The same procedure, run by the gateway or not.
    pub fn run_by_gateway(&self, runs_here: bool) -> Function {
        let mut function = self.copied();
        if let Some(text) = &mut function.text {
            text.runs_here = runs_here;
        }
        function
    }

    /// A copy of it without calls.
    fn copied(&self) -> Function {
        Function {
            oid: self.oid,
            schema: self.schema.clone(),
            name: self.name.clone(),
            is_procedure: self.is_procedure,
            returns: self.returns,
            joins_group: self.joins_group,
            only_reads: self.only_reads,
            node: self.node.clone(),
            parameters: self.parameters.clone(),
            text: self.text.clone(),
            metrics: self.metrics.clone(),
            statements: Mutex::new(HashMap::new()),
            value_type: self.value_type,
            takes: self.takes.clone(),
            return_type: self.return_type,
            is_scalar: self.is_scalar,
            as_value: OnceLock::new(),
        }
    }

    /// PostgreSQL's type of its value.
    pub fn return_type(&self) -> PgType {
        PgType::from_oid(self.return_type)
    }

    /// Its name in messages.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Whether it is a system function.
    pub fn is_system(&self) -> bool {
        self.schema == SYSTEM || self.schema == OF_SYBASE
    }

    /// The options of parsing its text, when the gateway runs it.
    pub fn runs_here(&self) -> Option<&Text> {
        self.text.as_ref().filter(|text| text.runs_here)
    }

    /// Whether its calls go to the node of the table in their first argument.
    pub fn goes_by_table(&self) -> bool {
        let first = self.parameters.arguments.first();
        self.schema == OWN
            && self.joins_group
            && first.is_some_and(|argument| argument.direction.is_input() && &*argument.name == TABLE_NAME)
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
            sql: self.sql(given),
            parameter_types: self.given(given).map(|argument| self.type_of(argument)).collect(),
            parameter_formats: self.given(given).map(|argument| self.format(argument)).collect(),
        });
        statements.insert(given.to_vec(), statement.clone());
        statement
    }

    /// The input arguments that a call passes.
    fn given<'a>(&'a self, given: &'a [bool]) -> impl Iterator<Item = &'a Argument> {
        self.parameters
            .arguments
            .iter()
            .zip(given)
            .filter(|(argument, given)| **given && argument.direction.is_input())
            .map(|(argument, _)| argument)
    }

    /// The oid of an argument's type; 0, for which PostgreSQL infers the type, if the oid may differ on a
    /// node.
    fn type_of(&self, argument: &Argument) -> u32 {
        match argument.oid {
            FIRST_OF_DATABASE.. if self.node.is_some() => 0,
            oid => oid,
        }
    }

    /// The format in which an argument is sent, 0 for text and 1 for binary.
    fn format(&self, argument: &Argument) -> i16 {
        let field = self.parameters.fields.get(argument.fields.start);
        i16::from(argument.is_composite || !field.is_some_and(|field| field.pg_type.wants_text()))
    }

    fn sql(&self, given: &[bool]) -> String {
        let mut next = 0;
        let mut arguments = Vec::new();
        let all_given = self
            .parameters
            .arguments
            .iter()
            .zip(given)
            .all(|(argument, given)| *given || !argument.direction.is_input());
        for (argument, given) in self.parameters.arguments.iter().zip(given) {
            let value = if argument.direction == Direction::Out {
                if !self.is_procedure {
                    continue;
                }
                // CALL needs a value for every OUT argument
                "null".to_owned()
            } else if *given {
                next += 1;
                match self.demand(argument).filter(|_| self.is_procedure) {
                    // CALL has no condition; it evaluates its arguments each time
                    Some(demand) => format!("case when {demand} then ${next} end"),
                    None => format!("${next}"),
                }
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
            (false, Returns::Status | Returns::Nothing | Returns::Value) => {
                format!("select {call}{}", self.demands(given))
            }
            (false, Returns::Outputs | Returns::Rows) => {
                format!("select * from {call}{}", self.demands(given))
            }
        }
    }

    /// The condition that the passed composites have the columns of this catalogue, in this order: their values have no
    /// names. PostgreSQL evaluates it when it plans the statement, and again when a relation named in it has changed.
    fn demands(&self, given: &[bool]) -> String {
        let demands: Vec<_> = self.given(given).filter_map(|argument| self.demand(argument)).collect();
        if demands.is_empty() {
            return String::new();
        }
        format!(" where {}", demands.join(" and "))
    }

    /// The condition for one argument; None except for composites, and on a node, where relations have other oids.
    fn demand(&self, argument: &Argument) -> Option<String> {
        if argument.relation == 0 || self.node.is_some() {
            return None;
        }
        let fields = self.parameters.fields.get(argument.fields.clone()).unwrap_or_default();
        let names: Vec<_> = fields.iter().map(|field| literal(&field.name)).collect();
        Some(format!(
            "tsql.demand_columns('{}'::pg_catalog.oid, array[{}]::pg_catalog.text[])",
            argument.relation,
            names.join(", ")
        ))
    }
}
