//! Errors: the T-SQL numbers of PostgreSQL's errors, and what an error ends.
//!
//! After most errors T-SQL continues with the next statement. Errors of compiling a statement end the enclosing batch
//! or procedure; a value that cannot be converted and a deadlock end everything and roll back the transaction (SQL
//! Server: "Database Engine error severities" and TRY...CATCH, "Errors unaffected by a TRY...CATCH construct"; ASE: set
//! arithabort arith_overflow).
//!
//! Compiled procedures need the same facts in PostgreSQL: `sql` writes functions of schema tsql that return them.

use super::message_forms::{FORMS, FUNCTION};
use super::variants;

/// The unit that an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Statement,
    /// Its batch or text. A CATCH of the same text does not handle it.
    Text,
    /// Also every enclosing text, if uncaught.
    Batch,
    /// The same, with a rollback of the transaction.
    Transaction,
}

/// SQLSTATEs of PostgreSQL, the number and severity that legacy code tests for, and the unit that they end.
const OF_POSTGRESQL: &[(&[&str], i32, u8, Ends)] = &[
    (&["21000"], 512, 16, Ends::Statement),
    (&["22001"], 8152, 16, Ends::Statement),
    (&["22003", "2200H"], 8115, 16, Ends::Statement),
    (&["22012"], 8134, 16, Ends::Statement),
    (&["22007", "22008", "22023", "22P02", "22P03"], 8114, 16, Ends::Transaction),
    (&["23502"], 515, 16, Ends::Statement),
    (&["23503", "23514", "23P01"], 547, 16, Ends::Statement),
    (&["23505"], 2601, 14, Ends::Statement),
    (&["25006"], 3906, 16, Ends::Statement),
    (&["28000", "28P01"], 18456, 14, Ends::Statement),
    // a cursor closed by a rollback
    (&["34000"], 16917, 16, Ends::Statement),
    (&["3D000", "3F000"], 911, 16, Ends::Text),
    (&["40001", "40P01"], 1205, 13, Ends::Transaction),
    (&["42501"], 229, 14, Ends::Statement),
    // a value for an identity column
    (&["428C9"], 544, 16, Ends::Statement),
    // a cursor that is already open
    (&["42P03"], 16905, 16, Ends::Statement),
    (&["42601"], 102, 15, Ends::Text),
    (&["42702"], 209, 16, Ends::Text),
    (&["42703"], 207, 16, Ends::Text),
    (&["42710", "42723", "42P07"], 2714, 16, Ends::Statement),
    (&["42803"], 8120, 16, Ends::Text),
    (&["42804", "42846"], 257, 16, Ends::Text),
    (&["42883"], 2812, 16, Ends::Text),
    (&["42P01"], 208, 16, Ends::Text),
    // WITH CHECK OPTION of a view
    (&["44000"], 550, 16, Ends::Statement),
    (&["53200"], 701, 17, Ends::Batch),
    (&["53100"], 1105, 17, Ends::Statement),
    (&["53300"], 17809, 20, Ends::Statement),
    (&["54001"], 217, 16, Ends::Batch),
    (&["55P03"], 1222, 16, Ends::Statement),
    // a client recognizes a cancelled statement by the DONE token; the number is SQL Server's
    (&["57014"], 3617, 11, Ends::Batch),
    // SHUTDOWN is in progress
    (&["57P01"], 6005, 16, Ends::Batch),
];

/// Numbers of T-SQL itself that end more than a statement: first and last of a range.
const OF_TSQL: &[(i32, i32, Ends)] = &[
    // syntax and names
    (100, 199, Ends::Text),
    (206, 209, Ends::Text),
    (213, 213, Ends::Text),
    (217, 217, Ends::Batch),
    // values that cannot be converted
    (241, 241, Ends::Transaction),
    (244, 245, Ends::Transaction),
    (248, 248, Ends::Transaction),
    (257, 257, Ends::Text),
    (260, 260, Ends::Text),
    (295, 295, Ends::Transaction),
    // insufficient memory
    (701, 701, Ends::Batch),
    // no such database
    (911, 911, Ends::Text),
    // the numbers of rows of TOP
    (1014, 1014, Ends::Text),
    (1031, 1031, Ends::Text),
    (1205, 1205, Ends::Transaction),
    (2715, 2716, Ends::Text),
    (3609, 3609, Ends::Transaction),
    // the same for an error in a trigger
    (3616, 3616, Ends::Transaction),
    (3930, 3930, Ends::Batch),
    (4104, 4108, Ends::Text),
    (8114, 8114, Ends::Transaction),
    (8116, 8117, Ends::Text),
    (8120, 8127, Ends::Text),
    // a text that is not a uniqueidentifier
    (8169, 8169, Ends::Transaction),
    // the compiler
    (8623, 8624, Ends::Text),
];

