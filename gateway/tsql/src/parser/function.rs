//! Calls of functions, also of those with special syntax.

use super::Parser;
use crate::error::Error;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

impl<'t> Parser<'t> {
    pub(super) fn niladic(&self, token: &Token<'_>) -> Expression {
        let name = ObjectName { name: token.value.to_lowercase(), at: token.at, ..ObjectName::default() };
        Expression::Function(Box::new(plain_call(name, Vec::new())))
    }

    /// The rest of a call after the name of the function.
    pub(super) fn call(&mut self, name: ObjectName) -> Result<Expression, Error> {
        let of = if name.is_bare() { name.name.to_lowercase() } else { String::new() };
        let call = self.function_call(name, &of)?;
        Ok(Expression::Function(Box::new(call)))
    }

    pub(super) fn function_call(&mut self, mut name: ObjectName, of: &str) -> Result<FunctionCall, Error> {
        self.expect_symbol("(")?;
        if of == "trim" {
            self.trimmed_side(&mut name);
        }
        let mut distinct = false;
        let arguments = if self.symbol(")") {
            Arguments::Values(Vec::new())
        } else if self.next_is_symbol("*") && self.ahead_is_symbol(1, ")") {
            self.at += 2;
            Arguments::Star
        } else {
            distinct = self.word("distinct");
            if !distinct {
                self.word("all");
            }
            let values = self.arguments(of)?;
            self.expect_symbol(")")?;
            Arguments::Values(values)
        };
        let within_group = if self.words(&["within", "group"]) {
            self.expect_symbol("(")?;
            let orderings = self.order_by()?;
            self.expect_symbol(")")?;
            orderings
        } else {
            Vec::new()
        };
        let over = if self.word("over") { Some(self.window()?) } else { None };
        Ok(FunctionCall { name, distinct, arguments, within_group, over })
    }

    /// `trim (leading …)` is `ltrim`, `trim (trailing …)` is `rtrim`.
    fn trimmed_side(&mut self, name: &mut ObjectName) {
        // a column may have such a name
        if self.ahead(1).is_none_or(|token| token.kind == TokenKind::Symbol) {
            return;
        }
        if self.word("leading") {
            "ltrim".clone_into(&mut name.name);
        } else if self.word("trailing") {
            "rtrim".clone_into(&mut name.name);
        } else {
            self.word("both");
        }
    }

    fn arguments(&mut self, of: &str) -> Result<Vec<Expression>, Error> {
        if of == "trim" {
            let first = self.value()?;
            // trim (characters from text)
            if self.word("from") {
                return Ok(vec![self.value()?, first]);
            }
            return Ok(vec![first]);
        }
        let mut place = 0;
        self.list(|parser| {
            place += 1;
            if parser.word("default") {
                return Ok(Expression::Default(parser.position()));
            }
            if of == "iif" && place == 1 {
                return parser.condition();
            }
            parser.value()
        })
    }

    fn window(&mut self) -> Result<Window, Error> {
        self.expect_symbol("(")?;
        let partition_by =
            if self.words(&["partition", "by"]) { self.list(Self::value)? } else { Vec::new() };
        let order_by = if self.next_is("order") { self.order_by()? } else { Vec::new() };
        let frame = if self.next_is_any(&["rows", "range"]) { Some(self.frame()?) } else { None };
        self.expect_symbol(")")?;
        Ok(Window { partition_by, order_by, frame })
    }

    fn frame(&mut self) -> Result<Frame, Error> {
        let at = self.position();
        let unit = if self.word("rows") { FrameUnit::Rows } else { FrameUnit::Range };
        self.at += usize::from(unit == FrameUnit::Range);
        let is_between = self.word("between");
        let start = self.frame_bound()?;
        let end = if is_between {
            self.expect_word("and")?;
            Some(self.frame_bound()?)
        } else {
            None
        };
        let counts =
            |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
        if unit == FrameUnit::Range && (counts(&start) || end.as_ref().is_some_and(counts)) {
            let text = "RANGE is only supported with UNBOUNDED and CURRENT ROW window frame delimiters.";
            return Err(Error::new(4194, text, at).with_severity(16));
        }
        Ok(Frame { unit, start, end })
    }

    fn frame_bound(&mut self) -> Result<FrameBound, Error> {
        if self.words(&["current", "row"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.words(&["unbounded", "preceding"]) {
            return Ok(FrameBound::UnboundedPreceding);
        }
        if self.words(&["unbounded", "following"]) {
            return Ok(FrameBound::UnboundedFollowing);
        }
        let rows = u32::try_from(self.integer()?).map_err(|_| self.wrong_before())?;
        if self.word("preceding") {
            return Ok(FrameBound::Preceding(rows));
        }
        self.expect_word("following")?;
        Ok(FrameBound::Following(rows))
    }

    /// `cast (value as type)`, `convert (type, value, style)`, `parse (text as type using culture)`.
    pub(super) fn conversion(&mut self) -> Result<Expression, Error> {
        let token = self.advance()?;
        let kind = match &*token.value.to_lowercase() {
            "cast" => CastKind::Cast,
            "try_cast" => CastKind::TryCast,
            "convert" => CastKind::Convert,
            "try_convert" => CastKind::TryConvert,
            "parse" => CastKind::Parse,
            _ => CastKind::TryParse,
        };
        self.expect_symbol("(")?;
        let cast = if matches!(kind, CastKind::Convert | CastKind::TryConvert) {
            let target = self.type_name()?;
            // ASE: convert (int null, value)
            self.words(&["not", "null"]);
            self.word("null");
            self.expect_symbol(",")?;
            let operand = self.value()?;
            let style = if self.symbol(",") { Some(self.value()?) } else { None };
            Cast { kind, operand, target, style, at: token.at }
        } else {
            let operand = self.value()?;
            self.expect_word("as")?;
            let target = self.type_name()?;
            let parses = matches!(kind, CastKind::Parse | CastKind::TryParse);
            let style = if parses && self.word("using") { Some(self.value()?) } else { None };
            Cast { kind, operand, target, style, at: token.at }
        };
        self.expect_symbol(")")?;
        Ok(Expression::Cast(Box::new(cast)))
    }

    /// ODBC's `{d '2000-01-01'}` and `{ts …}`, which are datetimes, `{guid …}` and `{fn function(…)}`.
    pub(super) fn escape_sequence(&mut self) -> Result<Expression, Error> {
        self.expect_symbol("{")?;
        let token = self.advance()?;
        let expression = if token.is("fn") {
            self.value()?
        } else {
            let target = match &*token.value.to_lowercase() {
                "d" | "ts" => "datetime",
                "guid" => "uniqueidentifier",
                _ => return Err(self.wrong_before()),
            };
            let text = self.advance()?;
            if !matches!(text.kind, TokenKind::Text { .. }) {
                return Err(self.wrong_before());
            }
            let target = TypeName::named(target, token.at);
            let operand = Expression::Literal(super::expression::literal(text));
            let at = token.at;
            Expression::Cast(Box::new(Cast { kind: CastKind::Cast, operand, target, style: None, at }))
        };
        self.expect_symbol("}")?;
        Ok(expression)
    }
}

pub(super) fn plain_call(name: ObjectName, values: Vec<Expression>) -> FunctionCall {
    let arguments = Arguments::Values(values);
    FunctionCall { name, distinct: false, arguments, within_group: Vec::new(), over: None }
}

/// A NULL that is not in the text.
pub(super) fn null() -> Expression {
    let (number, at) = Default::default();
    Expression::Literal(Literal { value: LiteralValue::Null, number, at })
}
