//! The schemas whose procedures every database has.

/// ringlog's own procedures.
pub const OWN: &str = "ringlog";

/// A session's own procedures, whose names begin with #.
pub const TEMPORARY: &str = "pg_temp";

/// System procedures: those for every client, and those that TDS 5.0 has in another form.
pub const SYSTEM: &str = "sys";
pub const OF_SYBASE: &str = "sybsystemprocs";