/// ASE's arithmetic errors: an overflow, a division by zero, an argument outside a function's domain. They roll back
/// the transaction and end the batch, since arithabort arith_overflow is on (Reference Manual: Building Blocks,
/// "Arithmetic errors"; Reference Manual: Commands, "set").
const ARITHMETIC: [i32; 5] = [220, 247, 3623, 8115, 8134];

/// The number of errors without one in T-SQL: numbers from 50000 on are an application's.
const NO_NUMBER: (i32, u8) = (50000, 16);

fn known(sqlstate: &str) -> Option<&'static (&'static [&'static str], i32, u8, Ends)> {
    OF_POSTGRESQL.iter().find(|(states, ..)| states.contains(&sqlstate))
}

/// Functions of T-SQL raise errors with their numbers: SQLSTATE S0245 is 245.
pub fn own_number(sqlstate: &str) -> Option<i32> {
    sqlstate.strip_prefix('S').filter(|digits| digits.len() == 4)?.parse().ok()
}

/// Check constraints of the domains of T-SQL's types, and the error numbers of a value outside the range. Only ASE has
/// unsigned types ("Error messages", 247).
const RANGES: [(&str, i32); 6] = [
    ("money_range", 8115),
    ("smallmoney_range", 8115),
    ("tinyint_range", 220),
    ("usmallint_range", 247),
    ("uint_range", 247),
    ("ubigint_range", 247),
];

/// A duplicate row, by a primary key or a UNIQUE constraint: SQL Server's (Database Engine events and errors, 2627 and
/// 2601). ASE has one number for these and for unique indexes, whose names here begin with their table's.
pub const DUPLICATE: &str = "23505";
pub const DUPLICATE_OF_CONSTRAINT: (i32, u8) = (2627, 14);
const DUPLICATE_OF_ANY: i32 = 2601;

/// ASE's numbers for errors of SQL Server: a duplicate key, and an object that sp_help and similar procedures do not
/// find, or not in this database.
const OF_ASE: [(i32, i32); 5] = [
    (SCALE, 241),
    (1779, 8110),
    (DUPLICATE_OF_CONSTRAINT.0, DUPLICATE_OF_ANY),
    (15009, 17461),
    (15250, 17460),
];

/// A decimal that would lose decimals. It ends its statement; SQL Server's 241 ends more.
pub const SCALE: i32 = 251;

/// Precedes the arguments of a function that T-SQL names with its owner, or in FROM: it is not built in, which
/// PostgreSQL's error does not show.
pub const OWNED: &str = " ";
pub const OF_ROWS: &str = "  ";

/// The SQLSTATE of a missing function.
pub const NO_FUNCTION: &str = "42883";

/// The number of such an error, from the function's name in `statement`; None: it may be a built-in one.
pub fn of_function(text: &str, statement: &str) -> Option<i32> {
    let name = text.strip_prefix(FUNCTION)?.split('(').next()?.rsplit('.').next()?;
    let is_named = |mark: &str| statement.contains(&format!("\"{name}\"{mark}("));
    match () {
        () if is_named(OF_ROWS) => Some(208),
        () if is_named(OWNED) => Some(4121),
        () => None,
    }
}

/// T-SQL's text for an error of PostgreSQL; None: PostgreSQL's own text.
pub fn words(sqlstate: &str, text: &str) -> Option<String> {
    FORMS.iter().find_map(|form| {
        let (words, name) = (form.words?, form.name(sqlstate, text)?);
        Some(match words.contains('^') {
            true => words.replace('^', name.rsplit('.').next().unwrap_or(name).trim_matches('"')),
            false => words.replace('%', name),
        })
    })
}

