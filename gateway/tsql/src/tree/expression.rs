//! Expressions: values and conditions.

use super::{Name, ObjectName, Ordering, Position, Query, TokenNumber, TypeName, Variable};

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Literal(Literal),
    Variable(Variable),
    Column(ColumnName),
    /// `default`, as a value of an insert, an update or an argument.
    Default(Position),
    Unary {
        operator: UnaryOperator,
        operand: Box<Expression>,
        at: Position,
    },
    Binary {
        operator: BinaryOperator,
        left: Box<Expression>,
        right: Box<Expression>,
        at: Position,
    },
    Case(Box<Case>),
    Cast(Box<Cast>),
    Function(Box<FunctionCall>),
    /// `(select …)` as a value.
    Subquery(Box<Query>),
    /// `(select … for xml path (''))`: the concatenated values of all rows.
    Xml(Box<Xml>),
    /// `value collate name`
    Collate {
        operand: Box<Expression>,
        collation: Name,
    },
    /// `value at time zone zone`
    AtTimeZone {
        operand: Box<Expression>,
        zone: Box<Expression>,
    },

    // conditions
    /// At least two.
    And(Vec<Expression>),
    /// At least two.
    Or(Vec<Expression>),
    Not(Box<Expression>),
    IsNull {
        operand: Box<Expression>,
        negated: bool,
    },
    /// `a is [not] distinct from b`
    IsDistinct {
        left: Box<Expression>,
        right: Box<Expression>,
        negated: bool,
    },
    Between {
        operand: Box<Expression>,
        low: Box<Expression>,
        high: Box<Expression>,
        negated: bool,
    },
    Like {
        operand: Box<Expression>,
        pattern: Box<Expression>,
        escape: Option<Box<Expression>>,
        negated: bool,
    },
    In {
        operand: Box<Expression>,
        values: Vec<Expression>,
        negated: bool,
    },
    InQuery {
        operand: Box<Expression>,
        query: Box<Query>,
        negated: bool,
    },
    Exists(Box<Query>),
    /// `a > all (select …)`
    Quantified {
        operator: BinaryOperator,
        left: Box<Expression>,
        quantifier: Quantifier,
        query: Box<Query>,
    },
}

impl Expression {
    /// Whether it is a condition, not a value.
    pub fn is_condition(&self) -> bool {
        match self {
            Expression::And(_)
            | Expression::Or(_)
            | Expression::Not(_)
            | Expression::IsNull { .. }
            | Expression::IsDistinct { .. }
            | Expression::Between { .. }
            | Expression::Like { .. }
            | Expression::In { .. }
            | Expression::InQuery { .. }
            | Expression::Exists(_)
            | Expression::Quantified { .. } => true,
            Expression::Binary { operator, .. } => operator.is_comparison(),
            // `update (column)` of a trigger
            Expression::Function(call) => {
                call.name.is_bare() && call.name.name.eq_ignore_ascii_case("update")
            }
            _ => false,
        }
    }

    /// A column compared under another collation is still a column, and keeps its name.
    pub fn without_collation(&self) -> &Expression {
        match self {
            Expression::Collate { operand, .. } => operand,
            other => other,
        }
    }

    /// The position of its first token.
    pub fn at(&self) -> Position {
        match self {
            Expression::Literal(literal) => literal.at,
            Expression::Variable(variable) => variable.at,
            Expression::Column(column) => column.at,
            Expression::Default(at) | Expression::Unary { at, .. } => *at,
            Expression::Case(case) => case.at,
            Expression::Cast(cast) => cast.at,
            Expression::Function(call) => call.name.at,
            Expression::Subquery(query) | Expression::Exists(query) => query.at,
            Expression::Xml(xml) => xml.query.at,
            Expression::And(operands) | Expression::Or(operands) => {
                operands.first().map(Expression::at).unwrap_or_default()
            }
            Expression::Binary { left: first, .. }
            | Expression::Collate { operand: first, .. }
            | Expression::AtTimeZone { operand: first, .. }
            | Expression::Not(first)
            | Expression::IsNull { operand: first, .. }
            | Expression::IsDistinct { left: first, .. }
            | Expression::Between { operand: first, .. }
            | Expression::Like { operand: first, .. }
            | Expression::In { operand: first, .. }
            | Expression::InQuery { operand: first, .. }
            | Expression::Quantified { left: first, .. } => first.at(),
        }
    }
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    pub value: LiteralValue,
    /// The number of the literal in the text, from 0: cached programs serve texts with other literals.
    pub number: TokenNumber,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralValue {
    Null,
    /// Digits.
    Integer(String),
    /// Digits with a decimal point.
    Decimal(String),
    /// Digits with an exponent.
    Float(String),
    /// The amount alone: digits that may have a sign and a decimal point.
    Money(String),
    /// The hexadecimal digits of `0x…`.
    Binary(String),
    Text {
        text: String,
        national: bool,
    },
}

/// `a`, `t.a`, `owner.t.a`, `database..t.a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub table: Option<Box<ObjectName>>,
    pub column: String,
    pub at: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    Plus,
    Minus,
    /// `~`
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    Multiply,
    Divide,
    Modulo,
    Add,
    Subtract,
    /// `||`
    Concatenate,
    BitAnd,
    BitOr,
    BitXor,
    Equal,
    /// `<>` and `!=`
    NotEqual,
    Less,
    /// `<=` and `!>`
    LessOrEqual,
    Greater,
    /// `>=` and `!<`
    GreaterOrEqual,
    /// `*=`: the old outer join
    LeftOuter,
    /// `=*`
    RightOuter,
}

impl BinaryOperator {
    pub fn is_comparison(self) -> bool {
        use BinaryOperator as Operator;
        matches!(
            self,
            Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual
                | Operator::LeftOuter
                | Operator::RightOuter
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    All,
    /// `any` and `some`
    Any,
}

/// A query whose rows become one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Xml {
    pub query: Query,
    pub form: XmlForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlForm {
    /// XML-escaped: `&lt;` for `<`.
    Written,
    /// Unescaped: `for xml path (''), type).value ('.', 'nvarchar(max)')`
    Value {
        national: bool,
        /// `text()[1]` instead of `.`: null if there are no characters.
        of_text: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `case operand when value …`: the conditions are then values.
    pub operand: Option<Expression>,
    pub branches: Vec<(Expression, Expression)>,
    pub otherwise: Option<Expression>,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    pub kind: CastKind,
    pub operand: Expression,
    pub target: TypeName,
    /// The style of `convert (type, value, style)`.
    pub style: Option<Expression>,
    pub at: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    Cast,
    TryCast,
    Convert,
    TryConvert,
    /// `parse (text as type)`; its style is the culture
    Parse,
    TryParse,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// `current_timestamp`, `user` and similar functions without parentheses are calls without arguments.
    pub name: ObjectName,
    pub distinct: bool,
    pub arguments: Arguments,
    /// `within group (order by …)`
    pub within_group: Vec<Ordering>,
    pub over: Option<Window>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// `count(*)`
    Star,
    /// The part name of `datepart(year, …)` is a column without a table.
    Values(Vec<Expression>),
}

/// `over (partition by … order by … rows …)`
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub partition_by: Vec<Expression>,
    pub order_by: Vec<Ordering>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: Option<FrameBound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(u32),
    CurrentRow,
    Following(u32),
    UnboundedFollowing,
}
