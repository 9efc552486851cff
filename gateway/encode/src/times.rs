//! Instants as text, in UTC.

/// The digits of a number below 10^`width`, with leading zeros.
pub fn digits(out: &mut Vec<u8>, mut number: u32, width: usize) {
    let begin = out.len();
    out.resize(begin + width, b'0');
    for index in (begin..begin + width).rev() {
        out[index] = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The form of a day.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 2026-11-20T
    Iso,
    /// Nov/20/2026 and a blank: the appliance's form
    Human,
    /// 2026-11-20 and a blank; a year below 1 as that before Christ
    Postgres,
}

/// Converts days to text: the last one is cached, because successive samples mostly have the same day.
pub struct Days {
    form: Form,
    number: i64,
    text: Vec<u8>,
}

impl Days {
    pub fn new(form: Form) -> Self {
        Self { form, number: i64::MIN, text: Vec::new() }
    }

    /// Appends an instant as text with whole seconds, given in seconds since 1970.
    pub fn put(&mut self, out: &mut Vec<u8>, seconds: i64) {
        let day = seconds.div_euclid(86_400);
        if day != self.number {
            self.number = day;
            self.text.clear();
            self.form.put(&mut self.text, day);
        }
        out.extend_from_slice(&self.text);
        let second = seconds.rem_euclid(86_400) as u32;
        digits(out, second / 3600, 2);
        out.push(b':');
        digits(out, second / 60 % 60, 2);
        out.push(b':');
        digits(out, second % 60, 2);
    }
}

impl Form {
    fn put(self, out: &mut Vec<u8>, day: i64) {
        const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
        let (year, month, day) = civil(day);
        match self {
            Self::Iso | Self::Postgres => {
                let is_ancient = self == Self::Postgres && year < 1;
                number_of_year(out, if is_ancient { 1 - year } else { year });
                out.push(b'-');
                digits(out, month, 2);
                out.push(b'-');
                digits(out, day, 2);
                out.push(if self == Self::Iso { b'T' } else { b' ' });
            }
            Self::Human => {
                let begin = 3 * (month as usize - 1);
                out.extend_from_slice(&MONTHS[begin..begin + 3]);
                out.push(b'/');
                digits(out, day, 2);
                out.push(b'/');
                number_of_year(out, year);
                out.push(b' ');
            }
        }
    }
}

/// At least four digits.
fn number_of_year(out: &mut Vec<u8>, year: i64) {
    match u32::try_from(year) {
        Ok(year) if year < 10_000 => digits(out, year, 4),
        _ => out.extend_from_slice(itoa::Buffer::new().format(year).as_bytes()),
    }
}

/// Year, month and day of a day since 1970 ("days from civil", Howard Hinnant).
fn civil(day: i64) -> (i64, u32, u32) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + i64::from(month <= 2), month as u32, of_month as u32)
}