/// The error of a function of schema tsql for a sql_variant argument that it refuses.
pub fn of_variant(sqlstate: &str, text: &str) -> Option<(i32, String)> {
    let call = text.strip_prefix("function tsql.").filter(|_| sqlstate == "42883")?;
    let (name, arguments) = call.split_once('(')?;
    let (arguments, _) = arguments.split_once(") does not exist")?;
    let index = arguments.split(", ").position(|of| of == "tsql.sql_variant")?;
    variants::refusal(name, index)
}

/// The number and the severity of a PostgreSQL error, from its SQLSTATE and text, and the constraint and its table if
/// it has one.
pub fn number(sqlstate: &str, text: &str, table: &str, constraint: &str) -> (i32, u8) {
    if let Some(number) =
        FORMS.iter().find_map(|form| form.number.filter(|_| form.name(sqlstate, text).is_some()))
    {
        return (number, 16);
    }
    if let Some((_, number)) = RANGES.iter().find(|(name, _)| *name == constraint) {
        return (*number, 16);
    }
    let is_index = constraint.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
    if sqlstate == DUPLICATE && !constraint.is_empty() && !is_index {
        return DUPLICATE_OF_CONSTRAINT;
    }
    known(sqlstate).map_or(NO_NUMBER, |(_, number, severity, _)| (*number, *severity))
}

/// ASE's number for an error.
pub fn in_ase(number: i32) -> i32 {
    OF_ASE.iter().find(|(known, _)| *known == number).map_or(number, |(_, own)| *own)
}

/// The unit that an error with this T-SQL number ends.
pub fn ends(number: i32) -> Ends {
    let found = OF_TSQL.iter().find(|(first, last, _)| (*first..=*last).contains(&number));
    found.map_or(Ends::Statement, |(.., ends)| *ends)
}

/// Whether an error is about names of columns or keys of groups, which SQL Server finds before a text runs.
pub fn is_of_names(number: i32) -> bool {
    matches!(number, 207 | 209 | 213 | 4104 | 8118..=8127)
}

/// Whether an error ends the transaction in ASE, but only its statement in SQL Server.
pub fn is_arithmetic(number: i32) -> bool {
    ARITHMETIC.contains(&number)
}

/// The unit that a PostgreSQL error ends. Errors of class 42 are about names and syntax.
pub fn sqlstate_ends(sqlstate: &str) -> Ends {
    match known(sqlstate) {
        Some((.., ends)) => *ends,
        None if sqlstate.starts_with("42") => Ends::Text,
        None => Ends::Statement,
    }
}

