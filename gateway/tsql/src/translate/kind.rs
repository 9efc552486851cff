//! Whether a value is a uniqueidentifier, which T-SQL orders by its last bytes first and PostgreSQL from left to right.

use super::value::Value;
use crate::facts::functions::{rule, Rule};
use crate::facts::types::GUID;
use crate::tree::{Expression, Query, QueryBody, SelectItem};

/// Whether a value is a uniqueidentifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Guid,
    Other,
    /// Only PostgreSQL knows.
    Unknown,
}

impl Kind {
    pub fn of(expression: &Expression, value: &Value) -> Kind {
        match value.of {
            Some(GUID) => Kind::Guid,
            Some(_) => Kind::Other,
            None => Kind::of_unknown(expression),
        }
    }

    fn of_unknown(expression: &Expression) -> Kind {
        let may_be = match expression {
            Expression::Column(_) | Expression::Case(_) => true,
            Expression::Function(call) => match rule(&call.name.name.to_lowercase()) {
                Some(rule) if call.name.is_bare() => {
                    use Rule::{Choose, Coalesce, Edge, Iif, IsNull, Neighbour, NullIf};
                    matches!(rule, Choose | Coalesce | Edge | Iif | IsNull | Neighbour | NullIf)
                }
                _ => true,
            },
            Expression::Subquery(query) => return Kind::of_query(query),
            _ => false,
        };
        if may_be {
            Kind::Unknown
        } else {
            Kind::Other
        }
    }

    fn of_query(query: &Query) -> Kind {
        match &query.body {
            QueryBody::Select(select) => match select.items.as_slice() {
                [SelectItem::Value { value, .. }] => Kind::of_unknown(value),
                _ => Kind::Unknown,
            },
            _ => Kind::Unknown,
        }
    }

    /// The kind of a column of several selects, whose values are converted to one type.
    pub fn and(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Other, _) | (_, Kind::Other) => Kind::Other,
            (Kind::Guid, _) | (_, Kind::Guid) => Kind::Guid,
            _ => Kind::Unknown,
        }
    }

    /// The SQL by which PostgreSQL orders the value as T-SQL does.
    pub fn key(self, sql: &str) -> String {
        match self {
            Kind::Guid => format!("tsql.guid_key({sql})"),
            Kind::Other => sql.to_owned(),
            Kind::Unknown => format!("tsql.ordered({sql})"),
        }
    }
}
