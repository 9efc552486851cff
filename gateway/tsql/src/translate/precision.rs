//! Digits of decimals as known without PostgreSQL.
//!
//! Precision and scale are one number in PostgreSQL's SQL: 1802 for a decimal(18, 2).

use crate::Dialect;
use std::rc::Rc;

/// The digits of a value of unknown type, if it is a decimal. Written only if a quotient needs it: its size grows with
/// that of its operands.
#[derive(Clone, Debug)]
pub struct Digits(Rc<Of>);

#[derive(Debug)]
enum Of {
    /// `probe`: SQL of the type of the result.
    Operation { operator: &'static str, sides: [Side; 2], subtracts: bool, probe: Rc<str> },
    /// Digits of a column, or of an aggregate whose columns are not visible next to it: the SQL that reads the
    /// declarations.
    Declared(String),
    /// For the chosen one of several values.
    Widest(Vec<Side>),
    /// The digits that a function of schema tsql derives from those of a value.
    Made { function: &'static str, of: Side },
}

/// An operand.
#[derive(Clone, Debug)]
pub struct Side {
    /// SQL of its type.
    probe: Rc<str>,
    of: Operand,
}

#[derive(Clone, Debug)]
pub enum Operand {
    Known(u8, u8),
    /// Unknown if it is a decimal.
    Unknown,
    Of(Digits),
}

impl Side {
    pub fn new(sql: &str, of: Operand) -> Side {
        let probe = match &of {
            Operand::Of(digits) => digits.probe(),
            _ => None,
        };
        Side { probe: probe.unwrap_or_else(|| sql.into()), of }
    }

    fn is_queried(&self) -> bool {
        matches!(&self.of, Operand::Of(digits) if digits.is_queried())
    }

    fn written(&self) -> String {
        let otherwise = match &self.of {
            Operand::Known(precision, scale) => return packed(*precision, *scale),
            Operand::Unknown => "null".to_owned(),
            Operand::Of(digits) => digits.written(),
        };
        format!("tsql.digits_in({}, {otherwise})", self.probe)
    }

    /// Like `Digits::standalone`.
    fn standalone(&self) -> Option<String> {
        match &self.of {
            Operand::Known(precision, scale) => Some(packed(*precision, *scale)),
            Operand::Unknown => None,
            Operand::Of(digits) => digits.standalone(),
        }
    }
}

/// In PostgreSQL's SQL.
pub fn packed(precision: u8, scale: u8) -> String {
    (u32::from(precision) * 100 + u32::from(scale)).to_string()
}

impl Digits {
    /// Of `left operator right`.
    pub fn of_operation(operator: &'static str, sides: [Side; 2], dialect: &Dialect) -> Digits {
        // a product has the type of the quotient, but none of its digits
        let sign = if operator == "/" { "*" } else { operator };
        let probe = format!("({} operator(tsql.{sign}) {})", sides[0].probe, sides[1].probe).into();
        let subtracts = dialect.quotient_subtracts_scale;
        Digits(Rc::new(Of::Operation { operator, sides, subtracts, probe }))
    }

    pub fn declared(asked: String) -> Digits {
        Digits(Rc::new(Of::Declared(asked)))
    }

    pub fn widest(of: Vec<Side>) -> Digits {
        Digits(Rc::new(Of::Widest(of)))
    }

    pub fn made(function: &'static str, of: Side) -> Digits {
        Digits(Rc::new(Of::Made { function, of }))
    }

    /// Whether PostgreSQL's catalogue is queried: once per query, if it is in its own select.
    pub fn is_queried(&self) -> bool {
        match &*self.0 {
            Of::Operation { sides, .. } => sides.iter().any(Side::is_queried),
            Of::Declared(_) => true,
            Of::Widest(sides) => sides.iter().any(Side::is_queried),
            Of::Made { of, .. } => of.is_queried(),
        }
    }

    fn probe(&self) -> Option<Rc<str>> {
        match &*self.0 {
            Of::Operation { probe, .. } => Some(probe.clone()),
            _ => None,
        }
    }

    /// As an expression next to the value.
    pub fn written(&self) -> String {
        match &*self.0 {
            Of::Operation { operator, sides: [left, right], subtracts, .. } => {
                result(operator, *subtracts, &left.written(), &right.written())
            }
            Of::Declared(asked) => asked.clone(),
            Of::Widest(sides) => widest(sides.iter().map(Side::written)),
            Of::Made { function, of } => format!("tsql.{function}({})", of.written()),
        }
    }

    /// As an expression where the columns of the value are not visible; None if that is impossible. Negative if it is
    /// correct for decimals only.
    pub fn standalone(&self) -> Option<String> {
        Some(match &*self.0 {
            Of::Operation { operator, sides: [left, right], subtracts, .. } => {
                format!("-{}", result(operator, *subtracts, &left.standalone()?, &right.standalone()?))
            }
            Of::Declared(asked) => asked.clone(),
            Of::Widest(sides) => {
                let sides: Option<Vec<_>> = sides.iter().map(Side::standalone).collect();
                widest(sides?.into_iter())
            }
            Of::Made { function, of } => format!("tsql.{function}({})", of.standalone()?),
        })
    }
}

fn result(operator: &str, subtracts: bool, left: &str, right: &str) -> String {
    format!("tsql.result_digits('{operator}', {subtracts}, {left}, {right})")
}

/// Digits that have room for each of the values.
pub fn widest(sides: impl Iterator<Item = String>) -> String {
    sides.reduce(|one, other| format!("tsql.widest_digits({one}, {other})")).unwrap_or_default()
}
