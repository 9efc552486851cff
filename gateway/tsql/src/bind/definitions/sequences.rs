//! Sequences, which are PostgreSQL's.

use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::BIT;
use crate::long_names::demand_short;
use crate::plpgsql::Definition;
use crate::resolve::names::table;
use crate::resolve::Scope;
use crate::tree::Sequence;

/// The range of PostgreSQL's sequences.
const WIDEST: (i64, i64) = (i64::MIN, i64::MAX);

/// `create sequence` and `alter sequence`: omitted options are as in SQL Server.
pub fn defined(sequence: &Sequence, scope: &Scope) -> Result<Definition, Error> {
    let name = table(&sequence.name)?;
    let shown = &sequence.name.name;
    demand_short(shown, "sequence", sequence.name.at)?;
    let wrong = |number: i32, text: &str| {
        let text = text.replace('%', &format!("'{shown}'"));
        Err(Error::new(number, text, sequence.name.at).with_severity(16))
    };
    if sequence.increment == Some(0) {
        return wrong(11700, "The increment for sequence object % cannot be zero.");
    }
    let mut options = Vec::new();
    let mut put = |words, number: Option<i64>| {
        options.extend(number.map(|number| (words, Some(number))));
    };
    put("increment by", sequence.increment);
    if sequence.creates {
        let of = type_names::of_name(&sequence.type_, 1, scope.dialect)?;
        let digits = of.digits().filter(|(_, scale)| *scale == 0 && of != BIT);
        let Some((digits, _)) = digits else {
            return wrong(
                11702,
                "The sequence object % must be of data type int, bigint, smallint, tinyint, or decimal or numeric with a \
                 scale of 0, or any user-defined data type that is based on one of the above integer data types.",
            );
        };
        let range = match of.name {
            "tinyint" => (0, i64::from(u8::MAX)),
            "smallint" => (i64::from(i16::MIN), i64::from(i16::MAX)),
            "int" => (i64::from(i32::MIN), i64::from(i32::MAX)),
            "bigint" => WIDEST,
            _ => 10_i64.checked_pow(u32::from(digits)).map_or(WIDEST, |end| (1 - end, end - 1)),
        };
        let (least, most) = (sequence.least.unwrap_or(range.0), sequence.most.unwrap_or(range.1));
        if least >= most {
            return wrong(
                11705,
                "The minimum value for sequence object % must be less than its maximum value.",
            );
        }
        let begins = if sequence.increment.is_some_and(|increment| increment < 0) { most } else { least };
        let start = sequence.start.unwrap_or(begins);
        if !(least..=most).contains(&start) {
            return wrong(
                11703,
                "The start value for sequence object % must be between the minimum and maximum value of the sequence object.",
            );
        }
        put("minvalue", Some(least));
        put("maxvalue", Some(most));
        put("start with", Some(start));
        let type_ = match of.name {
            "tinyint" | "smallint" => "as smallint",
            "int" => "as integer",
            _ => "as bigint",
        };
        options.insert(0, (type_, None));
    } else {
        put("minvalue", sequence.least);
        put("maxvalue", sequence.most);
        // also where it begins again
        put("start with", sequence.start);
        put("restart with", sequence.start);
        if sequence.restarts && sequence.start.is_none() {
            options.push(("restart", None));
        }
    }
    options.extend(sequence.cycles.map(|cycles| (if cycles { "cycle" } else { "no cycle" }, None)));
    Ok(Definition::Sequence { creates: sequence.creates, name, options })
}
