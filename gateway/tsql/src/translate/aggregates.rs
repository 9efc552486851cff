//! Aggregates and window functions.

use super::calls::CallTranslation;
use super::translation::Translation;
use super::value::{converted, Value};
use super::walk;
use crate::error::Error;
use crate::facts::functions::Rule;
use crate::facts::types::{
    decimal, varchar, Family, Type, BIGINT, BIT, CHAR, FLOAT, INT, MONEY, REAL, SMALLINT, TINYINT,
};
use crate::tree::{Arguments, Frame, FrameBound, FrameUnit, Window};

impl Translation<'_> {
    /// ` over (…)` of a function.
    pub fn window(&mut self, window: &Window, rule: Rule, name: &str, line: u32) -> Result<String, Error> {
        let mut parts = Vec::new();
        if !window.partition_by.is_empty() {
            let by: Result<Vec<_>, _> =
                window.partition_by.iter().map(|part| self.value(part).map(|value| value.sql)).collect();
            parts.push(format!("partition by {}", by?.join(", ")));
        }
        if !window.order_by.is_empty() {
            parts.push(format!("order by {}", self.ordered_by(&window.order_by)?));
        } else if rule.is_ranking() {
            let text = format!("The function '{name}' must have an OVER clause with ORDER BY.");
            return Err(Error::new(4112, text, line));
        }
        if let Some(frame) = &window.frame {
            if rule.is_ranking() && rule != Rule::Edge {
                let text = format!("The function '{name}' may not have a window frame.");
                return Err(Error::new(10752, text, line));
            }
            if window.order_by.is_empty() {
                let text = "Window frame with ROWS or RANGE must have an ORDER BY clause.";
                return Err(Error::new(10756, text, line));
            }
            parts.push(frame_sql(frame));
        }
        Ok(format!(" over ({})", parts.join(" ")))
    }
}

fn frame_sql(frame: &Frame) -> String {
    let unit = match frame.unit {
        FrameUnit::Rows => "rows",
        FrameUnit::Range => "range",
    };
    let bound = |bound: &FrameBound| match bound {
        FrameBound::UnboundedPreceding => "unbounded preceding".to_owned(),
        FrameBound::Preceding(rows) => format!("{rows} preceding"),
        FrameBound::CurrentRow => "current row".to_owned(),
        FrameBound::Following(rows) => format!("{rows} following"),
        FrameBound::UnboundedFollowing => "unbounded following".to_owned(),
    };
    let start = bound(&frame.start);
    match &frame.end {
        None => format!("{unit} {start}"),
        Some(end) => format!("{unit} between {start} and {}", bound(end)),
    }
}

