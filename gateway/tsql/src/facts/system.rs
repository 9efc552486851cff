//! Names of system views, and of system procedures that return rows.

/// Views that are named without `sys.` before them.
const VIEWS: &[&str] = &[
    "syscolumns",
    "syscomments",
    "sysconstraints",
    "sysdatabases",
    "sysdepends",
    "sysforeignkeys",
    "sysindexes",
    "sysindexkeys",
    "syslogins",
    "sysobjects",
    "sysprocesses",
    "sysprotects",
    "sysreferences",
    "systypes",
    "sysusers",
];

/// Views that are the same in every database.
const OF_THE_SERVER: &[&str] = &[
    "configurations",
    "databases",
    "dm_exec_connections",
    "dm_exec_sessions",
    "server_principals",
    "sysdatabases",
    "syslogins",
    "sysprocesses",
];

/// Procedures that give the rows of one result and nothing else.
const GIVES_ROWS: &[&str] = &[
    "sp_column_privileges",
    "sp_columns",
    "sp_columns_100",
    "sp_databases",
    "sp_fkeys",
    "sp_helpindex",
    "sp_helptext",
    "sp_lock",
    "sp_pkeys",
    "sp_server_info",
    "sp_special_columns",
    "sp_special_columns_100",
    "sp_sproc_columns",
    "sp_sproc_columns_100",
    "sp_statistics",
    "sp_statistics_100",
    "sp_stored_procedures",
    "sp_table_privileges",
    "sp_tables",
    "sp_who",
];

/// Procedures that clients of TDS 5.0 have in another form.
const OF_SYBASE: &[&str] = &["sp_columns"];

pub fn is_view(name: &str) -> bool {
    VIEWS.binary_search(&name).is_ok()
}

pub fn is_of_the_server(view: &str) -> bool {
    OF_THE_SERVER.contains(&view)
}

/// The schema of the function that gives a procedure's rows; None for any other procedure.
pub fn rows_of(procedure: &str, sybase: bool) -> Option<&'static str> {
    GIVES_ROWS.binary_search(&procedure).ok()?;
    Some(if sybase && OF_SYBASE.contains(&procedure) { "sybsystemprocs" } else { "sys" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        assert!(VIEWS.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(GIVES_ROWS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
