//! What the compiler of T-SQL gives, as JSON.

use super::{
    Action, Argument, Condition, Declaration, Define, Execute, Expression, Kind, Program, Query, Sql,
    Statement,
};
use crate::convert::SqlType;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use crate::text::literal;
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
#[serde(untagged)]
enum Compiled {
    Refused {
        error: Refusal,
    },
    Program {
        statements: Vec<JsonStatement>,
        #[serde(default)]
        placeholders: usize,
    },
}

#[derive(Deserialize)]
struct Refusal {
    number: i32,
    severity: u8,
    state: u8,
    line: u32,
    text: String,
}

#[derive(Deserialize)]
struct JsonStatement {
    line: u32,
    #[serde(flatten)]
    action: JsonAction,
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum JsonAction {
    Query {
        #[serde(flatten)]
        sql: JsonSql,
        kind: String,
        #[serde(default)]
        assigns: Vec<String>,
        #[serde(default)]
        columns: Option<Vec<Option<String>>>,
        #[serde(default)]
        into: Option<String>,
    },
    Declare {
        name: String,
        oid: u32,
        typmod: i32,
        #[serde(flatten)]
        value: JsonExpression,
    },
    Assign {
        name: String,
        #[serde(flatten)]
        value: JsonExpression,
    },
    If {
        #[serde(flatten)]
        condition: JsonSql,
        then: Vec<JsonStatement>,
        #[serde(default, rename = "else")]
        otherwise: Option<Vec<JsonStatement>>,
    },
    While {
        #[serde(flatten)]
        condition: JsonSql,
        body: Vec<JsonStatement>,
    },
    Break,
    Continue,
    Return(JsonExpression),
    Print(JsonExpression),
    Raise {
        #[serde(flatten)]
        message: JsonSql,
        #[serde(default)]
        sets_error: bool,
        #[serde(default)]
        nowait: bool,
    },
    Waitfor(JsonExpression),
    Execute {
        #[serde(default)]
        status: Option<String>,
        procedure: String,
        #[serde(default)]
        arguments: Vec<JsonArgument>,
    },
    ExecuteText(JsonExpression),
    Use {
        database: String,
    },
    Set {
        words: Vec<String>,
    },
    Begin(Name),
    Commit,
    Rollback(Name),
    Save(Name),
    Try {
        body: Vec<JsonStatement>,
        catch: Vec<JsonStatement>,
    },
    Throw(JsonExpression),
    Define {
        statements: Vec<String>,
    },
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct JsonSql {
    sql: String,
    #[serde(default)]
    variables: Vec<String>,
}

/// SQL or a literal, or neither.
#[derive(Deserialize)]
struct JsonExpression {
    #[serde(default)]
    sql: Option<String>,
    #[serde(default)]
    variables: Vec<String>,
    #[serde(default)]
    value: serde_json::Value,
    #[serde(default, rename = "type")]
    literal_type: Option<String>,
}

#[derive(Deserialize)]
struct JsonArgument {
    #[serde(default)]
    name: Option<String>,
    #[serde(flatten)]
    value: JsonExpression,
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    default: bool,
}

/// The program of a compiled text, or the compiler's refusal of it. The inner error says what is wrong with
/// the JSON itself.
pub fn read(json: &str) -> Result<Result<Program, ServerMessage>, String> {
    let compiled: Compiled = serde_json::from_str(json).map_err(|error| error.to_string())?;
    match compiled {
        Compiled::Refused { error } => {
            let message = ServerMessage::error(error.number, error.severity, error.text);
            Ok(Err(ServerMessage { state: error.state, line: error.line, ..message }))
        }
        Compiled::Program { statements, placeholders } => {
            Ok(Ok(Program { statements: block(statements)?, placeholders }))
        }
    }
}

fn block(statements: Vec<JsonStatement>) -> Result<Vec<Statement>, String> {
    let read =
        |statement: JsonStatement| Ok(Statement { line: statement.line, action: action(statement.action)? });
    statements.into_iter().map(read).collect()
}

fn action(action: JsonAction) -> Result<Action, String> {
    Ok(match action {
        JsonAction::Query { sql, kind, assigns, columns, into } => Action::Query(Query {
            sql: sql.read()?,
            kind: match kind.as_str() {
                "select" => Kind::Select,
                "insert" | "update" | "delete" => Kind::Change,
                "ddl" => Kind::Definition,
                other => return Err(format!("a query of kind '{other}'")),
            },
            assigns,
            columns: columns.map(|names| names.into_iter().map(Option::unwrap_or_default).collect()),
            into,
        }),
        JsonAction::Declare { name, oid, typmod, value } => Action::Declare(Declaration {
            name,
            sql_type: SqlType { oid, typmod },
            output: false,
            value: value.optional()?,
        }),
        JsonAction::Assign { name, value } => Action::Assign(name, value.read()?),
        JsonAction::If { condition, then, otherwise } => Action::If {
            condition: Condition::Sql(condition.read()?),
            then: block(then)?,
            otherwise: block(otherwise.unwrap_or_default())?,
        },
        JsonAction::While { condition, body } => {
            Action::While { condition: Condition::Sql(condition.read()?), body: block(body)? }
        }
        JsonAction::Break => Action::Break,
        JsonAction::Continue => Action::Continue,
        JsonAction::Return(value) => Action::Return(value.optional()?),
        JsonAction::Print(value) => Action::Print(value.read()?),
        JsonAction::Raise { message, sets_error, nowait } => {
            Action::Raise { message: message.read()?, sets_error, at_once: nowait }
        }
        JsonAction::Waitfor(value) => Action::Wait(value.read()?),
        JsonAction::Execute { status, procedure, arguments } => {
            let arguments: Result<_, String> = arguments.into_iter().map(JsonArgument::read).collect();
            Action::Execute(Execute { status, procedure, arguments: arguments? })
        }
        JsonAction::ExecuteText(value) => Action::ExecuteText(value.read()?),
        JsonAction::Use { database } => Action::Use(database),
        JsonAction::Set { words } => Action::Set(words),
        JsonAction::Begin(Name { name }) => Action::Begin(name.unwrap_or_default()),
        JsonAction::Commit => Action::Commit,
        JsonAction::Rollback(Name { name }) => Action::Rollback(name.unwrap_or_default()),
        JsonAction::Save(Name { name }) => Action::Save(name.ok_or("a savepoint without a name")?),
        JsonAction::Try { body, catch } => Action::Try { body: block(body)?, catch: block(catch)? },
        JsonAction::Throw(JsonExpression { sql: None, .. }) => Action::Throw(None),
        JsonAction::Throw(JsonExpression { sql: Some(sql), variables, .. }) => {
            Action::Throw(Some(Sql::read(&sql, variables)?))
        }
        JsonAction::Define { statements } => Action::Define(Define { statements }),
    })
}

impl JsonSql {
    fn read(self) -> Result<Sql, String> {
        Sql::read(&self.sql, self.variables)
    }
}

impl JsonExpression {
    fn read(self) -> Result<Expression, String> {
        self.optional()?.ok_or_else(|| String::from("an expression without sql or value"))
    }

    fn optional(self) -> Result<Option<Expression>, String> {
        if let Some(sql) = self.sql {
            let sql = Sql::read(&sql, self.variables)?;
            let variable = sql.as_variable().map(|name| Expression::Variable(name.to_owned()));
            return Ok(Some(variable.unwrap_or(Expression::Sql(sql))));
        }
        let Some(literal_type) = self.literal_type else { return Ok(None) };
        value(&self.value, &literal_type).map(|value| Some(Expression::Literal(value)))
    }
}

impl JsonArgument {
    fn read(self) -> Result<Argument, String> {
        let name = self.name.unwrap_or_default().trim_start_matches('@').to_owned();
        if self.default {
            return Ok(Argument { name, value: None, output: false });
        }
        if let Some(variable) = self.output {
            return Ok(Argument { name, value: Some(Expression::Variable(variable)), output: true });
        }
        Ok(Argument { name, value: Some(self.value.read()?), output: false })
    }
}

fn value(value: &serde_json::Value, literal_type: &str) -> Result<Value<'static>, String> {
    let wrong = || format!("{value} as a literal of type {literal_type}");
    Ok(match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(bit) => Value::Bit(*bit),
        serde_json::Value::Number(number) => match number.as_i64().filter(|_| literal_type != "float") {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().ok_or_else(wrong)?),
        },
        serde_json::Value::String(text) => match literal_type {
            "numeric" => Value::Decimal(literal::decimal(text).ok_or_else(wrong)?),
            "binary" => Value::Binary(Cow::Owned(bytes(text).ok_or_else(wrong)?)),
            _ => Value::Text(Cow::Owned(text.clone())),
        },
        _ => return Err(wrong()),
    })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::types::Decimal;

    fn statements(json: &str) -> Vec<Statement> {
        read(&format!("{{\"statements\": [{json}]}}")).unwrap().unwrap().statements
    }

    fn one(json: &str) -> Action {
        statements(json).remove(0).action
    }

    #[test]
    fn a_query_with_its_variables() {
        let Action::Query(query) =
            one(r#"{"do": "query", "line": 3, "sql": "select a from t where b = $1", "variables": ["@a"],
                "kind": "select", "columns": ["", null], "assigns": []}"#)
        else {
            panic!()
        };
        assert_eq!(query.sql.variables, ["@a"]);
        assert_eq!((query.kind, query.columns), (Kind::Select, Some(vec![String::new(), String::new()])));
    }

    #[test]
    fn control_flow_nests() {
        let statement = statements(
            r#"{"do": "while", "line": 1, "sql": "$1 < 3", "variables": ["@i"], "body": [
                {"do": "if", "line": 2, "sql": "true", "variables": [], "then": [{"do": "break", "line": 2}],
                 "else": [{"do": "continue", "line": 4}]},
                {"do": "return", "line": 5}, {"do": "return", "line": 6, "value": -3, "type": "int"}]}"#,
        );
        let Action::While { body, .. } = &statement[0].action else { panic!() };
        let Action::If { then, otherwise, .. } = &body[0].action else { panic!() };
        assert!(matches!(then[0].action, Action::Break) && otherwise[0].line == 4);
        assert!(matches!(&body[1].action, Action::Return(None)));
        assert!(matches!(&body[2].action, Action::Return(Some(Expression::Literal(Value::Int(-3))))));
    }

    #[test]
    fn literals_and_variables_cost_no_query() {
        let value = |json: &str| match one(&format!("{{\"do\": \"print\", \"line\": 1, {json}}}")) {
            Action::Print(expression) => expression,
            other => panic!("{other:?}"),
        };
        let literal = |value| Expression::Literal(value);
        assert_eq!(value(r#""sql": "select $1", "variables": ["@a"]"#), Expression::Variable("@a".into()));
        assert!(matches!(value(r#""sql": "$1 || 'x'", "variables": ["@a"]"#), Expression::Sql(_)));
        assert_eq!(value(r#""value": null, "type": "int""#), literal(Value::Null));
        assert_eq!(value(r#""value": 1, "type": "float""#), literal(Value::Float(1.0)));
        let decimal = Decimal { negative: true, magnitude: 150, scale: 2 };
        assert_eq!(value(r#""value": "-1.50", "type": "numeric""#), literal(Value::Decimal(decimal)));
        assert_eq!(
            value(r#""value": "0aFF", "type": "binary""#),
            literal(Value::Binary(vec![10, 255].into()))
        );
        assert_eq!(value(r#""value": "1", "type": "text""#), literal(Value::Text("1".into())));
    }

    #[test]
    fn calls() {
        let Action::Execute(execute) = one(
            r#"{"do": "execute", "line": 1, "status": "@r", "procedure": "log..p", "arguments": [
                {"name": null, "value": 1, "type": "int"}, {"name": "@b", "sql": "select $1", "variables": ["@x"],
                 "output": "@x"}, {"name": "c", "default": true}]}"#,
        ) else {
            panic!()
        };
        let shown: Vec<_> =
            execute.arguments.iter().map(|argument| (argument.name.as_str(), argument.output)).collect();
        assert_eq!(shown, [("", false), ("b", true), ("c", false)]);
        assert_eq!(execute.arguments[1].value, Some(Expression::Variable("@x".into())));
        assert_eq!(execute.arguments[2].value, None);
    }

    #[test]
    fn a_refusal_and_what_is_no_program() {
        let refused = r#"{"error": {"number": 102, "severity": 15, "state": 1, "line": 3, "text": "no"}}"#;
        let message = read(refused).unwrap().unwrap_err();
        assert_eq!((message.number, message.line, message.text.as_str()), (102, 3, "no"));
        for wrong in [
            r#"{"do": "fly", "line": 1}"#,
            r#"{"do": "print", "line": 1}"#,
            r#"{"do": "query", "line": 1, "sql": "$1", "kind": "select"}"#,
            r#"{"do": "query", "line": 1, "sql": "select 1", "kind": "merge"}"#,
            r#"{"do": "print", "line": 1, "value": "x", "type": "numeric"}"#,
        ] {
            assert!(read(&format!("{{\"statements\": [{wrong}]}}")).is_err(), "{wrong}");
        }
        assert!(read("nonsense").is_err());
    }
}
