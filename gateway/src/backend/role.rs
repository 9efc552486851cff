//! A role that has just logged in, as described by PostgreSQL.

use crate::postgres::{Connection, PgError};
use tsql::quoting::literal;

#[derive(Debug)]
pub struct Role {
    /// The schema new sessions of the role are in.
    pub schema: String,
    /// All schemas of its search path that are there.
    pub path: Vec<String>,
    /// The gateway's own role may act as this one, so its calls may share a transaction with others'.
    pub may_share: bool,
    pub oid: u32,
    /// The most rows that a statement may give it.
    pub most_rows: Option<u64>,
    /// It reads from a standby where there is one.
    pub reads_standby: bool,
}

impl Role {
    /// Asks PostgreSQL. `gateway_role` is the name of the gateway's own role.
    pub async fn ask(connection: &mut Connection, gateway_role: &str) -> Result<Role, PgError> {
        let privilege = privilege_to_act(connection);
        let sql = format!(
            "select pg_catalog.current_schema(), pg_catalog.array_to_json(pg_catalog.current_schemas(false)), \
             coalesce((select pg_catalog.pg_has_role(oid, current_user, '{privilege}') \
             from pg_catalog.pg_roles where rolname = {}), false), \
             (select oid from pg_catalog.pg_roles where rolname = current_user), \
             pg_catalog.current_setting('tsql.row_limit', true), \
             pg_catalog.current_setting('tsql.reads_standby', true)",
            literal(gateway_role)
        );
        let rows = connection.query_text(&sql).await?;
        let first = rows.first().map_or(&[][..], Vec::as_slice);
        let path = first.get(1).and_then(Option::as_deref);
        let oid = first.get(3).and_then(Option::as_deref).and_then(|oid| oid.parse().ok());
        Ok(Role {
            schema: first.first().cloned().flatten().unwrap_or_default(),
            path: path.and_then(|path| serde_json::from_str(path).ok()).unwrap_or_default(),
            may_share: first.get(2).and_then(Option::as_deref) == Some("t") && oid.is_some(),
            oid: oid.unwrap_or_default(),
            most_rows: first
                .get(4)
                .and_then(Option::as_deref)
                .and_then(|most| most.parse().ok())
                .filter(|most| *most > 0),
            reads_standby: first.get(5).and_then(Option::as_deref) == Some("on"),
        })
    }
}

/// The privilege, for pg_has_role, by which a role may act as another.
pub fn privilege_to_act(connection: &Connection) -> &'static str {
    if server_version(connection) >= 16 {
        "set"
    } else {
        "member"
    }
}

fn server_version(connection: &Connection) -> u32 {
    connection
        .parameter("server_version")
        .and_then(|version| version.split('.').next())
        .and_then(|major| major.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok())
        .unwrap_or(0)
}
