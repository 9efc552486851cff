//! OPTIONCMD: settings that TDS 5.0 clients send as a token instead of the text `set …` (numbers and values: FreeTDS
//! include/freetds/proto.h, TDS_OPT_*).

use crate::client::{Client, Settings};
use crate::tds::dialect::Dialect;
use crate::tds::option::{self, Operation, OptionCommand};
use crate::tds::tokens::done::Status;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::Reader;

const DATEFIRST: u8 = 1;
const TEXTSIZE: u8 = 2;
const ROWCOUNT: u8 = 5;
const LANGUAGE: u8 = 6;
const DATEFORMAT: u8 = 7;
const ISOLATION: u8 = 8;
const NOCOUNT: u8 = 21;
const FMTONLY: u8 = 24;
const CHAINED: u8 = 25;
const CURSOR_CLOSE: u8 = 26;
const ANSINULL: u8 = 34;
const QUOTED_IDENTIFIER: u8 = 35;

/// Options that are on or off, and the equivalent SET.
const SWITCHES: [(u8, &str); 8] = [
    (14, "noexec"),
    (18, "parseonly"),
    (NOCOUNT, "nocount"),
    (FMTONLY, "fmtonly"),
    (CHAINED, "chained"),
    (CURSOR_CLOSE, "cursor_close_on_commit"),
    (ANSINULL, "ansinull"),
    (QUOTED_IDENTIFIER, "quoted_identifier"),
];

/// Options that each set another option on or off, whatever their own value.
const TURNS: [(u8, &str, &str); 4] = [
    (15, "arithignore", "on"),
    (17, "arithabort", "on"),
    (36, "arithignore", "off"),
    (37, "arithabort", "off"),
];

/// Options of additional output (times, plans) and of planning, which do not affect results.
const WITHOUT_EFFECT: [u8; 5] = [3, 4, 13, 23, 28];

/// Answers one OPTIONCMD.
pub fn answer_option(client: &mut Client, command: &OptionCommand<'_>) {
    let OptionCommand { operation, option, value } = *command;
    let dialect = client.dialect();
    let mut settings = client.settings().clone();
    let done = match operation {
        Operation::Set => set(&mut settings, option, value, &dialect),
        Operation::Default => set(&mut settings, option, &[standard(option)], &dialect),
        Operation::List => list(client, option),
        Operation::Other(other) => Err(refused(&format!("command {other} of option {option}"))),
    };
    client.set(settings);
    match done {
        Ok(()) => client.reply.end(Status::empty(), None),
        Err(message) => client.reply.refuse(&message),
    }
}

fn list(client: &mut Client, option: u8) -> Result<(), ServerMessage> {
    let value =
        value_of(client.settings(), option).ok_or_else(|| refused(&format!("listing option {option}")))?;
    let dialect = client.dialect();
    option::put_info(&mut client.reply.tokens, option, value, option == TEXTSIZE, &dialect);
    Ok(())
}

/// None for an option that the session does not keep.
fn value_of(settings: &Settings, option: u8) -> Option<u32> {
    Some(match option {
        DATEFIRST => u32::from(settings.calendar.first_day),
        DATEFORMAT => settings.calendar.order_number(),
        TEXTSIZE => settings.text_size.bytes() as u32,
        ISOLATION => 1,
        CHAINED => u32::from(settings.implicit_transactions),
        NOCOUNT => u32::from(settings.no_count),
        FMTONLY => u32::from(settings.only_formats),
        CURSOR_CLOSE => u32::from(settings.closes_cursors),
        ANSINULL => u32::from(!settings.nulls_equal),
        QUOTED_IDENTIFIER => u32::from(settings.quoted_identifiers),
        _ => return None,
    })
}

/// The value that DEFAULT means.
fn standard(option: u8) -> u8 {
    match option {
        DATEFIRST => 7,
        DATEFORMAT | ISOLATION => 1,
        _ => 0,
    }
}

fn set(settings: &mut Settings, option: u8, value: &[u8], dialect: &Dialect) -> Result<(), ServerMessage> {
    if WITHOUT_EFFECT.contains(&option) {
        return Ok(());
    }
    let words = words(option, value, dialect).ok_or_else(|| {
        let value: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        refused(&format!("option {option} with the value 0x{value}"))
    })?;
    settings.apply(&words)
}

