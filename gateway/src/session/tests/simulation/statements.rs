//! The statements that the gateway sends by itself, and their answers.

use super::connection::Connection;
use super::plan::PROCEDURES;
use bytes::{BufMut, BytesMut};
use std::time::Duration;

/// The oids of the roles of sessions and of the procedures begin here.
const FIRST: u32 = 1000;
const INT4: u32 = 23;
const OID: u32 = 26;
const TEXT: u32 = 25;

pub type Cells = Vec<Option<Vec<u8>>>;

/// The login of a session, and the oid of its role.
pub fn login_of(session: usize) -> String {
    format!("w{session}")
}

pub fn role_of(login: &str) -> u32 {
    login.strip_prefix('w').and_then(|number| number.parse::<u32>().ok()).map_or(10, |number| FIRST + number)
}

/// A prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    Role { is_confirmation: bool },
    Call { procedure: u32 },
    Unknown,
}

impl Statement {
    pub fn read(sql: &str) -> Statement {
        if let Some(call) = sql.split_once("put_") {
            let number = call.1.chars().take_while(char::is_ascii_digit).collect::<String>();
            return number.parse().map_or(Statement::Unknown, |procedure| Statement::Call { procedure });
        }
        if sql.contains("set_config('role'") {
            return Statement::Role { is_confirmation: sql.contains("synchronous_commit") };
        }
        Statement::Unknown
    }
}

pub fn put(out: &mut BytesMut, kind: u8, body: &[u8]) {
    out.put_u8(kind);
    out.put_u32(body.len() as u32 + 4);
    out.put_slice(body);
}

/// ParameterDescription and RowDescription.
pub fn describe(statement: &Statement, out: &mut BytesMut) {
    let (parameter, column, size) = match statement {
        Statement::Call { .. } => (INT4, INT4, 4),
        _ => (OID, TEXT, -1),
    };
    put(out, b't', &[&1u16.to_be_bytes()[..], &parameter.to_be_bytes()].concat());
    let mut row = BytesMut::new();
    row.put_u16(1);
    row.put_slice(b"column\0");
    row.put_slice(&[0; 6]);
    row.put_u32(column);
    row.put_i16(size);
    row.put_i32(-1);
    row.put_u16(0);
    put(out, b'T', &row);
}

fn row(values: &[&str]) -> Cells {
    values.iter().map(|value| Some(value.as_bytes().to_vec())).collect()
}

fn per_procedure(values: impl Fn(u32) -> Cells) -> Vec<Cells> {
    (0..PROCEDURES).map(values).collect()
}

/// Runs a statement of the simple protocol. None: it is not simulated.
pub fn run(connection: &mut Connection, sql: &str) -> Option<Vec<Cells>> {
    if let Some(rows) = catalogue(sql) {
        return Some(rows);
    }
    let role = role_of(&connection.user).to_string();
    let words: Vec<_> = sql.split(' ').collect();
    match words.as_slice() {
        ["begin", ..] => {
            connection.status = b'T';
            Some(Vec::new())
        }
        ["savepoint", name] => {
            connection.save(name);
            Some(Vec::new())
        }
        ["release", "savepoint", name] => {
            connection.savepoints.retain(|(known, ..)| known != name);
            Some(Vec::new())
        }
        ["rollback", "to", "savepoint", name] => {
            connection.go_back(name);
            Some(Vec::new())
        }
        ["set", "lock_timeout", "=", time] => {
            connection.lock_timeout = time.parse().ok().map(Duration::from_millis);
            Some(Vec::new())
        }
        ["set" | "reset" | "discard", ..] => Some(Vec::new()),
        ["show", "synchronous_commit"] => Some(vec![row(&["on"])]),
        ["select", "1"] => Some(vec![row(&["1"])]),
        ["select", "pg_catalog.current_schema()"] => Some(vec![row(&["public"])]),
        ["select", "pg_catalog.current_schema(),", ..] => {
            let mut values = row(&["public", "[\"public\"]", "t", &role, "", "", "", "f"]);
            values[4..7].fill(None);
            Some(vec![values])
        }
        ["select", mend, ..] if mend.starts_with("ringlog.mend_ring(") => Some(vec![row(&["t"])]),
        ["select", "nspname", ..] => Some(vec![row(&["public"])]),
        ["select", set, ..] if set.starts_with("pg_catalog.set_config('search_path'") => Some(Vec::new()),
        ["select", "pg_catalog.pg_current_xact_id_if_assigned()"] => Some(vec![row(&["1"])]),
        _ => None,
    }
}

/// Answers the readings of the catalogue (catalogue/*.sql): procedures ringlog.put_<n>(id int4) returns int4.
fn catalogue(sql: &str) -> Option<Vec<Cells>> {
    let has = |part| sql.contains(part);
    let oid = |procedure: u32| (FIRST + procedure).to_string();
    Some(if has("p.prokind in ('f', 'p')") {
        per_procedure(|procedure| row(&[&oid(procedure), "1"]))
    } else if has("proargmodes[a.index], 'i')") {
        per_procedure(|procedure| row(&[&oid(procedure), "i", "id", &INT4.to_string()]))
    } else if has("p.pronargdefaults") {
        per_procedure(|procedure| {
            let (oid, name, of) = (oid(procedure), format!("put_{procedure}"), INT4.to_string());
            let kinds = ["f", "f", &of, "t", "1", "f", "", "", "", ""];
            row(&[&[&*oid, "ringlog", &*name][..], &kinds].concat())
        })
    } else if has("'max_connections'") {
        vec![row(&["60", "0"])]
    } else if [
        " pg_catalog.pg_class ",
        "pg_catalog.pg_proc",
        "obj_description",
        "pg_db_role_setting",
        "pg_type",
    ]
    .iter()
    .any(|relation| sql.contains(relation))
    {
        Vec::new()
    } else {
        return None;
    })
}
