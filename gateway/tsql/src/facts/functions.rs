//! T-SQL's functions: the equivalent of each in PostgreSQL, and which are refused. A new function is a new line here;
//! one with rules of its own has a `Rule`, implemented in `bind/functions/`.

use super::session::CLOCKS;
use super::types::{
    nvarchar, varchar, Type, BIGINT, CHAR, DATE, DATETIME, DATETIME2, DATETIMEOFFSET, FLOAT, GUID, INT,
    SMALLDATETIME, TIME, VARBINARY,
};

/// How a function is translated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `tsql.<function>(arguments)`: one letter for each argument: t text, i integer, l bigint, f float, b bytes; those
    /// after the first `least` are optional.
    Plain {
        function: &'static str,
        takes: &'static str,
        least: usize,
        gives: Type,
    },
    /// The result is a text no longer than the argument.
    SameLength,
    /// left and right
    Side,
    Substring,
    Str,
    Concat,
    DataLength,
    Replicate,
    /// len
    Length,
    /// The value keeps its kind of number.
    KeepsKind,
    Round,
    Power,
    Rand,
    IsNumeric,
    Now {
        clock: Clock,
        gives: Type,
    },
    DateAdd,
    DateDiff {
        gives: Type,
    },
    DatePart,
    DateName,
    /// A part of a date.
    Part,
    EndOfMonth,
    /// switchoffset, todatetimeoffset
    AtOffset,
    IsNull,
    Coalesce,
    NullIf,
    Iif,
    Choose,
    Count,
    Sum,
    /// min and max
    Extreme,
    /// An aggregate of PostgreSQL over floats.
    Spread(&'static str),
    StringAgg,
    /// row_number and similar functions without arguments
    Ranking,
    NTile,
    /// lag and lead
    Neighbour,
    /// grouping and grouping_id
    Grouping,
    /// A variable of the session.
    Session,
    /// A function of the catalogue, in schema sys.
    System,
    /// One whose result can be as large as any identity column's.
    SystemNumeric,
    HashBytes,
    Format,
    /// greatest and least
    OfAll,
    /// `concat_ws(separator, …)`
    ConcatWith,
    FormatMessage,
    /// datetime2fromparts, datetimeoffsetfromparts, timefromparts: their last argument is the number of decimals.
    FromParts(Type),
    DateTrunc,
    /// first_value and last_value
    Edge,
    /// percent_rank and cume_dist
    Share,
    /// Returns rows, in FROM.
    Rows,
    /// The same, of the catalogue in schema sys.
    SystemRows,
    /// `next value for`: its arguments are database, owner and name of a sequence.
    NextValue,
    NewId,
    VariantProperty,
    ServerProperty,
    JsonModify,
    /// textptr
    TextPointer,
    TextValid,
    /// A function that ringlog lacks, with the reason.
    Refused(&'static str),
}

pub const NONE_SUCH: &str = "ringlog has no such function";

const fn texts(function: &'static str, takes: &'static str, gives: Type) -> Rule {
    Rule::Plain { function, takes, least: takes.len(), gives }
}

const fn float(function: &'static str) -> Rule {
    Rule::Plain { function, takes: "f", least: 1, gives: FLOAT }
}

const ANY_TEXT: Type = varchar(None);
const ONE_CHAR: Type = Type { length: Some(1), ..CHAR };
const NO: Rule = Rule::Refused(NONE_SUCH);

/// In alphabetical order.
const FUNCTIONS: &[(&str, Rule)] = &[
    ("abs", Rule::KeepsKind),
    ("acos", float("acos")),
    ("app_lock_mode", NO),
    ("app_name", Rule::Session),
    ("ascii", texts("ascii", "t", INT)),
    ("asin", float("asin")),
    ("atan", float("atan")),
    ("atan2", Rule::Plain { function: "atan2", takes: "ff", least: 2, gives: FLOAT }),
    ("atn2", Rule::Plain { function: "atan2", takes: "ff", least: 2, gives: FLOAT }),
    ("avg", Rule::Sum),
    ("biginttohex", texts("biginttohex", "l", varchar(Some(16)))),
    ("binary_checksum", NO),
    ("bintostr", texts("bintostr", "b", ANY_TEXT)),
    ("ceiling", Rule::KeepsKind),
    ("certencoded", NO),
    ("char", texts("char", "i", ONE_CHAR)),
    ("char_length", texts("char_length", "t", INT)),
    ("character_length", texts("char_length", "t", INT)),
    ("charindex", Rule::Plain { function: "charindex", takes: "tti", least: 2, gives: INT }),
    ("checksum", NO),
    ("checksum_agg", NO),
    ("choose", Rule::Choose),
    ("coalesce", Rule::Coalesce),
    ("col_length", Rule::System),
    ("col_name", Rule::System),
    ("collationproperty", Rule::System),
    ("columnproperty", Rule::System),
    ("columns_updated", NO),
    ("compress", NO),
    ("concat", Rule::Concat),
    ("concat_ws", Rule::ConcatWith),
    ("connectionproperty", NO),
    ("context_info", Rule::Session),
    ("cos", float("cos")),
    ("cot", float("cot")),
    ("count", Rule::Count),
    ("count_big", Rule::Count),
    ("cume_dist", Rule::Share),
    ("current_bigdatetime", Rule::Now { clock: SYSTEM_TIME, gives: DATETIME2 }),
    ("current_bigtime", Rule::Now { clock: SYSTEM_TIME.of("time"), gives: TIME }),
    ("current_date", Rule::Now { clock: DATE_TIME.of("date"), gives: DATE }),
    ("current_request_id", NO),
    ("current_time", Rule::Now { clock: DATE_TIME.of("time"), gives: TIME }),
    ("current_timestamp", Rule::Now { clock: DATE_TIME, gives: DATETIME }),
    ("current_user", Rule::Session),
    ("cursor_status", NO),
    ("curunreservedpgs", NO),
    ("data_pgs", NO),
    ("databaseproperty", NO),
    ("databasepropertyex", Rule::System),
    ("datalength", Rule::DataLength),
    ("date_bucket", NO),
    ("dateadd", Rule::DateAdd),
    ("datediff", Rule::DateDiff { gives: INT }),
    ("datediff_big", Rule::DateDiff { gives: BIGINT }),
    ("datefromparts", texts("datefromparts", "iii", DATE)),
    ("datename", Rule::DateName),
    ("datepart", Rule::DatePart),
    ("datetime2fromparts", Rule::FromParts(DATETIME2)),
    ("datetimefromparts", texts("datetimefromparts", "iiiiiii", DATETIME)),
    ("datetimeoffsetfromparts", Rule::FromParts(DATETIMEOFFSET)),
    ("datetrunc", Rule::DateTrunc),
    ("day", Rule::Part),
    ("db_id", Rule::System),
    ("db_name", Rule::Session),
    ("decompress", NO),
    ("degrees", Rule::KeepsKind),
    ("dense_rank", Rule::Ranking),
    ("difference", texts("difference", "tt", INT)),
    ("eomonth", Rule::EndOfMonth),
    ("error_line", Rule::Session),
    ("error_message", Rule::Session),
    ("error_number", Rule::Session),
    ("error_procedure", Rule::Session),
    ("error_procedure_name", NO),
    ("error_severity", Rule::Session),
    ("error_state", Rule::Session),
    ("exp", float("exp")),
    ("exp_len", NO),
    ("filegroup_name", NO),
    ("first_value", Rule::Edge),
    ("floor", Rule::KeepsKind),
    ("fn_listextendedproperty", Rule::SystemRows),
    ("fn_my_permissions", Rule::SystemRows),
    ("format", Rule::Format),
    ("formatmessage", Rule::FormatMessage),
    ("fulltextserviceproperty", NO),
    ("getansinull", NO),
    ("getdate", Rule::Now { clock: DATE_TIME, gives: DATETIME }),
    ("getutcdate", Rule::Now { clock: UTC_DATE_TIME, gives: DATETIME }),
    ("greatest", Rule::OfAll),
    ("grouping", Rule::Grouping),
    ("grouping_id", Rule::Grouping),
    ("has_dbaccess", Rule::System),
    ("has_perms_by_name", Rule::System),
    ("hashbytes", Rule::HashBytes),
    ("hextobigint", texts("hextobigint", "t", BIGINT)),
    ("hextoint", texts("hextoint", "t", INT)),
    ("host_id", NO),
    ("host_name", Rule::Session),
    ("ident_current", Rule::SystemNumeric),
    ("ident_incr", Rule::SystemNumeric),
    ("ident_seed", Rule::SystemNumeric),
    ("identity", Rule::Refused("it is only valid in the list of a select into")),
    ("identity_incr", NO),
    ("identity_seed", NO),
    ("iif", Rule::Iif),
    ("index_col", Rule::System),
    ("indexproperty", Rule::System),
    ("inttohex", texts("inttohex", "i", varchar(Some(8)))),
    ("is_member", Rule::System),
    ("is_srvrolemember", Rule::System),
    ("isdate", texts("isdate", "t", INT)),
    ("isjson", texts("isjson", "t", INT)),
    ("isnull", Rule::IsNull),
    ("isnumeric", Rule::IsNumeric),
    ("json_modify", Rule::JsonModify),
    ("json_query", Rule::Plain { function: "json_query", takes: "tt", least: 1, gives: nvarchar(None) }),
    ("json_value", texts("json_value", "tt", nvarchar(Some(4000)))),
    ("lag", Rule::Neighbour),
    ("last_value", Rule::Edge),
    ("lct_admin", NO),
    ("lead", Rule::Neighbour),
    ("least", Rule::OfAll),
    ("left", Rule::Side),
    ("len", Rule::Length),
    ("license_enabled", NO),
    ("log", Rule::Plain { function: "log", takes: "ff", least: 1, gives: FLOAT }),
    ("log10", float("log10")),
    ("lower", Rule::SameLength),
    ("ltrim", Rule::SameLength),
    ("max", Rule::Extreme),
    ("min", Rule::Extreme),
    ("month", Rule::Part),
    ("nchar", texts("nchar", "i", ONE_CHAR.twin())),
    ("newid", Rule::NewId),
    ("next value for", Rule::NextValue),
    ("ntile", Rule::NTile),
    ("nullif", Rule::NullIf),
    ("nvl", NO),
    ("object_definition", Rule::System),
    ("object_id", Rule::System),
    ("object_name", Rule::System),
    ("object_schema_name", Rule::System),
    ("objectproperty", Rule::System),
    ("objectpropertyex", Rule::System),
    ("openjson", Rule::Rows),
    ("openquery", NO),
    ("openrowset", NO),
    ("original_login", Rule::Session),
    ("parse", NO),
    ("parsename", Rule::System),
    ("patindex", texts("patindex", "tt", INT)),
    ("percent_rank", Rule::Share),
    ("percentile_cont", NO),
    ("percentile_disc", NO),
    ("pi", texts("pi", "", FLOAT)),
    ("power", Rule::Power),
    ("proc_role", NO),
    ("quotename", Rule::Plain { function: "quotename", takes: "tt", least: 1, gives: nvarchar(Some(258)) }),
    ("radians", Rule::KeepsKind),
    ("rand", Rule::Rand),
    ("rank", Rule::Ranking),
    ("replace", texts("replace", "ttt", ANY_TEXT)),
    ("replicate", Rule::Replicate),
    ("reserved_pgs", NO),
    ("reverse", Rule::SameLength),
    ("right", Rule::Side),
    ("round", Rule::Round),
    ("row_number", Rule::Ranking),
    ("rowcnt", NO),
    ("rtrim", Rule::SameLength),
    ("schema_id", Rule::System),
    ("schema_name", Rule::System),
    ("scope_identity", Rule::Session),
    ("serverproperty", Rule::ServerProperty),
    ("session_context", NO),
    ("session_user", Rule::Session),
    ("sessionproperty", NO),
    ("show_role", NO),
    ("sign", Rule::KeepsKind),
    ("sin", float("sin")),
    ("smalldatetimefromparts", texts("smalldatetimefromparts", "iiiii", SMALLDATETIME)),
    ("sortkey", NO),
    ("soundex", texts("soundex", "t", varchar(Some(4)))),
    ("space", texts("space", "i", ANY_TEXT)),
    ("sql_variant_property", Rule::VariantProperty),
    ("sqrt", float("sqrt")),
    ("square", float("square")),
    ("stats_date", NO),
    ("stddev", Rule::Spread("stddev_samp")),
    ("stddev_pop", Rule::Spread("stddev_pop")),
    ("stdev", Rule::Spread("stddev_samp")),
    ("stdevp", Rule::Spread("stddev_pop")),
    ("str", Rule::Str),
    ("str_replace", texts("str_replace", "ttt", ANY_TEXT)),
    ("string_agg", Rule::StringAgg),
    ("string_escape", NO),
    ("string_split", Rule::Rows),
    ("strtobin", texts("strtobin", "t", VARBINARY)),
    ("stuff", texts("stuff", "tiit", ANY_TEXT)),
    ("substring", Rule::Substring),
    ("sum", Rule::Sum),
    ("suser_id", Rule::System),
    ("suser_name", Rule::Session),
    ("suser_sname", Rule::Session),
    ("switchoffset", Rule::AtOffset),
    ("sysdatetime", Rule::Now { clock: SYSTEM_TIME, gives: DATETIME2 }),
    ("sysdatetimeoffset", Rule::Now { clock: OFFSET_TIME, gives: DATETIMEOFFSET }),
    ("system_user", Rule::Session),
    ("sysutcdatetime", Rule::Now { clock: UTC_SYSTEM_TIME, gives: DATETIME2 }),
    ("tan", float("tan")),
    ("textptr", Rule::TextPointer),
    ("textvalid", Rule::TextValid),
    ("timefromparts", Rule::FromParts(TIME)),
    ("to_unichar", texts("nchar", "i", nvarchar(Some(1)))),
    ("todatetimeoffset", Rule::AtOffset),
    ("translate", texts("translate", "ttt", ANY_TEXT)),
    ("trigger_nestlevel", NO),
    ("trim", Rule::SameLength),
    ("tsequal", NO),
    ("type_id", Rule::System),
    ("type_name", Rule::System),
    ("typeproperty", Rule::System),
    ("uhighsurr", texts("uhighsurr", "ti", INT)),
    ("ulowsurr", texts("ulowsurr", "ti", INT)),
    ("unicode", texts("unicode", "t", INT)),
    ("upper", Rule::SameLength),
    ("uscalar", texts("uscalar", "t", INT)),
    ("used_pgs", NO),
    ("user", Rule::Session),
    ("user_id", Rule::System),
    ("user_name", Rule::Session),
    ("valid_name", NO),
    ("valid_user", NO),
    ("var", Rule::Spread("var_samp")),
    ("varp", Rule::Spread("var_pop")),
    ("xact_state", Rule::Session),
    ("xmlextract", NO),
    ("xmlparse", NO),
    ("year", Rule::Part),
];

/// The translation of a function; None for a site's or PostgreSQL's function. `name` is in lower case.
pub fn rule(name: &str) -> Option<Rule> {
    FUNCTIONS.binary_search_by(|(known, _)| (*known).cmp(name)).ok().map(|index| FUNCTIONS[index].1)
}

/// The names of all functions that are translated.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().filter(|(_, rule)| !matches!(rule, Rule::Refused(_))).map(|(name, _)| *name)
}

