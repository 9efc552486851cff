//! A role that has just logged in, as described by PostgreSQL.

use crate::postgres::{Connection, PgError};
use tsql::quoting::{literal, quoted};

#[derive(Debug)]
pub struct Role {
    /// The schema in which new sessions of the role begin.
    pub schema: String,
    /// The existing schemas of its search path.
    pub path: Vec<String>,
    /// The gateway's own role may act as this one, so its calls may share a transaction with others'.
    pub may_share: bool,
    pub oid: u32,
    /// The most rows that one statement may return to it.
    pub most_rows: Option<u64>,
    /// It reads from a standby if there is one.
    pub reads_standby: bool,
    /// The most concurrent sessions of the role.
    pub most_sessions: Option<usize>,
    /// It may take the last sessions and connections, which are reserved.
    pub has_reserve: bool,
}

impl Role {
    /// Reads the role from PostgreSQL. `gateway_role`: the name of the gateway's own role. The last sessions are
    /// reserved for the members of `reserved_for`.
    pub async fn ask(
        connection: &mut Connection,
        gateway_role: &str,
        reserved_for: &[String],
    ) -> Result<Role, PgError> {
        let role_named = |name: &str| format!("pg_catalog.to_regrole({})", literal(&quoted(name)));
        let reserved_for: Vec<String> = reserved_for.iter().map(|role| role_named(role)).collect();
        let privilege = privilege_to_act(connection);
        let sql = format!(
            "select pg_catalog.current_schema(), pg_catalog.array_to_json(pg_catalog.current_schemas(false)), \
             coalesce(pg_catalog.pg_has_role({}, current_user, '{privilege}'), false), \
             pg_catalog.to_regrole(pg_catalog.quote_ident(current_user))::pg_catalog.oid, \
             pg_catalog.current_setting('tsql.row_limit', true), \
             pg_catalog.current_setting('tsql.reads_standby', true), \
             pg_catalog.current_setting('tsql.session_limit', true), \
             exists (select from pg_catalog.unnest(array[{}]::pg_catalog.regrole[]) as reserved (role) \
             where pg_catalog.pg_has_role(current_user, role, 'usage'))",
            role_named(gateway_role),
            reserved_for.join(", ")
        );
        let rows = connection.query_text(&sql).await?;
        let first = rows.first().map_or(&[][..], Vec::as_slice);
        let text = |index: usize| first.get(index).and_then(Option::as_deref);
        let number = |index| text(index).and_then(|most| most.parse::<u64>().ok()).filter(|most| *most > 0);
        let oid = text(3).and_then(|oid| oid.parse().ok());
        Ok(Role {
            schema: first.first().cloned().flatten().unwrap_or_default(),
            path: text(1).and_then(|path| serde_json::from_str(path).ok()).unwrap_or_default(),
            may_share: text(2) == Some("t") && oid.is_some(),
            oid: oid.unwrap_or_default(),
            most_rows: number(4),
            reads_standby: text(5) == Some("on"),
            most_sessions: number(6).and_then(|most| most.try_into().ok()),
            has_reserve: text(7) == Some("t"),
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
