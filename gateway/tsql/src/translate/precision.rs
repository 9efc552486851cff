//! Precision and scale of arithmetic, as far as they are known without PostgreSQL.

use std::rc::Rc;

/// Of arithmetic of unknown type, were it a decimal. Written only where a quotient needs it: it grows with what
/// it is of.
#[derive(Clone, Debug)]
pub struct Digits(Rc<Of>);

#[derive(Debug)]
pub struct Of {
    pub operator: &'static str,
    pub sides: [Side; 2],
    pub sybase: bool,
}

#[derive(Clone, Debug)]
pub enum Side {
    Known(u8, u8),
    /// A value of unknown type: null when it turns out to be a decimal.
    Column(Rc<str>),
    Result(Rc<str>, Digits),
}

impl Side {
    /// As expressions of PostgreSQL's SQL.
    pub fn written(&self) -> (String, String) {
        let asked = |sql: &str, precision: &str, scale: &str| {
            (format!("tsql.precision_of({sql}, {precision})"), format!("tsql.scale_of({sql}, {scale})"))
        };
        match self {
            Side::Known(precision, scale) => (precision.to_string(), scale.to_string()),
            Side::Column(sql) => asked(sql, "null", "null"),
            Side::Result(sql, digits) => {
                let (precision, scale) = digits.written();
                asked(sql, &precision, &scale)
            }
        }
    }
}

impl Digits {
    pub fn of(of: Of) -> Digits {
        Digits(Rc::new(of))
    }

    fn written(&self) -> (String, String) {
        let Of { operator, sides: [left, right], sybase } = &*self.0;
        let ((p1, s1), (p2, s2)) = (left.written(), right.written());
        let arguments = format!("'{operator}', {sybase}, {p1}, {s1}, {p2}, {s2}");
        (format!("tsql.result_precision({arguments})"), format!("tsql.result_scale({arguments})"))
    }
}