impl Rule {
    pub fn is_aggregate(self) -> bool {
        matches!(self, Rule::Count | Rule::Sum | Rule::Extreme | Rule::Spread(_) | Rule::StringAgg)
    }

    /// Whether it depends on the time or the session's state.
    pub fn varies(self) -> bool {
        matches!(self, Rule::Now { .. } | Rule::Rand | Rule::NewId | Rule::TextPointer | Rule::TextValid)
    }

    /// Whether it requires OVER.
    pub fn is_ranking(self) -> bool {
        matches!(self, Rule::Ranking | Rule::NTile | Rule::Neighbour | Rule::Edge | Rule::Share)
    }
}

/// A function of the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The function of schema tsql.
    pub function: &'static str,
    /// The type of the part of the time.
    pub part: Option<&'static str>,
    /// The variable with the same time; None: there is none.
    pub variable: Option<&'static str>,
    /// The variable's time is rounded to a datetime.
    pub rounds: bool,
}

const DATE_TIME: Clock = Clock { function: "getdate", part: None, variable: Some(CLOCKS[0]), rounds: true };
const UTC_DATE_TIME: Clock = Clock { function: "getutcdate", variable: Some(CLOCKS[1]), ..DATE_TIME };
const SYSTEM_TIME: Clock = Clock { function: "sysdatetime", rounds: false, ..DATE_TIME };
const UTC_SYSTEM_TIME: Clock = Clock { function: "sysutcdatetime", rounds: false, ..UTC_DATE_TIME };
const OFFSET_TIME: Clock = Clock { function: "sysdatetimeoffset", variable: None, ..SYSTEM_TIME };

