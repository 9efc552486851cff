//! Options of ALTER DATABASE that hold here in any case, or that nothing here depends on: scripts that SQL
//! Server has generated set each of them (SQL Server: "ALTER DATABASE SET options").

const EITHER: &[&str] = &["off", "on"];
/// What a new database of SQL Server has. `on` would be the setting of clients that set none themselves.
const OFF: &[&str] = &["off"];
/// Any number, with a unit or without.
pub const NUMBER: &str = "0";

/// The options without effect, in alphabetical order, and the values with which they have none; none: it takes no value.
const WITHOUT_EFFECT: &[(&str, &[&str])] = &[
    ("accelerated_database_recovery", EITHER),
    ("allow_snapshot_isolation", EITHER),
    ("ansi_null_default", OFF),
    ("ansi_nulls", OFF),
    ("ansi_padding", OFF),
    ("ansi_warnings", OFF),
    ("arithabort", OFF),
    ("auto_close", EITHER),
    ("auto_create_statistics", EITHER),
    ("auto_shrink", EITHER),
    ("auto_update_statistics", EITHER),
    ("auto_update_statistics_async", EITHER),
    // what older levels do differently is not done here
    ("compatibility_level", &["100", "110", "120", "130", "140", "150", "160", "170"]),
    ("concat_null_yields_null", OFF),
    ("cursor_close_on_commit", OFF),
    ("cursor_default", &["global"]),
    ("date_correlation_optimization", EITHER),
    ("db_chaining", OFF),
    ("delayed_durability", &["disabled"]),
    ("disable_broker", &[]),
    ("encryption", OFF),
    ("honor_broker_priority", OFF),
    ("mixed_page_allocation", EITHER),
    ("multi_user", &[]),
    ("numeric_roundabort", OFF),
    ("online", &[]),
    ("page_verify", &["checksum", "none", "torn_page_detection"]),
    ("parameterization", &["forced", "simple"]),
    ("query_store", EITHER),
    ("quoted_identifier", OFF),
    ("read_committed_snapshot", EITHER),
    ("read_write", &[]),
    ("recovery", &["bulk_logged", "full", "simple"]),
    ("target_recovery_time", &[NUMBER]),
    ("torn_page_detection", EITHER),
    ("trustworthy", OFF),
    ("vardecimal_storage_format", EITHER),
];

/// The values with which an option has no effect; None: none is known.
pub fn values(option: &str) -> Option<&'static [&'static str]> {
    let place = WITHOUT_EFFECT.binary_search_by(|(known, _)| (*known).cmp(option)).ok()?;
    Some(WITHOUT_EFFECT[place].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_order() {
        assert!(WITHOUT_EFFECT.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(values("recovery"), Some(&["bulk_logged", "full", "simple"][..]));
        assert_eq!((values("read_only"), values("multi_user")), (None, Some(&[][..])));
    }
}
