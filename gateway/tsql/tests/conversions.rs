//! Every pair of types, cell by cell: what an assignment and what a CAST of the one to the other says.

use tsql::program::Settings;
use tsql::{Dialect, ASE, SQL_SERVER};

/// A type and the types that its values are not assigned to: with error 206, and with 257.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const NUMBERS: [&str; 10] =
    ["bit", "tinyint", "smallint", "int", "bigint", "decimal(9,2)", "money", "smallmoney", "float", "real"];
const FINE: [&str; 3] = ["date", "time", "datetime2"];
const ASSIGNABLE: [&str; 12] = [
    "int",
    "bit",
    "decimal(9,2)",
    "float",
    "varchar(9)",
    "varbinary(9)",
    "uniqueidentifier",
    "datetime",
    "date",
    "time",
    "datetime2",
    "xml",
];

/// SQL Server 2025, a variable of every type set from one of every other: AssignGrid in SqlType.PairRules.cs of
/// RyanLamansky/sql-server-simulator. A number stands for each, as there.
const ASSIGNED: [Row; 12] = [
    ("bit", &["uniqueidentifier", "date", "time", "datetime2", "xml"], &[]),
    ("int", &["uniqueidentifier", "date", "time", "datetime2", "xml"], &[]),
    ("decimal(9,2)", &["uniqueidentifier", "date", "time", "datetime2", "xml"], &[]),
    ("float", &["uniqueidentifier", "date", "time", "datetime2", "xml"], &[]),
    ("varchar(9)", &[], &["varbinary(9)"]),
    ("varbinary(9)", &["float"], &["date", "time", "datetime2"]),
    (
        "uniqueidentifier",
        &["bit", "int", "decimal(9,2)", "float", "datetime", "date", "time", "datetime2", "xml"],
        &[],
    ),
    ("datetime", &["uniqueidentifier", "xml"], &["bit", "int", "decimal(9,2)", "float", "varbinary(9)"]),
    ("date", &["bit", "int", "decimal(9,2)", "float", "uniqueidentifier", "time", "xml"], &["varbinary(9)"]),
    ("time", &["bit", "int", "decimal(9,2)", "float", "uniqueidentifier", "date", "xml"], &["varbinary(9)"]),
    ("datetime2", &["bit", "int", "decimal(9,2)", "float", "uniqueidentifier", "xml"], &["varbinary(9)"]),
    (
        "xml",
        &["bit", "int", "decimal(9,2)", "float", "uniqueidentifier", "datetime", "date", "time", "datetime2"],
        &["varchar(9)", "varbinary(9)"],
    ),
];

/// Errors 206, 257 and 529; anything else is none of a pair.
fn error(text: &str, dialect: &'static Dialect) -> Option<i32> {
    let settings = Settings { database: "online".into(), dialect, ..Settings::default() };
    let error = tsql::compile(text, &settings).err().map(|error| error.number);
    error.filter(|number| matches!(number, 206 | 257 | 529))
}

fn assigned(source: &str, target: &str, dialect: &'static Dialect) -> Option<i32> {
    error(&format!("declare @s {source}, @t {target} set @t = @s"), dialect)
}

fn cast(source: &str, target: &str, dialect: &'static Dialect) -> bool {
    // a parameter may be a text, a variable not
    error(&format!("create procedure p @s {source} as select cast(@s as {target})"), dialect).is_none()
}

#[test]
fn assignments_of_sql_server() {
    for (source, clashes, wants_convert) in ASSIGNED {
        for target in ASSIGNABLE {
            let expected = match target {
                target if clashes.contains(&target) => Some(206),
                target if wants_convert.contains(&target) => Some(257),
                _ => None,
            };
            assert_eq!(assigned(source, target, &SQL_SERVER), expected, "{source} to {target}");
        }
    }
}

#[test]
fn an_assignment_is_one_wherever_it_stands() {
    for text in [
        "declare @i int = getdate()",
        "declare @i int select @i = getdate()",
        "declare @i int set @i = getdate()",
        "select isnull(1, getdate())",
        "create procedure p as begin declare @i int select @i = getdate() end",
        "create procedure p as return getdate()",
        "create table t (a as cast(1 as int), b int default getdate())\ndeclare @i int = getdate()",
    ] {
        assert_eq!(error(text, &SQL_SERVER), Some(257), "{text}");
        assert_eq!(error(text, &ASE), Some(257), "{text}");
    }
}

/// `ConversionLegalityTests.cs` there and docs/claude/casting.md: 284 refusals of the 28 common type names.
#[test]
fn casts_of_sql_server() {
    let others = ["varchar(9)", "char(9)", "varbinary(9)", "binary(9)", "uniqueidentifier", "xml"];
    let moments = ["datetime", "smalldatetime"];
    let all = || NUMBERS.into_iter().chain(FINE).chain(moments).chain(others).chain(["text", "image"]);
    for source in all() {
        for target in all() {
            let is_refused = match (source, target) {
                ("text", _) => !["varchar(9)", "char(9)", "text", "xml"].contains(&target),
                ("image", _) => !["varbinary(9)", "binary(9)", "image"].contains(&target),
                (_, "text") => !["varchar(9)", "char(9)"].contains(&source),
                (_, "image") => !["varchar(9)", "char(9)", "varbinary(9)", "binary(9)"].contains(&source),
                ("varchar(9)" | "char(9)", _) | (_, "varchar(9)" | "char(9)") => false,
                ("varbinary(9)" | "binary(9)", _) => ["float", "real"].contains(&target),
                (_, "varbinary(9)" | "binary(9)") => false,
                ("uniqueidentifier" | "xml", _) => source != target,
                (_, "uniqueidentifier" | "xml") => true,
                ("date", "time") | ("time", "date") => true,
                _ => {
                    NUMBERS.contains(&source) && FINE.contains(&target)
                        || FINE.contains(&source) && NUMBERS.contains(&target)
                }
            };
            assert_eq!(cast(source, target, &SQL_SERVER), !is_refused, "{source} to {target}");
        }
    }
}

/// Transact-SQL Users Guide, tables 16-3 and 16-4; errors 257 and 529 of "Error Messages and Advanced Resolutions".
#[test]
fn numbers_and_moments_of_ase() {
    for number in NUMBERS {
        for (source, target) in [(number, "datetime"), ("datetime", number), ("smalldatetime", number)] {
            assert_eq!(assigned(source, target, &ASE), Some(257), "{source} to {target}");
            assert!(!cast(source, target, &ASE), "{source} to {target}");
        }
    }
    assert_eq!(assigned("varbinary(9)", "datetime", &ASE), Some(257));
    assert!(!cast("varbinary(9)", "datetime", &ASE));
    assert_eq!(assigned("varchar(9)", "varbinary(9)", &ASE), None);
    assert_eq!(assigned("varchar(9)", "datetime", &ASE), None);
    assert_eq!(assigned("datetime", "varchar(9)", &ASE), None);
}
