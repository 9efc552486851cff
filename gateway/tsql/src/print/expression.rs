use super::{list, Optional, Parenthesised, Quoted};
use crate::lexer::as_quoted;
use crate::tree::*;
use std::fmt::{self, Display, Formatter};

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const COMPLEMENT: u8 = 7;
const POSTFIX: u8 = 8;
const OPERAND: u8 = 9;

/// The precedence of the outermost operator of an expression.
fn power(expression: &Expression) -> u8 {
    match expression {
        Expression::Or(_) => OR,
        Expression::And(_) => AND,
        Expression::Not(_) => NOT,
        Expression::Function(_) => OPERAND,
        Expression::Binary { operator, .. } => power_of(*operator),
        condition if condition.is_condition() => COMPARISON,
        Expression::Unary { operator: UnaryOperator::Complement, .. } => COMPLEMENT,
        // the precedence of a sign differs between the dialects: SUM is correct in both
        Expression::Unary { .. } => SUM,
        Expression::Collate { .. } | Expression::AtTimeZone { .. } => POSTFIX,
        _ => OPERAND,
    }
}

fn power_of(operator: BinaryOperator) -> u8 {
    use BinaryOperator as Operator;
    match operator {
        Operator::Multiply | Operator::Divide | Operator::Modulo => PRODUCT,
        operator if operator.is_comparison() => COMPARISON,
        _ => SUM,
    }
}

/// An operand, in parentheses unless its precedence is at least this.
struct At<'a>(&'a Expression, u8);

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if power(self.0) >= self.1 {
            return self.0.fmt(f);
        }
        write!(f, "({})", self.0)
    }
}

fn not(negated: bool) -> &'static str {
    if negated {
        "not "
    } else {
        ""
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Literal(literal) => literal.fmt(f),
            Expression::Variable(variable) => variable.fmt(f),
            Expression::Column(column) => column.fmt(f),
            Expression::Default(_) => f.write_str("default"),
            Expression::Unary { operator, operand, .. } => {
                // with a blank, since -- would begin a comment
                write!(f, "{operator} {}", At(operand, COMPLEMENT))
            }
            Expression::Binary { operator, left, right, .. } => {
                let power = power_of(*operator);
                let least = if power == COMPARISON { SUM } else { power };
                write!(f, "{} {operator} {}", At(left, least), At(right, power + 1))
            }
            Expression::Case(case) => case.fmt(f),
            Expression::Cast(cast) => cast.fmt(f),
            Expression::Function(call) => call.fmt(f),
            Expression::Subquery(query) => Parenthesised(query).fmt(f),
            Expression::Xml(xml) => {
                write!(f, "({} for xml path ('')", xml.query)?;
                match xml.form {
                    XmlForm::Written => f.write_str(")"),
                    XmlForm::Value { national, of_text } => {
                        let n = if national { "n" } else { "" };
                        let path = if of_text { "text()[1]" } else { "." };
                        write!(f, ", type).value('{path}', '{n}varchar(max)')")
                    }
                }
            }
            Expression::Collate { operand, collation } => {
                write!(f, "{} collate {collation}", At(operand, POSTFIX))
            }
            Expression::AtTimeZone { operand, zone } => {
                write!(f, "{} at time zone {}", At(operand, POSTFIX), At(zone, OPERAND))
            }
            Expression::And(operands) => junction(f, operands, " and ", NOT),
            Expression::Or(operands) => junction(f, operands, " or ", AND),
            Expression::Not(operand) => write!(f, "not {}", At(operand, NOT)),
            Expression::IsNull { operand, negated } => {
                write!(f, "{} is {}null", At(operand, SUM), not(*negated))
            }
            Expression::IsDistinct { left, right, negated } => {
                write!(f, "{} is {}distinct from {}", At(left, SUM), not(*negated), At(right, SUM))
            }
            Expression::Between { operand, low, high, negated } => {
                let (low, high) = (At(low, SUM), At(high, SUM));
                write!(f, "{} {}between {low} and {high}", At(operand, SUM), not(*negated))
            }
            Expression::Like { operand, pattern, escape, negated } => {
                write!(f, "{} {}like {}", At(operand, SUM), not(*negated), At(pattern, SUM))?;
                Optional(" escape ", escape).fmt(f)
            }
            Expression::In { operand, values, negated } => {
                write!(f, "{} {}in ({})", At(operand, SUM), not(*negated), list(values))
            }
            Expression::InQuery { operand, query, negated } => {
                write!(f, "{} {}in {}", At(operand, SUM), not(*negated), Parenthesised(query))
            }
            Expression::Exists(query) => write!(f, "exists {}", Parenthesised(query)),
            Expression::Quantified { operator, left, quantifier, query } => {
                let quantifier = match quantifier {
                    Quantifier::All => "all",
                    Quantifier::Any => "any",
                };
                write!(f, "{} {operator} {quantifier} {}", At(left, SUM), Parenthesised(query))
            }
        }
    }
}

