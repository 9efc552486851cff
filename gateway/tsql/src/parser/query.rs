//! Queries: select, union, order by.

use super::{wrong_at, Parser};
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// Hints of OPTION that only affect the plan, and whether a number follows.
const PLAN_HINTS: [(&str, bool); 19] = [
    ("concat union", false),
    ("expand views", false),
    ("fast", true),
    ("force order", false),
    ("hash group", false),
    ("hash join", false),
    ("hash union", false),
    ("ignore_nonclustered_columnstore_index", false),
    ("keep plan", false),
    ("keepfixed plan", false),
    ("loop join", false),
    ("maxdop", true),
    ("merge join", false),
    ("merge union", false),
    ("no_performance_spool", false),
    ("optimize for unknown", false),
    ("order group", false),
    ("recompile", false),
    ("robust plan", false),
];

impl<'t> Parser<'t> {
    /// A query with all its clauses.
    pub(super) fn query(&mut self) -> Result<Query, Error> {
        let query = self.query_before_options()?;
        self.with_options(query)
    }

    /// A query up to FOR or OPTION, which may follow it.
    pub(super) fn query_before_options(&mut self) -> Result<Query, Error> {
        let start = self.position();
        let with = self.common_tables()?;
        self.query_with(with, start)
    }

    pub(super) fn query_with(&mut self, with: Vec<CommonTable>, start: Position) -> Result<Query, Error> {
        let first = self.deeper(Self::operand)?;
        let query = self.query_after(first, start)?;
        Ok(Query { with, ..query })
    }

    /// The rest of a query whose first select has been read, up to FOR or OPTION.
    pub(super) fn query_after(&mut self, first: QueryBody, start: Position) -> Result<Query, Error> {
        let body = self.combined(first)?;
        let order_by = if self.next_is("order") { self.order_by()? } else { Vec::new() };
        let (mut offset, mut fetch) = (None, None);
        if !order_by.is_empty() && self.word("offset") {
            offset = Some(self.value()?);
            self.expect_any(&["row", "rows"])?;
            if self.next_is("fetch") && self.ahead(1).is_some_and(|next| next.is_any(&["next", "first"])) {
                self.at += 2;
                fetch = Some(self.value()?);
                self.expect_any(&["row", "rows"])?;
                self.expect_word("only")?;
            }
        }
        let at = self.since(start);
        Ok(Query {
            with: Vec::new(),
            body,
            order_by,
            offset,
            fetch,
            max_recursion: None,
            is_held: false,
            for_browse: false,
            for_json: None,
            at,
        })
    }

    /// The clauses that may follow a query that is not a value.
    pub(super) fn with_options(&mut self, query: Query) -> Result<Query, Error> {
        let for_browse = self.words(&["for", "browse"]);
        let for_json = self.for_json()?;
        let max_recursion = self.query_options()?;
        let is_held = self.at_isolation()?;
        let at = self.since(query.at);
        Ok(Query { max_recursion, is_held, for_browse, for_json, at, ..query })
    }

    /// `(select …)`
    pub(super) fn subquery(&mut self) -> Result<Query, Error> {
        self.expect_symbol("(")?;
        if !self.next_is("select") && !self.next_is_symbol("(") {
            return Err(self.wrong());
        }
        let query = self.deeper(Self::query)?;
        self.expect_symbol(")")?;
        Ok(query)
    }

    /// `with a (b) as (select …), …`, if there is one.
    pub(super) fn common_tables(&mut self) -> Result<Vec<CommonTable>, Error> {
        if !self.word("with") {
            return Ok(Vec::new());
        }
        if self.next_is("xmlnamespaces") {
            return Err(Error::refused(
                "with xmlnamespaces",
                "a result is rows and columns",
                self.position(),
            ));
        }
        self.list(|parser| {
            let name = parser.name()?;
            let columns =
                if parser.next_is_symbol("(") { parser.names_in_parentheses()? } else { Vec::new() };
            parser.expect_word("as")?;
            Ok(CommonTable { name, columns, query: parser.subquery()? })
        })
    }

    /// Selects combined by UNION, EXCEPT and, with higher precedence, INTERSECT.
    fn combined(&mut self, first: QueryBody) -> Result<QueryBody, Error> {
        let first = self.intersected(first)?;
        let mut others = Vec::new();
        loop {
            let operator = if self.word("union") {
                if self.word("all") {
                    SetOperator::UnionAll
                } else {
                    SetOperator::Union
                }
            } else if self.word("except") {
                SetOperator::Except
            } else {
                break;
            };
            self.word("distinct");
            let operand = self.deeper(Self::operand)?;
            others.push((operator, self.intersected(operand)?));
        }
        Ok(joined(first, others))
    }

