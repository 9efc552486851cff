//! Names of system views.

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

pub fn is_view(name: &str) -> bool {
    VIEWS.binary_search(&name).is_ok()
}

pub fn is_of_the_server(view: &str) -> bool {
    OF_THE_SERVER.contains(&view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        assert!(VIEWS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
