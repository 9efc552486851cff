//! The schemas whose procedures every database has.

/// ringlog's own procedures.
pub const OWN: &str = "ringlog";

/// A session's own procedures, whose names begin with #.
pub const TEMPORARY: &str = "pg_temp";

/// System procedures: those for every client, and those with another form at TDS 5.0.
pub const SYSTEM: &str = "sys";
pub const OF_SYBASE: &str = "sybsystemprocs";
