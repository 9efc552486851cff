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
use crate::postgres::{call, Call, Over, Scalar};
use crate::tree::{Arguments, Window};
use std::borrow::Cow;

impl Translation<'_> {
    /// The window of a function.
    pub fn window(&mut self, window: &Window, rule: Rule, name: &str, line: u32) -> Result<Over, Error> {
        let mut partition_by = Vec::with_capacity(window.partition_by.len());
        for part in &window.partition_by {
            partition_by.push(self.value(part)?.sql);
        }
        let order_by = self.ordered_by(&window.order_by)?;
        if order_by.is_empty() && rule.is_ranking() {
            let text = format!("The function '{name}' must have an OVER clause with ORDER BY.");
            return Err(Error::new(4112, text, line));
        }
        if window.frame.is_some() {
            if rule.is_ranking() && rule != Rule::Edge {
                let text = format!("The function '{name}' may not have a window frame.");
                return Err(Error::new(10752, text, line));
            }
            if order_by.is_empty() {
                let text = "Window frame with ROWS or RANGE must have an ORDER BY clause.";
                return Err(Error::new(10756, text, line));
            }
        }
        Ok(Over { partition_by, order_by, frame: window.frame.clone() })
    }
}

impl CallTranslation<'_, '_, '_> {
    /// An aggregate over its window.
    fn aggregate(
        &mut self,
        function: impl Into<Cow<'static, str>>,
        arguments: impl Into<Vec<Scalar>>,
    ) -> Scalar {
        self.translation.around.aggregates += 1;
        let (function, arguments) = (function.into(), arguments.into());
        let (distinct, over) = (self.of.distinct, self.over.clone());
        Scalar::from(Call { function, arguments, distinct, over, ..Call::default() })
    }

    fn aggregated(&mut self) -> Result<Value, Error> {
        if self.of.arguments == Arguments::Star {
            return Err(Error::syntax("*", self.line));
        }
        self.count(1, 1)?;
        if self.dialect().is_strict && self.over.is_none() && walk::has_query(&self.arguments[0]) {
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
        let counted = if self.of.arguments == Arguments::Star {
            if self.of.distinct {
                return Err(Error::syntax("*", self.line));
            }
            Scalar::Star
        } else {
            self.aggregated()?.sql
        };
        let sql = self.aggregate("count", [counted]);
        Ok(match self.name {
            "count_big" => Value::new(sql, BIGINT),
            _ => Value::cast(sql, INT),
        })
    }

    /// sum and avg
    pub fn sum(&mut self) -> Result<Value, Error> {
        let value = self.aggregated()?;
        if let Some(of) = value.of {
            self.refuse_operand(of, true)?;
        }
        let of = match value.of {
            None => None,
            Some(TINYINT | SMALLINT) => Some(INT),
            Some(REAL) => Some(FLOAT),
            Some(of) if of.family == Family::Decimal && self.name == "avg" => {
                return Ok(self.decimal_average(value.sql, of));
            }
            Some(of) if of.family == Family::Decimal => {
                let of = Type { twin: of.twin, ..decimal(38, of.scale.unwrap_or(0)) };
                return Ok(Value::cast(self.aggregate("tsql.sum", [value.sql]), of));
            }
            Some(of) => Some(if of.family == Family::Money { MONEY } else { of }),
        };
        Ok(Value::of(self.aggregate(format!("tsql.{}", self.name), [value.sql]), of))
    }

    fn decimal_average(&mut self, value: Scalar, of: Type) -> Value {
        let scale = of.scale.unwrap_or(0).max(6);
        let total = self.aggregate("tsql.sum", [value.clone()]);
        let number = call("nullif", [self.aggregate("count", [value]), Scalar::number(0)]).cast("numeric");
        let of = Type { twin: of.twin, ..decimal(38, scale) };
        Value::cast(call("tsql.quotient", [total, number, Scalar::number(scale)]), of)
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
        if let Some(of) = value.of {
            self.refuse_operand(of, false)?;
        }
        let sql = self.aggregate(format!("{schema}{}", self.name), [value.sql]);
        Ok(match value.of.filter(Type::is_text) {
            Some(of) if of.name == CHAR.name => Value::cast(sql, of),
            Some(of) => {
                Value::cast(sql, Type { twin: of.is_national(), case: of.case, ..varchar(of.length) })
            }
            None => Value::of(sql, value.of),
        })
    }

    fn refuse_operand(&self, of: Type, numbers: bool) -> Result<(), Error> {
        if of == BIT || (numbers && !of.is_number()) {
            let text = format!("Operand data type {} is invalid for {} operator.", of.name, self.name);
            return Err(self.fail(8117, text));
        }
        Ok(())
    }

    pub fn spread(&mut self, function: &'static str) -> Result<Value, Error> {
        let value = self.aggregated()?;
        if let Some(of) = value.of.filter(|of| of.family == Family::Variant) {
            self.refuse_operand(of, true)?;
        }
        let float = converted(value, FLOAT, self.line, self.dialect())?.sql;
        Ok(Value::new(self.aggregate(function, [float]), FLOAT))
    }

    /// `string_agg(text, separator) [within group (order by …)]`
    pub fn string_agg(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        if self.over.is_some() || self.of.distinct {
            return Err(Error::syntax("string_agg", self.line));
        }
        let separator = &self.arguments[1];
        if walk::has_column(separator) || walk::has_query(separator) {
            let text = "Separator parameter for STRING_AGG must be a string literal or variable.";
            return Err(self.fail(8733, text));
        }
        let value = self.value(0)?;
        let (text, separator) = (self.as_text(&value)?, self.text(1)?);
        let order_by = self.translation.ordered_by(&self.of.within_group)?;
        let of = Type { twin: value.is_national(), case: value.case(), ..varchar(None) };
        let text = if of.folds() { text.cast("text") } else { text };
        self.translation.around.aggregates += 1;
        let (function, arguments) = ("string_agg".into(), vec![text, separator]);
        let sql = Scalar::from(Call { function, arguments, order_by, ..Call::default() });
        Ok(if of.folds() { Value::cast(sql, of) } else { Value::new(sql, of) })
    }

    /// row_number, rank, dense_rank
    pub fn ranking(&mut self) -> Result<Value, Error> {
        self.count(0, 0)?;
        Ok(Value::new(self.aggregate(self.name.to_owned(), []), BIGINT))
    }

    pub fn n_tile(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let number = self.integer(0)?;
        Ok(Value::cast(self.aggregate("ntile", [number]), BIGINT))
    }

    /// first_value and last_value
    pub fn edge(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let value = self.value(0)?;
        Ok(Value::of(self.aggregate(self.name.to_owned(), [value.sql]), value.of))
    }

    /// percent_rank and cume_dist
    pub fn share(&mut self) -> Result<Value, Error> {
        self.count(0, 0)?;
        Ok(Value::new(self.aggregate(self.name.to_owned(), []), FLOAT))
    }

    /// grouping and grouping_id: a bit for each column, set if the row's group is not by this column
    pub fn grouping(&mut self) -> Result<Value, Error> {
        let most = if self.name == "grouping" { 1 } else { 32 };
        let number = self.count(1, most)?;
        let values: Result<Vec<_>, _> = (0..number).map(|place| self.value(place)).collect();
        let values: Vec<_> = values?.into_iter().map(|value| value.sql).collect();
        let sql = self.aggregate("grouping", values);
        Ok(match self.name {
            "grouping" => Value::cast(sql, TINYINT),
            _ => Value::new(sql, INT),
        })
    }

    /// lag and lead
    pub fn neighbour(&mut self) -> Result<Value, Error> {
        let number = self.count(1, 3)?;
        let value = self.value(0)?;
        let mut arguments = vec![value.sql];
        if number > 1 {
            if self.value(1)?.integer().is_some_and(|offset| offset < 0) {
                let text = "Offset parameter for Lag and Lead functions cannot be a negative value.";
                return Err(self.fail(8730, text));
            }
            arguments.push(self.integer(1)?);
        }
        if number > 2 {
            let default = self.value(2)?;
            let default = match value.of {
                Some(of) => converted(default, of, self.line, self.dialect())?,
                None => default,
            };
            arguments.push(default.sql);
        }
        Ok(Value::of(self.aggregate(self.name.to_owned(), arguments), value.of))
    }
}
