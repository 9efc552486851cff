//! Errors: the T-SQL numbers of PostgreSQL's errors, and what an error ends.
//!
//! After most errors T-SQL continues with the next statement. Errors of compiling a statement end the enclosing batch
//! or procedure; a value that cannot be converted and a deadlock end everything and roll back the transaction (SQL
//! Server: "Database Engine error severities" and TRY...CATCH, "Errors unaffected by a TRY...CATCH construct"; ASE:
//! set arithabort arith_overflow).
//!
//! Compiled procedures need the same facts in PostgreSQL: `sql` writes functions of schema tsql that return them.

/// What an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Statement,
    /// The batch or the text it stands in. A CATCH of the same text does not see it.
    Text,
    /// Every text around it too, when nothing catches it.
    Batch,
    /// The same, and the transaction is undone.
    Transaction,
}

/// SQLSTATEs of PostgreSQL, the number and severity legacy code knows them by, and what they end.
const OF_POSTGRESQL: &[(&[&str], i32, u8, Ends)] = &[
    (&["21000"], 512, 16, Ends::Statement),
    (&["22001"], 8152, 16, Ends::Statement),
    (&["22003"], 8115, 16, Ends::Statement),
    (&["22012"], 8134, 16, Ends::Statement),
    (&["22007", "22008", "22023", "22P02", "22P03"], 8114, 16, Ends::Transaction),
    (&["23502"], 515, 16, Ends::Statement),
    (&["23503", "23514", "23P01"], 547, 16, Ends::Statement),
    (&["23505"], 2601, 14, Ends::Statement),
    (&["25006"], 3906, 16, Ends::Statement),
    (&["28000", "28P01"], 18456, 14, Ends::Statement),
    (&["34000"], 16916, 16, Ends::Statement),
    (&["3D000", "3F000"], 911, 16, Ends::Text),
    (&["40001", "40P01"], 1205, 13, Ends::Transaction),
    (&["42501"], 229, 14, Ends::Statement),
    // a value for an identity column
    (&["428C9"], 544, 16, Ends::Statement),
    // a cursor that is open
    (&["42P03"], 16905, 16, Ends::Statement),
    (&["42601"], 102, 15, Ends::Text),
    (&["42702"], 209, 16, Ends::Text),
    (&["42703"], 207, 16, Ends::Text),
    (&["42710", "42723", "42P07"], 2714, 16, Ends::Statement),
    (&["42803"], 8120, 16, Ends::Text),
    (&["42804", "42846"], 257, 16, Ends::Text),
    (&["42883"], 2812, 16, Ends::Text),
    (&["42P01"], 208, 16, Ends::Text),
    (&["53100"], 1105, 17, Ends::Statement),
    (&["53300"], 17809, 20, Ends::Statement),
    (&["55P03"], 1222, 16, Ends::Statement),
    // a client sees a cancelled statement by the DONE token; the number is SQL Server's
    (&["57014"], 3617, 11, Ends::Batch),
    // SHUTDOWN is in progress
    (&["57P01"], 6005, 16, Ends::Batch),
];

/// T-SQL's own numbers that end more than a statement: first and last of a range.
const OF_TSQL: &[(i32, i32, Ends)] = &[
    // syntax and names
    (100, 199, Ends::Text),
    (206, 209, Ends::Text),
    (213, 213, Ends::Text),
    (217, 217, Ends::Batch),
    // values that cannot be converted
    (241, 242, Ends::Transaction),
    (244, 245, Ends::Transaction),
    (248, 248, Ends::Transaction),
    (257, 257, Ends::Text),
    (260, 260, Ends::Text),
    // no such database
    (911, 911, Ends::Text),
    (1205, 1205, Ends::Transaction),
    (2715, 2715, Ends::Text),
    (3609, 3609, Ends::Transaction),
    (3930, 3930, Ends::Batch),
    (8114, 8114, Ends::Transaction),
    (8120, 8120, Ends::Text),
    // the compiler
    (8623, 8623, Ends::Text),
];

/// What has no number of its own: numbers from 50000 on are an application's.
const NO_NUMBER: (i32, u8) = (50000, 16);

