//! Functions: each by its rule (`facts::functions`).

use super::calls::CallTranslation;
use super::translation::Translation;
use super::value::{carried, converted, implicit, Value};
use super::walk;
use crate::error::Error;
use crate::facts::functions::{rule, Rule, NEW_ID, NONE_SUCH};
use crate::facts::session;
use crate::facts::types::{
    numeric, unified, Case, Family, Type, BIGINT, GUID, INT, SQL_VARIANT, VARBINARY, VARCHAR,
};
use crate::postgres::{call, Call, Mark, Scalar};
use crate::resolve::names::{self, folded, identifier, schema_of};
use crate::schema::{function_key, Signature};
use crate::tree::{Arguments, Expression, FunctionCall, Literal, LiteralValue, ObjectName};

/// The schema of the catalogue's functions, which have no effects.
const SYSTEM: &str = "sys";

/// The name of a function in SQL, its arguments, and their types.
type PassedOn = (String, Vec<Scalar>, Vec<Option<Type>>);

impl Translation<'_> {
    pub fn function(&mut self, called: &FunctionCall) -> Result<Value, Error> {
        let line = called.name.at.line;
        let name = called.name.name.to_lowercase();
        let rule = rule(&name).filter(|_| called.name.is_bare());
        let arguments: &[Expression] = match &called.arguments {
            Arguments::Star if rule != Some(Rule::Count) && !rule.is_some_and(Rule::is_aggregate) => {
                return Err(Error::syntax("*", line));
            }
            Arguments::Star => &[],
            Arguments::Values(values) => values,
        };
        if let Some(Rule::Refused(why)) = rule {
            return Err(Error::refused(&format!("{name}()"), why, line));
        }
        let is_aggregate = rule.is_some_and(Rule::is_aggregate);
        if called.distinct && !is_aggregate {
            return Err(Error::keyword("distinct", line));
        }
        if !called.within_group.is_empty() && rule != Some(Rule::StringAgg) {
            return Err(Error::refused(&format!("{name}() within group"), NONE_SUCH, line));
        }
        let over = match (&called.over, rule) {
            (None, Some(rule)) if rule.is_ranking() => {
                let text = format!("The function '{name}' must have an OVER clause.");
                return Err(Error::new(10753, text, line));
            }
            (None, _) => None,
            (Some(window), Some(rule)) if is_aggregate || rule.is_ranking() => {
                Some(self.window(window, rule, &name, line)?)
            }
            (Some(_), _) => {
                return Err(Error::refused(
                    &format!("{name} over (…)"),
                    "no such window function is known",
                    line,
                ));
            }
        };
        let Some(rule) = rule else {
            let is_own = !called.name.is_bare() && self.dialect().refuses_unknown_functions;
            return self.passed_on(&called.name, arguments, if is_own { Mark::Owned } else { Mark::None });
        };
        self.note(|facts| facts.varies |= rule.varies());
        let translated =
            CallTranslation { translation: self, name: &name, of: called, arguments, over, line };
        let value = translated.written(rule)?;
        Ok(match self.dialect().empty_result_is_null && MAY_BE_EMPTY.contains(&&*name) {
            true => {
                let nullif = |text: Scalar| call("nullif", [text, Scalar::text("")]);
                let sql = match value.of.filter(Type::folds) {
                    // PostgreSQL would search for an operator of its own
                    Some(of) => nullif(value.sql.clone().cast("text")).cast(of.sql()),
                    None => nullif(value.sql.clone()),
                };
                value.with_sql(sql)
            }
            false => value,
        })
    }

    /// A function of the site or of PostgreSQL. The arguments of one with a schema are converted to the types of its
    /// parameters like values of columns; those of any other remain unchanged, texts without a type.
    pub fn passed_on(
        &mut self,
        name: &ObjectName,
        arguments: &[Expression],
        mark: Mark,
    ) -> Result<Value, Error> {
        let (function, given, types) = self.passed_on_of(name, arguments, false)?;
        let sql = Call { function: function.clone().into(), arguments: given, mark, ..Call::default() };
        let of = self.signature(&function, &types).and_then(|signature| signature.returns);
        Ok(Value::of(self.owned(name, sql.into())?, of))
    }

    /// The signature of a function, by its name in SQL, called with arguments of these types.
    pub fn signature(&mut self, function: &str, arguments: &[Option<Type>]) -> Option<Signature> {
        let known = self.scope.function(function);
        self.variables.note_use(&function_key(function), None);
        known?.called(arguments).cloned()
    }

    /// `are_rows`: it is in FROM.
    pub fn passed_on_of(
        &mut self,
        name: &ObjectName,
        arguments: &[Expression],
        are_rows: bool,
    ) -> Result<PassedOn, Error> {
        let line = name.at.line;
        let is_system = name.owner == SYSTEM;
        self.note(|facts| *if is_system { &mut facts.varies } else { &mut facts.calls } = true);
        let mut parts = Vec::new();
        for part in [schema_of(name), &name.name] {
            if !part.is_empty() {
                parts.push(identifier(part, line)?);
            }
        }
        // an omitted parameter uses its default, as do the last ones
        let is_given = |argument: &Expression| !matches!(argument, Expression::Default(_));
        let given = arguments.iter().rposition(is_given).map_or(0, |last| last + 1);
        let (mut values, mut types) = (Vec::with_capacity(given), Vec::with_capacity(given));
        for argument in &arguments[..given] {
            if let Expression::Default(at) = argument {
                return Err(Error::refused("default", "it stands before an argument that is given", *at));
            }
            let value = self.value(argument)?;
            types.push(value.of);
            values.push(match value.text() {
                _ if !name.owner.is_empty() && name.owner != SYSTEM => carried(&value, self.dialect()),
                Some(text) => Scalar::text(text),
                None => value.sql,
            });
        }
        // FROM cannot contain a condition
        let first = values.iter_mut().find(|value| **value != Scalar::Null).filter(|_| are_rows);
        if let Some(first) = first {
            *first = self.owned(name, std::mem::replace(first, Scalar::Null))?;
        }
        Ok((parts.join("."), values, types))
    }

    /// The value if the current database has the function `dbo.name`: PostgreSQL's own functions are not dbo's.
    fn owned(&self, function: &ObjectName, value: Scalar) -> Result<Scalar, Error> {
        let is_elsewhere = !function.database.is_empty();
        if !function.owner.eq_ignore_ascii_case("dbo") || is_elsewhere || self.scope.definition {
            return Ok(value);
        }
        let own = Scalar::Text(folded(&function.name, function.at.line)?);
        Ok(call("tsql.if_owned", [value, call("tsql.is_owned", [own])]))
    }
}