    fn intersected(&mut self, first: QueryBody) -> Result<QueryBody, Error> {
        let mut others = Vec::new();
        while self.word("intersect") {
            others.push((SetOperator::Intersect, self.deeper(Self::operand)?));
        }
        Ok(joined(first, others))
    }

    fn operand(&mut self) -> Result<QueryBody, Error> {
        if self.next_is_symbol("(") {
            return self.subquery().map(Box::new).map(QueryBody::Parenthesised);
        }
        self.select().map(Box::new).map(QueryBody::Select)
    }

    fn select(&mut self) -> Result<Select, Error> {
        let start = self.position();
        self.expect_word("select")?;
        let distinct = self.word("distinct");
        if !distinct {
            self.word("all");
        }
        let top = self.top()?;
        let items = self.list(Self::item)?;
        let into = if self.word("into") { Some(self.object_name()?) } else { None };
        let from = if self.word("from") { self.list(Self::table_source)? } else { Vec::new() };
        let condition = if self.word("where") { Some(self.condition()?) } else { None };
        let group_by = if self.word("group") { self.group_by()? } else { Vec::new() };
        let having = if self.word("having") { Some(self.condition()?) } else { None };
        let at = self.since(start);
        Ok(Select { distinct, top, items, into, from, condition, group_by, having, at })
    }

    fn group_by(&mut self) -> Result<Vec<Grouping>, Error> {
        self.expect_word("by")?;
        if self.next_is("all") {
            return Err(Error::refused("group by all", "it gives groups without rows", self.position()));
        }
        let items = self.list(Self::grouping)?;
        Ok(if self.words(&["with", "rollup"]) {
            vec![Grouping::Rollup(items)]
        } else if self.words(&["with", "cube"]) {
            vec![Grouping::Cube(items)]
        } else {
            items
        })
    }

    fn grouping(&mut self) -> Result<Grouping, Error> {
        if self.words(&["grouping", "sets"]) {
            return self.in_parentheses(Self::grouping_set).map(Grouping::Sets);
        }
        self.grouping_set()
    }

    fn grouping_set(&mut self) -> Result<Grouping, Error> {
        for (word, of) in [("rollup", Grouping::Rollup as fn(_) -> _), ("cube", Grouping::Cube)] {
            if self.next_is(word) && self.ahead_is_symbol(1, "(") {
                self.at += 1;
                return self.in_parentheses(Self::grouped_values).map(of);
            }
        }
        self.grouped_values()
    }

    /// `a`, `(a, b)`, `()`
    fn grouped_values(&mut self) -> Result<Grouping, Error> {
        let start = self.at;
        if self.symbol("(") {
            if self.symbol(")") {
                return Ok(Grouping::Values(Vec::new()));
            }
            let values = self.list(Self::value)?;
            if values.len() > 1 {
                self.expect_symbol(")")?;
                return Ok(Grouping::Values(values));
            }
            self.at = start;
        }
        self.value().map(Grouping::Value)
    }