fn known(sqlstate: &str) -> Option<&'static (&'static [&'static str], i32, u8, Ends)> {
    OF_POSTGRESQL.iter().find(|(states, ..)| states.contains(&sqlstate))
}

/// Functions of T-SQL raise its errors under their own numbers: SQLSTATE S0245 is 245.
pub fn own_number(sqlstate: &str) -> Option<i32> {
    sqlstate.strip_prefix('S').filter(|digits| digits.len() == 4)?.parse().ok()
}

/// Check constraints of the domains of T-SQL's types, and the error numbers of a value outside the range.
const RANGES: [(&str, i32); 2] = [("smallmoney_range", 8115), ("tinyint_range", 220)];

/// A row that is there already, by a primary key or a UNIQUE constraint: SQL Server's (Database Engine events and
/// errors, 2627 and 2601). ASE has one number for these and for unique indexes, whose names here begin with their
/// table's.
const DUPLICATE: &str = "23505";
pub const DUPLICATE_OF_CONSTRAINT: (i32, u8) = (2627, 14);
pub const DUPLICATE_OF_ANY: i32 = 2601;

/// SQLSTATEs that PostgreSQL has for several errors: how its text of one begins, and SQL Server's number of that
/// (Database Engine events and errors).
const BY_TEXT: &[(&str, &str, i32)] = &[
    // a row that MERGE meets twice has the SQLSTATE of a subquery with two rows
    ("21000", "MERGE command cannot affect row a second time", 8672),
    ("23505", "could not create unique index", 1505),
    ("42704", "constraint \"", 3728),
    ("42883", "operator does not exist", 402),
];

/// The number and the severity of an error that is PostgreSQL's: its SQLSTATE and text, and its constraint and the table
/// of that if it is one's.
pub fn number(sqlstate: &str, text: &str, table: &str, constraint: &str) -> (i32, u8) {
    if let Some((_, _, number)) =
        BY_TEXT.iter().find(|(state, said, _)| sqlstate == *state && text.starts_with(said))
    {
        return (*number, 16);
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

/// What an error of this number of T-SQL's ends.
pub fn ends(number: i32) -> Ends {
    let found = OF_TSQL.iter().find(|(first, last, _)| (*first..=*last).contains(&number));
    found.map_or(Ends::Statement, |(.., ends)| *ends)
}

/// What an error of PostgreSQL's ends. Errors of class 42 are of names and syntax.
pub fn sqlstate_ends(sqlstate: &str) -> Ends {
    match known(sqlstate) {
        Some((.., ends)) => *ends,
        None if sqlstate.starts_with("42") => Ends::Text,
        None => Ends::Statement,
    }
}

/// The functions of schema tsql that say the same of an error a procedure has caught.
pub fn sql() -> String {
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
        .map(|(name, number)| format!("    when constraint_ = '{name}' then 'S{number:04}'\n"))
        .collect();
    let ranges: Vec<String> = OF_TSQL
        .iter()
        .map(|(first, last, _)| match first == last {
            true => format!("number = {first}"),
            false => format!("number between {first} and {last}"),
        })
        .collect();
    let texts: String = BY_TEXT
        .iter()
        .map(|(state, said, number)| {
            format!("    when sqlstate = '{state}' and starts_with(message, '{said}') then 'S{number:04}'\n")
        })
        .collect();
    include_str!("errors.sql")
        .replace("{numbers}", &numbers)
        .replace("{range_states}", &ranges_of_domains)
        .replace("{texts}", &texts)
        .replace("{duplicate}", DUPLICATE)
        .replace("{of_constraint}", &DUPLICATE_OF_CONSTRAINT.0.to_string())
        .replace("{severities}", &severities)
        .replace("{no_number}", &NO_NUMBER.0.to_string())
        .replace("{severity}", &NO_NUMBER.1.to_string())
        .replace("{ranges}", &ranges.join("\n    or "))
        .replace("{only}", &states_that(true))
        .replace("{more}", &states_that(false))
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
        assert_eq!((said("21000", "more than one row"), said("21000", BY_TEXT[0].1)), (512, 8672));
        assert_eq!(
            (said("42883", "operator does not exist: x"), said("42883", "function f() does")),
            (402, 2812)
        );
        assert_eq!((own_number("S0245"), own_number("23505")), (Some(245), None));
    }
}