/// The same facts as SQL, for errors that a procedure has caught (sql/errors/errors.sql).
pub fn tables() -> Vec<(&'static str, String)> {
    let quoted = |states: &[&str]| {
        let states: Vec<String> = states.iter().map(|state| format!("'{state}'")).collect();
        states.join(", ")
    };
    let numbers: String = OF_POSTGRESQL
        .iter()
        .map(|(states, number, ..)| format!("    when sqlstate in ({}) then {number}\n", quoted(states)))
        .collect();
    let severities: String = OF_POSTGRESQL
        .iter()
        .filter(|(_, _, severity, _)| *severity != NO_NUMBER.1)
        .map(|(_, number, severity, _)| (*number, *severity))
        .chain([DUPLICATE_OF_CONSTRAINT])
        .map(|(number, severity)| format!("    when {number} then {severity}\n"))
        .collect();
    let states_that = |end_a_statement: bool| {
        let those = OF_POSTGRESQL.iter().filter(|(.., ends)| (*ends == Ends::Statement) == end_a_statement);
        quoted(&those.flat_map(|(states, ..)| states.iter().copied()).collect::<Vec<_>>())
    };
    let ranges_of_domains: String = RANGES
        .iter()
        .map(|(name, number)| format!("      when constraint_ = '{name}' then 'S{number:04}'\n"))
        .collect();
    let ranges_that = |which: fn(Ends) -> bool| {
        let those = OF_TSQL.iter().filter(|(.., ends)| which(*ends));
        let ranges: Vec<String> = those.map(|(first, last, _)| format!("[{first},{last}]")).collect();
        format!("number <@ '{{{}}}'::int4multirange", ranges.join(","))
    };
    let in_ase: String =
        OF_ASE.iter().map(|(number, own)| format!("    when {number} then {own}\n")).collect();
    let dooming = |ends: Ends| ends == Ends::Transaction;
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let or_null = |text: Option<String>| text.map_or_else(|| String::from("null"), |text| literal(&text));
    let forms: Vec<String> = FORMS
        .iter()
        .map(|form| {
            let texts = [form.sqlstate, form.before, form.after].map(literal).join(", ");
            let own = form.number.map(|number| format!("S{number:04}"));
            format!("  ({texts}, {}, {})", or_null(own), or_null(form.words.map(String::from)))
        })
        .collect();
    vec![
        ("forms", forms.join(",\n")),
        ("function", FUNCTION.into()),
        ("numbers", numbers),
        ("range_states", ranges_of_domains),
        ("in_ase", in_ase),
        ("duplicate", DUPLICATE.into()),
        ("of_constraint", DUPLICATE_OF_CONSTRAINT.0.to_string()),
        ("severities", severities),
        ("no_number", NO_NUMBER.0.to_string()),
        ("severity", NO_NUMBER.1.to_string()),
        ("ranges", ranges_that(|_| true)),
        ("dooming", ranges_that(dooming)),
        ("arithmetic", ARITHMETIC.map(|number| number.to_string()).join(", ")),
        ("only", states_that(true)),
        ("more", states_that(false)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_ends() {
        for (sqlstate, expected) in [
            ("23505", Ends::Statement),
            ("42501", Ends::Statement),
            ("42P01", Ends::Text),
            ("42999", Ends::Text),
            ("22P02", Ends::Transaction),
            ("40P01", Ends::Transaction),
            ("XX000", Ends::Statement),
        ] {
            assert_eq!(sqlstate_ends(sqlstate), expected, "{sqlstate}");
        }
        assert_eq!((ends(245), ends(512), ends(102)), (Ends::Transaction, Ends::Statement, Ends::Text));
        let of = |sqlstate: &str, table: &str, constraint: &str| number(sqlstate, "", table, constraint);
        assert_eq!((of("23505", "", ""), of("XX000", "", "")), ((2601, 14), (50000, 16)));
        assert_eq!((of("23505", "t", "t_pkey"), of("23505", "t", "t.i")), ((2627, 14), (2601, 14)));
        assert_eq!((of("23514", "t", "ck"), of("23514", "", "tinyint_range")), ((547, 16), (220, 16)));
        let said = |sqlstate: &str, text: &str| number(sqlstate, text, "", "").0;
        assert_eq!(
            (
                said("21000", "more than one row"),
                said("21000", "MERGE command cannot affect row a second time")
            ),
            (512, 8672)
        );
        assert_eq!(
            (
                said("42883", "operator does not exist: x"),
                said("42883", "function f() does"),
                said("42883", "function s.f() does")
            ),
            (402, 195, 2812)
        );
        assert_eq!(said("22003", "put_t: level = NaN is no number"), 8023);
        let in_tsql = |sqlstate: &str, text: &str| words(sqlstate, text).unwrap_or_default();
        let truncated = "value too long for type character varying(3)";
        assert_eq!(in_tsql("22001", truncated), "String or binary data would be truncated.");
        assert_eq!(in_tsql("42P01", "relation \"a.t\" does not exist"), "Invalid object name 'a.t'.");
        assert_eq!(in_tsql("42703", "column t.\"C\" does not exist"), "Invalid column name 'C'.");
        assert_eq!(
            in_tsql("42703", "column \"c\" of relation \"t\" does not exist"),
            "Invalid column name 'c'."
        );
        assert_eq!(
            of_variant("42883", "function tsql.len(tsql.sql_variant) does not exist").map(|one| one.0),
            Some(8116)
        );
        let missing = |statement: &str| {
            of_function("function s.f(integer) does not exist", statement).unwrap_or_default()
        };
        assert_eq!(missing("select \"s\".\"f\" (1)"), 4121);
        assert_eq!((missing("select * from \"f\"  (1)"), missing("select \"f\"(1)")), (208, 0));
        assert_eq!((in_ase(2627), in_ase(15009), in_ase(547)), (2601, 17461, 547));
        assert_eq!((words("42703", "no column"), words("P0001", "division by zero")), (None, None));
        assert_eq!((own_number("S0245"), own_number("23505")), (Some(245), None));
    }
}