    /// `top n`, `top (n)`, with PERCENT and WITH TIES.
    pub(super) fn top(&mut self) -> Result<Option<Top>, Error> {
        let at = self.position();
        if !self.word("top") {
            return Ok(None);
        }
        let in_parentheses = self.next_is_symbol("(");
        let bare = self.peek().filter(|_| !in_parentheses).map(Token::shown);
        let count = if in_parentheses && self.ahead_is(1, "select") {
            self.operand_with_sign()?
        } else if in_parentheses {
            self.at += 1;
            let count = self.value()?;
            self.expect_symbol(")")?;
            count
        } else {
            let plain = |token: &Token<'_>| {
                matches!(
                    token.kind,
                    TokenKind::Integer | TokenKind::Decimal | TokenKind::Float | TokenKind::Variable
                )
            };
            match self.peek() {
                Some(token) if token.kind == TokenKind::Variable => Expression::Variable(self.variable()?),
                Some(token) if plain(token) => {
                    self.at += 1;
                    Expression::Literal(super::expression::literal(token))
                }
                _ => return Err(Error::keyword("top", at)),
            }
        };
        let percent = self.word("percent");
        let with_ties = self.words(&["with", "ties"]);
        Ok(Some(Top { count, bare, percent, with_ties, at }))
    }

    /// `*`, `t.*`, `value as alias`, `alias = value`, `@variable = value`.
    pub(super) fn item(&mut self) -> Result<SelectItem, Error> {
        let start = self.position();
        if self.symbol("*") {
            return Ok(SelectItem::Star { table: None, at: start });
        }
        if let Some(parts) = self.parts_before_star() {
            let table = self.object_name_parts(parts)?;
            self.at += 2;
            return Ok(SelectItem::Star { table: Some(table), at: start });
        }
        if self.next_is_variable() {
            if let Some(operator) = self.ahead(1).and_then(assignment) {
                let variable = self.own_variable()?;
                self.at += 1;
                return Ok(SelectItem::Assign { variable, operator, value: self.value()? });
            }
        }
        if self.next_is("identity") && self.ahead_is_symbol(1, "(") {
            return self.identity_item();
        }
        if self.ahead_is_symbol(1, "=") {
            if let Some(alias) = self.peek().and_then(alias) {
                self.at += 2;
                return Ok(SelectItem::Value { value: self.value()?, alias: Some(alias) });
            }
        }
        let value = self.value()?;
        Ok(SelectItem::Value { value, alias: self.column_alias()? })
    }

    /// The number of tokens before `.*`, if a name with `.*` follows.
    fn parts_before_star(&self) -> Option<usize> {
        let mut ahead = 0;
        loop {
            if !self.ahead(ahead).is_some_and(Token::is_name) {
                return None;
            }
            ahead += 1;
            while self.ahead_is_symbol(ahead, ".") && self.ahead_is_symbol(ahead + 1, ".") {
                ahead += 1;
            }
            if !self.ahead_is_symbol(ahead, ".") {
                return None;
            }
            if self.ahead_is_symbol(ahead + 1, "*") {
                return Some(ahead);
            }
            ahead += 1;
        }
    }

    /// The name of an object in the next tokens.
    fn object_name_parts(&mut self, tokens: usize) -> Result<crate::tree::ObjectName, Error> {
        let end = self.at + tokens;
        let part = Parser { tokens: self.tokens.get(..end).unwrap_or_default(), ..*self };
        let mut part = part;
        let name = part.object_name()?;
        self.at = end;
        Ok(name)
    }

    /// `identity (type, seed, increment) as name`
    fn identity_item(&mut self) -> Result<SelectItem, Error> {
        let start = self.position();
        self.at += 1;
        self.expect_symbol("(")?;
        let type_ = self.type_name()?;
        let mut identity = Identity { seed: 1, increment: 1 };
        if self.symbol(",") {
            identity.seed = self.integer()?;
            self.expect_symbol(",")?;
            identity.increment = self.integer()?;
        }
        self.expect_symbol(")")?;
        let alias = self.column_alias()?;
        Ok(SelectItem::Identity { type_, identity, alias, at: start })
    }

    /// `as name`, `name`, `'name'`.
    fn column_alias(&mut self) -> Result<Option<Name>, Error> {
        let has_as = self.word("as");
        let is_alias =
            |token: &&Token<'_>| has_as || begins_no_statement(token) && !self.ahead_is_symbol(1, ":");
        let found = self.peek().filter(is_alias).and_then(alias);
        if has_as && found.is_none() {
            return Err(self.wrong());
        }
        self.at += usize::from(found.is_some());
        Ok(found)
    }

    pub(super) fn order_by(&mut self) -> Result<Vec<Ordering>, Error> {
        self.expect_word("order")?;
        self.expect_word("by")?;
        self.list(|parser| {
            let value = parser.value()?;
            let descending = parser.word("desc");
            if !descending {
                parser.word("asc");
            }
            Ok(Ordering { value, descending })
        })
    }

    /// OPTION with hints that only affect the plan; other clauses after a query are refused.
    fn query_options(&mut self) -> Result<Option<u16>, Error> {
        let Some(token) = self.peek() else { return Ok(None) };
        let of_cursor = self.ahead(1).is_some_and(|next| next.is_any(&["read", "update"]));
        if token.is("option") {
            return self.plan_hints();
        }
        if token.is("compute") || (token.is("for") && !of_cursor) {
            return Err(self.refused_word(token));
        }
        Ok(None)
    }

    /// ASE's `at isolation`: whether writers must wait for the end of the transaction. Levels 0 and 1 require no more
    /// than every query here does.
    pub(super) fn at_isolation(&mut self) -> Result<bool, Error> {
        if !self.words(&["at", "isolation"]) {
            return Ok(false);
        }
        if self.word("read") {
            return self.expect_any(&["uncommitted", "committed"]).map(|_| false);
        }
        if self.words(&["repeatable", "read"]) || self.word("serializable") {
            return Ok(true);
        }
        let token = self.advance()?;
        match &*token.value {
            "0" | "1" => Ok(false),
            "2" | "3" => Ok(true),
            _ => Err(wrong_at(token)),
        }
    }

    /// `option (hint, …)`: planning hints are ignored, as PostgreSQL plans. A hint that would change the result is
    /// refused, except maxrecursion, whose number is returned.
    pub(super) fn plan_hints(&mut self) -> Result<Option<u16>, Error> {
        let mut max_recursion = None;
        if !self.word("option") {
            return Ok(max_recursion);
        }
        self.expect_symbol("(")?;
        loop {
            let at = self.position();
            let hint: Vec<&str> = std::iter::from_fn(|| {
                let token = self.peek().filter(|token| !token.is_symbol(",") && !token.is_symbol(")"))?;
                self.at += 1;
                Some(&*token.value)
            })
            .collect();
            let hint = hint.join(" ").to_lowercase();
            if let Some(number) = hint.strip_prefix("maxrecursion ") {
                max_recursion = Some(recursions(number, at)?);
            }
            let is_known = max_recursion.is_some() && hint.starts_with("maxrecursion ")
                || PLAN_HINTS.iter().any(|(first, counts)| match hint.strip_prefix(first) {
                    Some("") => !counts,
                    Some(number) => *counts && number.trim_start().parse::<u32>().is_ok(),
                    None => false,
                });
            if !is_known {
                return Err(Error::refused(&format!("option ({hint})"), "PostgreSQL plans by itself", at));
            }
            if self.symbol(")") {
                return Ok(max_recursion);
            }
            self.expect_symbol(",")?;
        }
    }

    /// The error for a keyword of queries that is not supported.
    pub(super) fn refused_word(&self, token: &Token<'_>) -> Error {
        let word = token.value.to_lowercase();
        let why = match &*word {
            "compute" => "use group by, or two queries",
            "for" => "a result is rows and columns",
            "pivot" => "it takes a query in parentheses whose columns are named",
            "unpivot" => "it takes a query in parentheses whose columns are named",
            "values" => "select … union all does the same",
            _ => return self.wrong(),
        };
        Error::refused(&word, why, token.at)
    }
}

