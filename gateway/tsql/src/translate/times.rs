//! Functions of times.

use super::calls::Call;
use super::value::Value;
use crate::error::Error;
use crate::facts::types::{varchar, Type, DATE, DATETIME, DATETIME2, INT, SMALLDATETIME, TIME};

fn moment(value: &Value) -> &str {
    if value.is_null() {
        "null::timestamp"
    } else {
        &value.sql
    }
}

impl Call<'_, '_, '_> {
    /// The clock.
    pub fn now(&mut self, sql: &str, gives: Type) -> Result<Value, Error> {
        self.count(0, 0)?;
        let scope = self.translation.scope;
        if !scope.procedure && !scope.definition {
            return Ok(Value::new(sql, gives));
        }
        // a procedure is one statement to PostgreSQL: its clock would stand still
        let asked = sql.replace("()", "(clock_timestamp())");
        // a default of a column is no place for a select
        Ok(Value::new(if scope.definition { asked } else { format!("(select {asked})") }, gives))
    }

    fn moment(&mut self, place: usize) -> Result<String, Error> {
        Ok(format!("tsql.moment({})", moment(&self.value(place)?)))
    }

    fn refused_part(&self, number: i32, part: &str) -> Error {
        self.fail(number, format!("The datepart {part} is not supported by date function {}.", self.name))
    }

    pub fn date_add(&mut self) -> Result<Value, Error> {
        self.count(3, 3)?;
        let part = self.date_part(0)?;
        if part.starts_with("iso_") {
            return Err(self.refused_part(9810, part));
        }
        let number = self.integer(1)?;
        let value = self.value(2)?;
        let of = value.of.map(|of| if of.is_time() { of } else { DATETIME });
        let sql = format!("tsql.dateadd('{part}', {number}, {})", moment(&value));
        Ok(match of {
            Some(DATETIME) => Value::of(format!("tsql.to_datetime({sql})"), of),
            Some(SMALLDATETIME) => Value::of(format!("tsql.to_smalldatetime({sql})"), of),
            of => Value::of(sql, of),
        })
    }

    pub fn date_diff(&mut self, gives: Type) -> Result<Value, Error> {
        self.count(3, 3)?;
        let part = self.date_part(0)?;
        if matches!(part, "iso_year" | "iso_weekday") {
            return Err(self.refused_part(9806, part));
        }
        let sql = format!("tsql.datediff('{part}', {}, {})", self.moment(1)?, self.moment(2)?);
        Ok(Value::new(if gives == INT { format!("tsql.datediff_int({sql})") } else { sql }, gives))
    }

    pub fn date_of(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let (part, moment) = (self.date_part(0)?, self.moment(1)?);
        Ok(Value::new(format!("tsql.datepart('{part}', {moment})"), INT))
    }

    pub fn date_name(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let (part, moment) = (self.date_part(0)?, self.moment(1)?);
        let sql = format!("tsql.datename('{part}', {moment})::varchar(30)");
        Ok(Value::new(sql, varchar(Some(30))))
    }

    /// year, month, day
    pub fn part(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let moment = self.moment(0)?;
        Ok(Value::new(format!("tsql.datepart('{}', {moment})", self.name), INT))
    }

    /// datetime2fromparts, timefromparts: the fraction counts decimals, of which there are as many as the last says.
    pub fn of_parts(&mut self, gives: Type) -> Result<Value, Error> {
        let number = if gives == TIME { 5 } else { 8 };
        self.count(number, number)?;
        let digits = self.value(number - 1)?.integer().and_then(|digits| u8::try_from(digits).ok());
        let Some(digits) = digits.filter(|digits| *digits <= 7) else {
            let text = format!(
                "Scale argument is not valid. Valid expressions for data type {} scale argument are integer \
                 constants and integer constant expressions.",
                gives.name
            );
            return Err(self.fail(10760, text));
        };
        let mut parts = Vec::with_capacity(number);
        for place in 0..number {
            parts.push(self.integer(place)?);
        }
        let gives = Type { fraction: Some(digits), ..gives };
        Ok(Value::new(format!("tsql.{}({})", self.name, parts.join(", ")), gives))
    }

    pub fn date_trunc(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let part = self.date_part(0)?;
        if matches!(part, "weekday" | "nanosecond" | "iso_year" | "iso_weekday") {
            return Err(self.refused_part(9810, part));
        }
        let value = self.value(1)?;
        let is_clock = matches!(part, "hour" | "minute" | "second" | "millisecond" | "microsecond");
        let fits = match value.of.map(|of| of.name) {
            Some("date") => !is_clock,
            Some("time") => is_clock,
            _ => true,
        };
        if !fits {
            return Err(self.refused_part(9810, part));
        }
        let sql = format!("tsql.datetrunc('{part}', {})", moment(&value));
        let of = value.of.map(|of| if of.is_time() { of } else { DATETIME2 });
        Ok(Value::of(sql, of))
    }

    pub fn end_of_month(&mut self) -> Result<Value, Error> {
        let number = self.count(1, 2)?;
        let moment = self.moment(0)?;
        let months = if number == 2 { self.integer(1)? } else { "0".into() };
        Ok(Value::new(format!("tsql.eomonth({moment}, {months})"), DATE))
    }
}
