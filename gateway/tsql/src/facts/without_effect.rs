//! Statements that are accepted without effect, and the message about that.

const BACKUPS: &str =
    "Nothing was written or read: the operator makes backups of all databases with `ringlog backup`, \
                       and restores them with `ringlog restore`.";
const STATISTICS: &str = "PostgreSQL keeps its statistics up to date. Nothing has changed.";

/// By their first words; the rest of each is skipped.
const STATEMENTS: &[(&[&str], &str)] = &[
    (&["backup", "database"], BACKUPS),
    (&["backup", "log"], BACKUPS),
    (&["checkpoint"], "PostgreSQL writes its checkpoints itself. Nothing has changed."),
    (&["dump", "database"], BACKUPS),
    (&["dump", "tran"], BACKUPS),
    (&["dump", "transaction"], BACKUPS),
    (&["load", "database"], BACKUPS),
    (&["load", "tran"], BACKUPS),
    (&["load", "transaction"], BACKUPS),
    (&["reconfigure"], "The operator sets the options of `ringlog serve`. Nothing has changed."),
    (
        &["set", "deadlock_priority"],
        "PostgreSQL ends the session that has found the deadlock. Nothing has changed.",
    ),
    (&["update", "all", "statistics"], STATISTICS),
    (&["update", "index", "statistics"], STATISTICS),
    (&["update", "statistics"], STATISTICS),
    (&["update", "table", "statistics"], STATISTICS),
];

/// The statements that begin with this word, in lower case: the words after it, and the message.
pub fn beginning_with(word: &str) -> impl Iterator<Item = (&'static [&'static str], &'static str)> + '_ {
    let of = STATEMENTS.iter().filter(move |(words, _)| words[0] == word);
    of.map(|(words, message)| (&words[1..], *message))
}
