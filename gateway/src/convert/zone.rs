//! Conversion between local time and instants, by PostgreSQL's rule for hours that a change of clocks skips or
//! repeats.

use super::{ConvertError, ErrorKind, Value};
use crate::tds::types::clock;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH: i64 = 946_684_800_000_000;

/// The zone of times without a zone: PostgreSQL's TimeZone setting.
#[derive(Clone, Debug)]
pub struct Zone {
    rule: Rule,
    /// In a text that begins with the year the month precedes the day.
    pub reads_year_first: bool,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Microseconds east of UTC at all times.
    Fixed(i64),
    Changing(TimeZone),
}

impl Zone {
    pub const UTC: Zone = Zone::of(Rule::Fixed(0));

    const fn of(rule: Rule) -> Zone {
        Zone { rule, reads_year_first: true }
    }

    /// From a name of the tz database (`Asia/Tokyo`) or a POSIX rule (`<+09>-9`), as in PostgreSQL's TimeZone setting.
    pub fn new(name: &str) -> Result<Zone, ConvertError> {
        if ["UTC", "Etc/UTC", "GMT", "Etc/GMT"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
            return Ok(Zone::UTC);
        }
        // PostgreSQL writes a fixed offset as <+05:30>-05:30, POSIX allows no colon in the abbreviation
        let rule =
            name.split_once('>').map(|(abbreviation, rest)| abbreviation.replace(':', "") + ">" + rest);
        let zone = TimeZone::get(name).or_else(|_| TimeZone::posix(rule.as_deref().unwrap_or(name)));
        let zone = zone.map_err(|_| {
            ConvertError::new(
                ErrorKind::Unsupported,
                format!("time zone \"{name}\" is not in the tz database"),
            )
        })?;
        Ok(Zone::of(match zone.to_fixed_offset() {
            Ok(offset) => Rule::Fixed(micros(offset)),
            Err(_) => Rule::Changing(zone),
        }))
    }

    /// The instants that a local time denotes, all in microseconds since 2000-01-01 (UTC and local).
    pub fn instants(&self, local: i64) -> Instants {
        let at = |offset: i64| local.saturating_sub(offset);
        match &self.rule {
            Rule::Fixed(offset) => Instants::One(at(*offset)),
            Rule::Changing(zone) => match zone.to_ambiguous_timestamp(civil(local)).offset() {
                AmbiguousOffset::Unambiguous { offset } => Instants::One(at(micros(offset))),
                AmbiguousOffset::Gap { before, .. } => Instants::None { by_old_offset: at(micros(before)) },
                AmbiguousOffset::Fold { before, after } => {
                    Instants::Two { earlier: at(micros(before)), later: at(micros(after)) }
                }
            },
        }
    }

    /// The instant of a local time by PostgreSQL's rule: a time that was skipped is read with the offset before
    /// the change, one that occurred twice with the offset after it (DetermineTimeZoneOffset in datetime.c).
    pub fn to_utc(&self, local: i64) -> i64 {
        match self.instants(local) {
            Instants::One(instant) => instant,
            Instants::Two { later, .. } => later,
            Instants::None { by_old_offset } => by_old_offset,
        }
    }

    /// The local time of an instant.
    pub fn to_local(&self, utc: i64) -> i64 {
        let offset = match &self.rule {
            Rule::Fixed(offset) => *offset,
            Rule::Changing(zone) => micros(zone.to_offset(instant(utc))),
        };
        utc.saturating_add(offset)
    }

    /// An instant with the offset that is in force then, in whole minutes.
    pub fn with_offset(&self, utc: i64) -> Value<'static> {
        let minutes = (self.to_local(utc).saturating_sub(utc)).div_euclid(60_000_000);
        Value::DateTimeOffset { utc, offset_minutes: i16::try_from(minutes).unwrap_or(0) }
    }
}

/// The UTC time of a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instants {
    One(i64),
    /// In the hour that is repeated when clocks are set back.
    Two {
        earlier: i64,
        later: i64,
    },
    /// In the hour that is skipped when clocks are set ahead.
    None {
        by_old_offset: i64,
    },
}

fn micros(offset: Offset) -> i64 {
    i64::from(offset.seconds()) * 1_000_000
}

/// Beyond jiff's calendar (years -9999 to 9999) the rule of its last day applies.
fn civil(local: i64) -> DateTime {
    let first = if local < 0 { DateTime::MIN } else { DateTime::MAX };
    let (days, micros) = clock::split(local);
    let since = SignedDuration::new(days.saturating_mul(86_400), 0) + SignedDuration::from_micros(micros);
    jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0).checked_add(since).unwrap_or(first)
}

fn instant(utc: i64) -> Timestamp {
    let limit = if utc < 0 { Timestamp::MIN } else { Timestamp::MAX };
    utc.checked_add(EPOCH).and_then(|micros| Timestamp::from_microsecond(micros).ok()).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        let time: DateTime = text.parse().unwrap();
        time.duration_since(jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0)).as_micros() as i64
    }

    /// The offset in seconds with which a local time is read.
    fn offset(zone: &str, local: &str) -> i64 {
        let local = at(local);
        (local - Zone::new(zone).unwrap().to_utc(local)) / 1_000_000
    }

    #[test]
    fn the_calendars_last_day_has_an_instant() {
        let zone = Zone::new("Asia/Tokyo").unwrap();
        let forever = at("9999-12-31T23:59:59.999999");
        assert_eq!(zone.to_utc(forever), forever - 9 * 3600 * 1_000_000);
        assert_eq!(zone.to_local(zone.to_utc(forever)), forever);
    }

    #[test]
    fn names_and_posix_rules() {
        assert_eq!(offset("<+05:30>-05:30", "2024-01-01T00:00:00"), 19_800);
        assert_eq!(offset("utc", "2024-01-01T00:00:00"), 0);
        assert_eq!(Zone::new("Mars/Olympus").unwrap_err().kind, ErrorKind::Unsupported);
    }

    /// PostgreSQL 18: select extract(epoch from l) - extract(epoch from l::timestamptz).
    #[test]
    fn skipped_and_repeated_hours_as_in_postgresql() {
        for (zone, local, seconds) in [
            ("Europe/Berlin", "2024-03-31T01:59:59", 3600),
            ("Europe/Berlin", "2024-03-31T02:00:00", 3600),
            ("Europe/Berlin", "2024-03-31T02:30:00", 3600),
            ("Europe/Berlin", "2024-03-31T03:00:00", 7200),
            ("Europe/Berlin", "2024-10-27T01:59:59", 7200),
            ("Europe/Berlin", "2024-10-27T02:00:00", 3600),
            ("Europe/Berlin", "2024-10-27T02:59:59", 3600),
            ("Europe/Moscow", "2014-10-26T01:30:00", 10_800),
            ("Europe/Dublin", "2024-03-31T01:30:00", 0),
            ("Europe/Dublin", "2024-10-27T01:30:00", 0),
            ("Australia/Lord_Howe", "2024-04-07T01:45:00", 37_800),
            ("Australia/Lord_Howe", "2024-10-06T02:15:00", 37_800),
            ("Pacific/Apia", "2011-12-30T12:00:00", -36_000),
            ("America/St_Johns", "1900-06-01T00:00:00", -12_652),
            ("Europe/Berlin", "2300-07-01T00:00:00", 7200),
        ] {
            assert_eq!(offset(zone, local), seconds, "{zone} {local}");
        }
    }
}