/// Functions that compare letters.
const SEARCHING: [&str; 5] = ["charindex", "patindex", "replace", "str_replace", "translate"];
/// Functions whose result may be a text without characters.
const MAY_BE_EMPTY: [&str; 10] =
    ["left", "ltrim", "replicate", "right", "rtrim", "space", "str_replace", "stuff", "substring", "trim"];

impl CallTranslation<'_, '_, '_> {
    fn written(mut self, rule: Rule) -> Result<Value, Error> {
        match rule {
            Rule::Plain { function, takes, least, gives } => self.plain(function, takes, least, gives),
            Rule::SameLength => self.same_length(),
            Rule::Side => self.side(),
            Rule::Substring => self.substring(),
            Rule::Str => self.str(),
            Rule::Concat => self.concat(),
            Rule::DataLength => self.data_length(),
            Rule::Replicate => self.replicate(),
            Rule::Length => self.length(),
            Rule::KeepsKind => self.keeps_kind(),
            Rule::Round => self.round(),
            Rule::Power => self.power(),
            Rule::Rand => self.rand(),
            Rule::IsNumeric => self.is_numeric(),
            Rule::Now { clock, gives } => self.now(&clock, gives),
            Rule::DateAdd => self.date_add(),
            Rule::DateDiff { gives } => self.date_diff(gives),
            Rule::DatePart => self.date_of(),
            Rule::DateName => self.date_name(),
            Rule::Part => self.part(),
            Rule::EndOfMonth => self.end_of_month(),
            Rule::AtOffset => self.at_offset(),
            Rule::IsNull => self.is_null(),
            Rule::Coalesce => self.coalesce(),
            Rule::NullIf => self.null_if(),
            Rule::Iif => self.iif(),
            Rule::Choose => self.choose(),
            Rule::Count => self.number_of_rows(),
            Rule::Sum => self.sum(),
            Rule::Extreme => self.extreme(),
            Rule::Spread(function) => self.spread(function),
            Rule::StringAgg => self.string_agg(),
            Rule::Ranking => self.ranking(),
            Rule::NTile => self.n_tile(),
            Rule::Neighbour => self.neighbour(),
            Rule::Grouping => self.grouping(),
            Rule::Session => self.session(),
            Rule::System => self.system(),
            Rule::SystemNumeric => {
                let value = self.system()?;
                Ok(Value::cast(value.sql, numeric(38, 0)))
            }
            Rule::HashBytes => self.hash_bytes(),
            Rule::Format => self.format(),
            Rule::OfAll => self.of_all(),
            Rule::ConcatWith => self.concat_with(),
            Rule::FormatMessage => self.format_message(),
            Rule::FromParts(gives) => self.of_parts(gives),
            Rule::DateTrunc => self.date_trunc(),
            Rule::Edge => self.edge(),
            Rule::Share => self.share(),
            Rule::NextValue => self.next_value(),
            Rule::Rows | Rule::SystemRows => {
                Err(Error::refused(&format!("{}()", self.name), "it gives rows: name it in FROM", self.line))
            }
            Rule::NewId => {
                self.count(0, 0)?;
                self.translation.around.new_ids += 1;
                Ok(Value::new(call("gen_random_uuid", []), NEW_ID))
            }
            Rule::VariantProperty => self.variant_property(),
            Rule::JsonModify => self.json_modify(),
            Rule::TextPointer => self.text_pointer(),
            Rule::TextValid => self.text_valid(),
            Rule::Refused(why) => Err(Error::refused(&format!("{}()", self.name), why, self.line)),
        }
    }

    fn plain(
        &mut self,
        function: &'static str,
        takes: &str,
        least: usize,
        gives: Type,
    ) -> Result<Value, Error> {
        let number = self.count(least, takes.len())?;
        let mut arguments = Vec::with_capacity(number);
        let mut gives = gives;
        let mut is_of_database = self.translation.scope.folds && SEARCHING.contains(&function);
        for (place, kind) in takes.chars().take(number).enumerate() {
            arguments.push(match kind {
                't' => {
                    let value = self.value(place)?;
                    gives.twin |= gives.is_text() && value.is_national();
                    gives = gives.with_case(value.case());
                    is_of_database &= value.of.is_some() && value.case() == Case::OfDatabase;
                    self.as_text(&value)?
                }
                'i' if function == "stuff" => self.whole(place)?,
                'i' => self.integer(place)?,
                'l' => self.of_type(place, BIGINT)?,
                'b' => self.of_type(place, VARBINARY)?,
                _ => self.float(place)?,
            });
        }
        if is_of_database {
            let arguments: Vec<Scalar> = arguments
                .into_iter()
                .zip(takes.chars())
                .map(|(argument, kind)| match kind {
                    't' => argument.cast(VARCHAR.with_case(Case::Ignored).sql()),
                    _ => argument,
                })
                .collect();
            let sql = call(format!("tsql.{function}"), arguments);
            return Ok(Value::new(if gives.is_text() { sql.cast(VARCHAR.sql()) } else { sql }, gives));
        }
        let schema = if function == "pi" { "" } else { "tsql." };
        Ok(Value::new(call(format!("{schema}{function}"), arguments), gives))
    }

    fn is_null(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let (first, second) = (self.value(0)?, self.value(1)?);
        if first.is_null() {
            return Ok(second);
        }
        let Some(of) = first.of else {
            return Ok(Value::unknown(call("coalesce", [first.sql, second.sql])));
        };
        // the result has the length of the variable or literal
        let keeps_length = of.name == "varchar" && of.length.is_some();
        if second.is_null() && !keeps_length {
            return Ok(first);
        }
        let second = implicit(second, of, self.line, self.dialect())?.sql;
        Ok(Value::new(call("coalesce", [first.sql, self.translation.reached(second)]), of))
    }

    fn coalesce(&mut self) -> Result<Value, Error> {
        if self.arguments.len() < 2 {
            return Err(Error::new(174, "The coalesce function requires 2 or more arguments.", self.line));
        }
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in self.arguments {
            let value = self.translation.value(argument)?;
            if !value.is_null() {
                values.push(value);
            }
        }
        if values.is_empty() {
            let text = "At least one of the arguments to COALESCE must be an expression that is not NULL.";
            return Err(Error::new(4127, text, self.line));
        }
        let of = unified(values.iter().map(|value| value.of));
        let mut parts = Vec::with_capacity(values.len());
        for value in values {
            let part = match of {
                Some(of) if value.of != Some(of) => implicit(value, of, self.line, self.dialect())?.sql,
                _ => value.sql,
            };
            parts.push(if parts.is_empty() { part } else { self.translation.reached(part) });
        }
        Ok(Value::of(call("coalesce", parts), of))
    }

    /// greatest and least: nulls do not count.
    fn of_all(&mut self) -> Result<Value, Error> {
        if self.arguments.is_empty() {
            let text = format!("The {} function requires 1 to 254 arguments.", self.name);
            return Err(Error::new(189, text, self.line));
        }
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in self.arguments {
            values.push(self.translation.value(argument)?);
        }
        let known = values.iter().filter(|value| !value.is_null()).map(|value| value.of);
        let Some(of) = unified(known).map(|of| self.translation.type_by_default(of)) else {
            let parts: Vec<Scalar> = values.into_iter().map(|value| value.sql).collect();
            return Ok(Value::unknown(call(self.name.to_owned(), parts)));
        };
        let mut parts = Vec::with_capacity(values.len());
        for value in values {
            parts.push(implicit(value, of, self.line, self.dialect())?.sql);
        }
        let schema = if of == GUID { "tsql." } else { "" };
        Ok(Value::cast(call(format!("{schema}{}", self.name), parts), of))
    }

    fn null_if(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let (first, second) = (self.value(0)?, self.value(1)?);
        if first.is_null() && self.dialect().checks_arguments {
            let text = "The type of the first argument to NULLIF cannot be the NULL constant because the type of the \
                        first argument has to be known.";
            return Err(self.fail(4151, text));
        }
        let compared = self.translation.collated_together([first.clone(), second.clone()]);
        let [left, right] = compared.map(|value| value.sql);
        let sql = Scalar::either(left.tsql("=", right), Scalar::Null, first.sql);
        Ok(match first.of {
            Some(of) if of.family == Family::Money => Value::money(sql, of),
            of => Value::of(sql, of),
        })
    }

    /// `sql_variant_property(value, property)`: a value of another type becomes a sql_variant.
    fn variant_property(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let (value, property) = (self.value(0)?, self.value(1)?);
        let value = implicit(value, SQL_VARIANT, self.line, self.dialect())?.sql;
        let property = self.as_text(&property)?;
        Ok(Value::new(call("tsql.sql_variant_property", [value, property]), SQL_VARIANT))
    }

    fn iif(&mut self) -> Result<Value, Error> {
        self.count(3, 3)?;
        let condition = self.translation.condition(&self.arguments[0])?;
        self.translation.branches(vec![(condition, &self.arguments[1])], Some(&self.arguments[2]), self.line)
    }

    /// `choose(index, first, second, …)`: null beyond the last.
    fn choose(&mut self) -> Result<Value, Error> {
        if self.arguments.len() < 2 {
            return Err(Error::new(174, "The choose function requires 2 or more arguments.", self.line));
        }
        let index = self.value(0)?;
        let index = converted(index, INT, self.line, self.dialect())?.sql;
        let branches = self.arguments[1..].iter().zip(1..);
        let is = |place: i32| index.clone().infix("=", Scalar::number(place));
        let branches = branches.map(|(value, place)| (is(place), value)).collect();
        self.translation.branches(branches, None, self.line)
    }

    /// A variable that the session fills; with arguments a function of the catalogue.
    fn session(&mut self) -> Result<Value, Error> {
        if !self.arguments.is_empty() {
            return self.system();
        }
        let function = session::niladic(self.name).unwrap_or(self.name);
        let Some((variable, of)) = session::function(function) else {
            return Err(Error::refused(self.name, NONE_SUCH, self.line));
        };
        let sql = self.translation.variables.write(variable, self.line)?;
        Ok(Value::cast(sql, of))
    }

    /// The next number of a sequence.
    fn next_value(&mut self) -> Result<Value, Error> {
        let part = |place: usize| match self.arguments.get(place) {
            Some(Expression::Literal(Literal { value: LiteralValue::Text { text, .. }, .. })) => text.clone(),
            _ => String::new(),
        };
        let at = self.of.name.at;
        let sequence = names::table(&ObjectName {
            database: part(0),
            owner: part(1),
            name: part(2),
            at,
            ..ObjectName::default()
        })?;
        self.translation.note(|facts| facts.calls = true);
        Ok(Value::new(call("nextval", [Scalar::Text(sequence)]), BIGINT))
    }

    /// A function of the catalogue, in schema sys: its texts are passed without a type.
    fn system(&mut self) -> Result<Value, Error> {
        let (least, most) = system_arguments(self.name);
        self.count(least, most)?;
        let name = ObjectName {
            owner: SYSTEM.into(),
            name: self.name.to_owned(),
            at: self.of.name.at,
            ..ObjectName::default()
        };
        let value = self.translation.passed_on(&name, self.arguments, Mark::Owned)?;
        // it reads the catalogue of the server, like a system view
        self.translation.note_table(names::Relation::system_function(self.name));
        if self.arguments.iter().any(walk::has_column) {
            return Ok(value);
        }
        // a subquery is evaluated once and not for every row
        let sql = value.sql.clone().once();
        Ok(value.with_sql(sql))
    }
}

/// The number of arguments of a function of the system's catalogue.
fn system_arguments(name: &str) -> (usize, usize) {
    match name {
        "db_id" | "schema_id" | "schema_name" | "suser_id" | "user_id" => (0, 1),
        "is_srvrolemember" | "object_id" | "object_name" | "object_schema_name" => (1, 2),
        "col_length" | "col_name" | "collationproperty" | "databasepropertyex" | "objectproperty"
        | "objectpropertyex" | "parsename" | "typeproperty" => (2, 2),
        "columnproperty" | "index_col" | "indexproperty" => (3, 3),
        "has_perms_by_name" => (3, 5),
        _ => (1, 1),
    }
}