/// The number of `option (maxrecursion n)`.
fn recursions(number: &str, at: Position) -> Result<u16, Error> {
    const MOST: u32 = 32_767;
    match number.parse::<u32>() {
        Ok(number) if number <= MOST => Ok(number as u16),
        Ok(number) => {
            let text = format!(
                "The value {number} specified for the MAXRECURSION option exceeds the allowed maximum of {MOST}."
            );
            Err(Error::new(310, text, at).with_severity(15))
        }
        Err(_) => Err(Error::refused(&format!("option (maxrecursion {number})"), "it takes a number", at)),
    }
}

fn joined(first: QueryBody, others: Vec<(SetOperator, QueryBody)>) -> QueryBody {
    if others.is_empty() {
        return first;
    }
    QueryBody::Combined { first: Box::new(first), others }
}

/// A word that can follow a value without beginning a statement.
pub(super) fn begins_no_statement(token: &Token<'_>) -> bool {
    !matches!(token.kind, TokenKind::Word(class) if class != Class::Plain)
}

/// The name of a result's column, which may be written as a text.
fn alias(token: &Token<'_>) -> Option<Name> {
    let is_text = matches!(token.kind, TokenKind::Text { .. });
    (is_text || super::names::is_free(token)).then(|| Name { text: token.value.to_string(), at: token.at })
}

/// `=`, `+=` and other assignment operators.
pub(super) fn assignment(token: &Token<'_>) -> Option<AssignOperator> {
    use AssignOperator as Operator;
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match &*token.value {
        "=" => Operator::Set,
        "+=" => Operator::Add,
        "-=" => Operator::Subtract,
        "*=" => Operator::Multiply,
        "/=" => Operator::Divide,
        "%=" => Operator::Modulo,
        "&=" => Operator::BitAnd,
        "|=" => Operator::BitOr,
        "^=" => Operator::BitXor,
        _ => return None,
    })
}

impl Parser<'_> {
    /// A comma-separated list of variables.
    pub(super) fn variables(&mut self) -> Result<Vec<Variable>, Error> {
        self.list(Self::own_variable)
    }
}