impl CallTranslation<'_, '_, '_> {
    /// An aggregate over its window.
    fn aggregate(&mut self, sql: &str, cast: &str, of: Option<Type>) -> Value {
        self.translation.around.aggregates += 1;
        if cast.is_empty() && self.over.is_empty() {
            return Value::of(sql, of);
        }
        Value::of(format!("({sql}{}){cast}", self.over), of)
    }

    fn distinct(&self) -> &'static str {
        if self.of.distinct {
            "distinct "
        } else {
            ""
        }
    }

    fn aggregated(&mut self) -> Result<Value, Error> {
        if self.of.arguments == Arguments::Star {
            return Err(Error::syntax("*", self.line));
        }
        self.count(1, 1)?;
        if self.dialect().is_strict && self.over.is_empty() && walk::has_query(&self.arguments[0]) {
            let text =
                "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
            return Err(self.fail(130, text));
        }
        let value = self.value(0)?;
        if value.is_null() && self.dialect().checks_arguments {
            let text = format!("Operand data type NULL is invalid for {} operator.", self.name);
            return Err(self.fail(8117, text));
        }
        Ok(self.translation.collated_by_default(value))
    }

    pub fn number_of_rows(&mut self) -> Result<Value, Error> {
        let (cast, of) = if self.name == "count_big" { ("", BIGINT) } else { ("::integer", INT) };
        let sql = if self.of.arguments == Arguments::Star {
            if self.of.distinct {
                return Err(Error::syntax("*", self.line));
            }
            "count(*)".to_owned()
        } else {
            format!("count({}{})", self.distinct(), self.aggregated()?.sql)
        };
        Ok(self.aggregate(&sql, cast, Some(of)))
    }

    /// sum and avg
    pub fn sum(&mut self) -> Result<Value, Error> {
        let value = self.aggregated()?;
        let over = format!("{}{}", self.distinct(), value.sql);
        if let Some(of) = value.of {
            self.refuse_operand(of, true)?;
        }
        let (cast, of) = match value.of {
            None => (String::new(), None),
            Some(TINYINT | SMALLINT) => (String::new(), Some(INT)),
            Some(REAL) => (String::new(), Some(FLOAT)),
            Some(of) if of.family == Family::Decimal && self.name == "avg" => {
                return Ok(self.decimal_average(&over, of));
            }
            Some(of) if of.family == Family::Decimal => {
                let of = Type { twin: of.twin, ..decimal(38, of.scale.unwrap_or(0)) };
                (format!("::{}", of.sql()), Some(of))
            }
            Some(of) => (String::new(), Some(if of.family == Family::Money { MONEY } else { of })),
        };
        let sql = format!("tsql.{}({over})", self.name);
        Ok(self.aggregate(&sql, &cast, of))
    }

    fn decimal_average(&mut self, over: &str, of: Type) -> Value {
        let scale = of.scale.unwrap_or(0).max(6);
        let total = self.aggregate(&format!("tsql.sum({over})"), "", None).sql;
        let number = self.aggregate(&format!("count({over})"), "", None).sql;
        let of = Type { twin: of.twin, ..decimal(38, scale) };
        let sql = format!("tsql.quotient({total}, nullif({number}, 0)::numeric, {scale})::{}", of.sql());
        Value::new(sql, of)
    }

    /// min and max
    pub fn extreme(&mut self) -> Result<Value, Error> {
        let value = self.aggregated()?;
        // PostgreSQL has none for these, or orders them differently
        let is_own = |of: Type| {
            of.folds()
                || matches!(
                    of.name,
                    "datetimeoffset" | "sql_variant" | "uniqueidentifier" | "money" | "smallmoney"
                )
        };
        let schema = if value.of.is_none_or(is_own) { "tsql." } else { "" };
        let over = format!("{schema}{}({}{})", self.name, self.distinct(), value.sql);
        let Some(of) = value.of else {
            return Ok(self.aggregate(&over, "", None));
        };
        self.refuse_operand(of, false)?;
        if of.is_text() {
            let of = if of.name == CHAR.name {
                of
            } else {
                Type { twin: of.is_national(), case: of.case, ..varchar(of.length) }
            };
            return Ok(self.aggregate(&over, &format!("::{}", of.sql()), Some(of)));
        }
        Ok(self.aggregate(&over, "", Some(of)))
    }

    fn refuse_operand(&self, of: Type, numbers: bool) -> Result<(), Error> {
        if of == BIT || (numbers && !of.is_number()) {
            let text = format!("Operand data type {} is invalid for {} operator.", of.name, self.name);
            return Err(self.fail(8117, text));
        }
        Ok(())
    }

    pub fn spread(&mut self, function: &str) -> Result<Value, Error> {
        let value = self.aggregated()?;
        if let Some(of) = value.of.filter(|of| of.family == Family::Variant) {
            self.refuse_operand(of, true)?;
        }
        let float = converted(value, FLOAT, self.line, self.dialect())?.sql;
        let sql = format!("{function}({}{float})", self.distinct());
        Ok(self.aggregate(&sql, "", Some(FLOAT)))
    }

    /// `string_agg(text, separator) [within group (order by …)]`
    pub fn string_agg(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        if !self.over.is_empty() || self.of.distinct {
            return Err(Error::syntax("string_agg", self.line));
        }
        let separator = &self.arguments[1];
        if walk::has_column(separator) || walk::has_query(separator) {
            let text = "Separator parameter for STRING_AGG must be a string literal or variable.";
            return Err(self.fail(8733, text));
        }
        let value = self.value(0)?;
        let (text, separator) = (self.as_text(&value)?, self.text(1)?);
        let order = if self.of.within_group.is_empty() {
            String::new()
        } else {
            format!(" order by {}", self.translation.ordered_by(&self.of.within_group)?)
        };
        let of = Type { twin: value.is_national(), case: value.case(), ..varchar(None) };
        let (plain, cast) =
            if of.folds() { ("::text", format!("::{}", of.sql())) } else { ("", String::new()) };
        let sql = format!("string_agg({text}{plain}, {separator}{order})");
        Ok(self.aggregate(&sql, &cast, Some(of)))
    }

    /// row_number, rank, dense_rank
    pub fn ranking(&mut self) -> Result<Value, Error> {
        self.count(0, 0)?;
        let sql = format!("{}()", self.name);
        Ok(self.aggregate(&sql, "", Some(BIGINT)))
    }

    pub fn n_tile(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let sql = format!("ntile({})", self.integer(0)?);
        Ok(self.aggregate(&sql, "::bigint", Some(BIGINT)))
    }

    /// first_value and last_value
    pub fn edge(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let value = self.value(0)?;
        let sql = format!("{}({})", self.name, value.sql);
        Ok(self.aggregate(&sql, "", value.of))
    }

    /// percent_rank and cume_dist
    pub fn share(&mut self) -> Result<Value, Error> {
        self.count(0, 0)?;
        let sql = format!("{}()", self.name);
        Ok(self.aggregate(&sql, "", Some(FLOAT)))
    }

    /// grouping and grouping_id: a bit for each column, set if the row's group is not by this column
    pub fn grouping(&mut self) -> Result<Value, Error> {
        let most = if self.name == "grouping" { 1 } else { 32 };
        let number = self.count(1, most)?;
        let values: Result<Vec<_>, _> = (0..number).map(|place| self.value(place)).collect();
        let values: Vec<_> = values?.into_iter().map(|value| value.sql).collect();
        let sql = format!("grouping({})", values.join(", "));
        let of = if self.name == "grouping" { TINYINT } else { INT };
        let cast = if of == INT { String::new() } else { format!("::{}", of.sql()) };
        Ok(self.aggregate(&sql, &cast, Some(of)))
    }

    /// lag and lead
    pub fn neighbour(&mut self) -> Result<Value, Error> {
        let number = self.count(1, 3)?;
        let value = self.value(0)?;
        let mut others = String::new();
        if number > 1 {
            if self.value(1)?.integer().is_some_and(|offset| offset < 0) {
                let text = "Offset parameter for Lag and Lead functions cannot be a negative value.";
                return Err(self.fail(8730, text));
            }
            others = format!(", {}", self.integer(1)?);
        }
        if number > 2 {
            let default = self.value(2)?;
            let default = match value.of {
                Some(of) => converted(default, of, self.line, self.dialect())?,
                None => default,
            };
            others.push_str(&format!(", {}", default.sql));
        }
        let sql = format!("{}({}{others})", self.name, value.sql);
        Ok(self.aggregate(&sql, "", value.of))
    }
}