/// The option as arguments of `set`; None if there is no such option or value.
fn words(option: u8, value: &[u8], dialect: &Dialect) -> Option<Vec<String>> {
    let number = || {
        let mut reader = Reader::new(value, dialect.endian);
        match value.len() {
            1 => reader.u8("option").map(u32::from).ok(),
            4 => reader.u32("option").ok(),
            _ => None,
        }
    };
    // the first bit of TDS_OPT_ARITHABORTON and OFF is arith_overflow, the second numeric_truncation
    let of_arithabort = |number| match number {
        1 => "arithabort arith_overflow",
        2 => "arithabort numeric_truncation",
        _ => "arithabort",
    };
    let line = if let Some((_, name)) = SWITCHES.iter().find(|(known, _)| *known == option) {
        format!("{name} {}", if number()? == 0 { "off" } else { "on" })
    } else if let Some((_, name, state)) = TURNS.iter().find(|(known, ..)| *known == option) {
        match *name {
            "arithabort" => format!("{} {state}", of_arithabort(number().unwrap_or(0))),
            name => format!("{name} {state}"),
        }
    } else {
        match option {
            DATEFIRST => format!("datefirst {}", number()?),
            TEXTSIZE => format!("textsize {}", number()?),
            ROWCOUNT => format!("rowcount {}", number()?),
            LANGUAGE => format!("language {}", dialect.charset.decode(value)?),
            DATEFORMAT => {
                let formats = ["mdy", "dmy", "ymd", "ydm", "myd", "dym"];
                format!("dateformat {}", formats.get(number()?.checked_sub(1)? as usize)?)
            }
            ISOLATION => format!("transaction isolation level {}", number()?),
            _ => return None,
        }
    };
    Some(line.split(' ').map(str::to_owned).collect())
}

fn refused(what: &str) -> ServerMessage {
    ServerMessage::error(195, 15, format!("OPTIONCMD, {what}, is not understood."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::{Endian, Version};

    fn as_set(option: u8, value: &[u8]) -> Option<String> {
        words(option, value, &Dialect::new(Version::Tds50)).map(|words| words.join(" "))
    }

    #[test]
    fn options_say_what_set_says() {
        assert_eq!(as_set(CHAINED, &[1]).as_deref(), Some("chained on"));
        assert_eq!(as_set(QUOTED_IDENTIFIER, &[0]).as_deref(), Some("quoted_identifier off"));
        assert_eq!(as_set(ROWCOUNT, &[5, 0, 0, 0]).as_deref(), Some("rowcount 5"));
        assert_eq!(as_set(DATEFORMAT, &[2]).as_deref(), Some("dateformat dmy"));
        assert_eq!(as_set(17, &[3]).as_deref(), Some("arithabort on"));
        assert_eq!(as_set(37, &[2]).as_deref(), Some("arithabort numeric_truncation off"));
        assert_eq!((as_set(DATEFORMAT, &[0]), as_set(CHAINED, &[]), as_set(10, b"utf8")), (None, None, None));
        let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        assert_eq!(words(TEXTSIZE, &[0, 0, 1, 0], &big).unwrap().join(" "), "textsize 256");
    }

    #[test]
    fn an_option_that_would_change_results_is_refused() {
        let dialect = Dialect::new(Version::Tds50);
        let mut settings = Settings::new(&dialect, false);
        for (option, value) in [(10, 1), (DATEFORMAT, 7), (DATEFIRST, 8), (29, 1)] {
            let error = set(&mut settings, option, &[value], &dialect).unwrap_err();
            assert_eq!(error.number, 195, "{option}");
        }
        assert_eq!(set(&mut settings, CHAINED, &[1], &dialect), Ok(()));
        assert_eq!(set(&mut settings, 13, &[1], &dialect), Ok(()));
        assert!(settings.implicit_transactions);
        // ct_options(CS_GET, …)
        for option in [CHAINED, NOCOUNT, CURSOR_CLOSE, ANSINULL, QUOTED_IDENTIFIER] {
            for value in [1, 0] {
                assert_eq!(set(&mut settings, option, &[value], &dialect), Ok(()));
                assert_eq!(value_of(&settings, option), Some(u32::from(value)), "{option}");
            }
        }
    }
}