impl Clock {
    const fn of(self, part: &'static str) -> Clock {
        Clock { part: Some(part), ..self }
    }
}

/// Parts that only a datetimeoffset has.
pub const TZOFFSET: &str = "tzoffset";

/// The parts of a date, with T-SQL's and ASE's names of each.
const DATE_PARTS: &[(&[&str], &str)] = &[
    (&["year", "yy", "yyyy"], "year"),
    (&["quarter", "qq", "q"], "quarter"),
    (&["month", "mm", "m"], "month"),
    (&["dayofyear", "dy", "y"], "dayofyear"),
    (&["day", "dd", "d"], "day"),
    (&["week", "wk", "ww"], "week"),
    (&["weekday", "dw", "w"], "weekday"),
    (&["hour", "hh"], "hour"),
    (&["minute", "mi", "n"], "minute"),
    (&["second", "ss", "s"], "second"),
    (&["millisecond", "ms"], "millisecond"),
    (&["microsecond", "mcs", "us"], "microsecond"),
    (&["nanosecond", "ns"], "nanosecond"),
    (&["iso_week", "isowk", "isoww", "calweekofyear", "cwk"], "iso_week"),
    (&["calyearofweek", "cyr"], "iso_year"),
    (&["caldayofweek", "cdw"], "iso_weekday"),
    (&["tzoffset", "tz"], TZOFFSET),
];

/// The part of a date with this name, as the functions of schema tsql call it.
pub fn date_part(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    DATE_PARTS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, part)| *part)
}

/// Styles of CONVERT between times and texts (SQL Server, "CAST and CONVERT").
pub fn is_style(style: i64) -> bool {
    matches!(style, 0..=14 | 20..=23 | 25 | 100..=114 | 120 | 121 | 126 | 127)
}

/// Styles with different meanings in SQL Server and ASE, and those that only ASE has.
pub fn is_disputed_style(style: i64) -> bool {
    matches!(style, 13..=23 | 25 | 36..=40 | 113..=118 | 120 | 121 | 126 | 127 | 136..=140)
}

pub const HASH_RESULT: Type = Type { length: Some(8000), ..VARBINARY };
pub const NEW_ID: Type = GUID;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        for pair in FUNCTIONS.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{}", pair[1].0);
        }
    }

    #[test]
    fn functions_of_the_session_have_their_variables() {
        for (name, rule) in FUNCTIONS.iter().filter(|(_, rule)| *rule == Rule::Session) {
            let meant = super::super::session::niladic(name).unwrap_or(name);
            assert!(super::super::session::function(meant).is_some(), "{name} {rule:?}");
        }
    }
}