fn junction(f: &mut Formatter<'_>, operands: &[Expression], between: &str, least: u8) -> fmt::Result {
    for (place, operand) in operands.iter().enumerate() {
        write!(f, "{}{}", if place == 0 { "" } else { between }, At(operand, least))?;
    }
    Ok(())
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.value {
            LiteralValue::Null => f.write_str("null"),
            LiteralValue::Integer(digits) | LiteralValue::Decimal(digits) | LiteralValue::Float(digits) => {
                f.write_str(digits)
            }
            LiteralValue::Money(amount) => write!(f, "${amount}"),
            LiteralValue::Binary(digits) => write!(f, "0x{digits}"),
            LiteralValue::Text { text, national } => {
                write!(f, "{}'{}'", if *national { "N" } else { "" }, as_quoted(text))
            }
        }
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_placeholder() { "?" } else { &self.name })
    }
}

impl Display for ColumnName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table {
            write!(f, "{table}.")?;
        }
        Quoted(&self.column).fmt(f)
    }
}

impl Display for UnaryOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Complement => "~",
        })
    }
}

impl Display for BinaryOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Concatenate => "||",
            BinaryOperator::BitAnd => "&",
            BinaryOperator::BitOr => "|",
            BinaryOperator::BitXor => "^",
            BinaryOperator::Equal => "=",
            BinaryOperator::NotEqual => "<>",
            BinaryOperator::Less => "<",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::LeftOuter => "*=",
            BinaryOperator::RightOuter => "=*",
        })
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("case")?;
        Optional(" ", &self.operand).fmt(f)?;
        for (when, then) in &self.branches {
            write!(f, " when {when} then {then}")?;
        }
        Optional(" else ", &self.otherwise).fmt(f)?;
        f.write_str(" end")
    }
}

impl Display for Cast {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Cast { kind, operand, target, style, .. } = self;
        let name = match kind {
            CastKind::Cast => "cast",
            CastKind::TryCast => "try_cast",
            CastKind::Convert => "convert",
            CastKind::TryConvert => "try_convert",
            CastKind::Parse => "parse",
            CastKind::TryParse => "try_parse",
        };
        if matches!(kind, CastKind::Convert | CastKind::TryConvert) {
            return write!(f, "{name}({target}, {operand}{})", Optional(", ", style));
        }
        write!(f, "{name}({operand} as {target}{})", Optional(" using ", style))
    }
}

/// Functions without parentheses or with keywords between their arguments.
fn is_bare(call: &FunctionCall) -> bool {
    let names = ["current_user", "session_user", "system_user", "user", "current_timestamp", "current_date"];
    call.name.is_bare() && names.contains(&&*call.name.name)
}

impl Display for FunctionCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FunctionCall { name, distinct, arguments, within_group, over } = self;
        // functions with special syntax would lose it in brackets
        match name.is_bare() && name.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            true => f.write_str(&name.name)?,
            false => name.fmt(f)?,
        }
        match arguments {
            Arguments::Star => f.write_str("(*)")?,
            Arguments::Values(values) if values.is_empty() && is_bare(self) => {}
            Arguments::Values(values) => match (&**values, name.name.eq_ignore_ascii_case("trim")) {
                ([text, characters], true) => write!(f, "({characters} from {text})")?,
                _ => write!(f, "({}{})", if *distinct { "distinct " } else { "" }, list(values))?,
            },
        }
        if !within_group.is_empty() {
            write!(f, " within group (order by {})", list(within_group))?;
        }
        Optional(" over ", over).fmt(f)
    }
}

impl Display for Window {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        if !self.partition_by.is_empty() {
            write!(f, "partition by {} ", list(&self.partition_by))?;
        }
        if !self.order_by.is_empty() {
            write!(f, "order by {} ", list(&self.order_by))?;
        }
        write!(f, "{})", Optional("", &self.frame))
    }
}

impl Display for Frame {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.unit {
            FrameUnit::Rows => "rows ",
            FrameUnit::Range => "range ",
        })?;
        match &self.end {
            Some(end) => write!(f, "between {} and {end}", self.start),
            None => self.start.fmt(f),
        }
    }
}

impl Display for FrameBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FrameBound::UnboundedPreceding => f.write_str("unbounded preceding"),
            FrameBound::Preceding(rows) => write!(f, "{rows} preceding"),
            FrameBound::CurrentRow => f.write_str("current row"),
            FrameBound::Following(rows) => write!(f, "{rows} following"),
            FrameBound::UnboundedFollowing => f.write_str("unbounded following"),
        }
    }
}
