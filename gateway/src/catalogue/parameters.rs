//! The parameters of functions as their callers see them: composite arguments are replaced by their fields.

use crate::convert::{Capacity, PgType};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    In,
    InOut,
    Out,
}

impl Direction {
    pub fn is_input(self) -> bool {
        self != Direction::Out
    }

    pub fn is_output(self) -> bool {
        self != Direction::In
    }
}

/// An argument as PostgreSQL declares it.
#[derive(Debug, PartialEq)]
pub struct Argument {
    /// "" if it has no name.
    pub name: Arc<str>,
    pub direction: Direction,
    pub has_default: bool,
    pub oid: u32,
    /// Its fields, more than one only for a composite.
    pub fields: Range<usize>,
    pub is_composite: bool,
    /// For a composite the relation whose columns are its fields; 0 if PostgreSQL does not check them.
    pub relation: u32,
}

/// A parameter as callers see it.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// Without the @ that arguments of procedures compiled from T-SQL begin with.
    pub name: Arc<str>,
    pub oid: u32,
    pub pg_type: PgType,
    /// The declared length or digits of the table's column behind a composite's field.
    pub capacity: Option<Capacity>,
    /// The index of its argument.
    pub argument: usize,
    /// No other parameter of the function has this name.
    pub is_unique: bool,
}

impl Field {
    pub fn takes_text(&self) -> bool {
        matches!(self.pg_type, PgType::Text | PgType::Varchar | PgType::Bpchar)
    }
}

/// A field of a composite type.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: Arc<str>,
    pub oid: u32,
    /// The base type of a domain.
    pub pg_type: PgType,
    /// The length or precision it was declared with, as PostgreSQL keeps it; -1: none.
    pub typmod: i32,
}

/// A composite type.
#[derive(Clone, Copy, Debug)]
pub struct Composite<'a> {
    pub relation: u32,
    pub attributes: &'a [Attribute],
}

/// The OUT argument that is the return status of a function with outputs.
const RETURN_STATUS: &str = "return_status";

const INT4: u32 = 23;

/// The parameters of a function, shared by all functions with equal ones.
#[derive(Debug, PartialEq)]
pub struct Parameters {
    pub arguments: Box<[Argument]>,
    pub fields: Box<[Field]>,
    /// The index of the return status in the row of a function that also has outputs.
    pub status_column: Option<usize>,
    /// Outputs of composite type, which are not unfolded.
    pub composite_outputs: usize,
    /// The indexes of the fields, in the order of their names in lower case.
    by_name: Box<[u32]>,
}

impl Parameters {
    /// The indexes of parameters called `name`, without regard to case.
    pub fn indexes_of(&self, name: &str) -> impl Iterator<Item = usize> + Clone + '_ {
        let named = |index: u32| self.fields.get(index as usize).map_or("", |field| &field.name);
        let first = self.by_name.partition_point(|index| folded_order(named(*index), name).is_lt());
        let rest = self.by_name.get(first..).unwrap_or_default();
        let count = rest.partition_point(|index| folded_order(named(*index), name).is_eq());
        rest.iter().take(count).map(|index| *index as usize)
    }
}

/// The order of names in lower case.
fn folded_order(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        let [one, other] = [one, other].map(|name| name.bytes().map(|byte| byte.to_ascii_lowercase()));
        return one.cmp(other);
    }
    one.to_lowercase().cmp(&other.to_lowercase())
}

/// The arguments of a function while they are read.
#[derive(Debug, Default)]
pub struct Parts {
    arguments: Vec<Argument>,
    fields: Vec<Field>,
    composite_outputs: usize,
    status_column: Option<usize>,
}

impl Parts {
    /// Adds an argument. `composite`: its type, if it is a composite.
    pub fn argument(
        &mut self,
        name: &str,
        direction: Direction,
        has_default: bool,
        oid: u32,
        pg_type: PgType,
        composite: Option<Composite<'_>>,
    ) {
        let start = self.fields.len();
        let argument = self.arguments.len();
        let own: Arc<str> = name.into();
        if direction == Direction::Out && name == RETURN_STATUS && oid == INT4 {
            self.status_column = Some(self.arguments.iter().filter(|one| one.direction.is_output()).count());
            self.arguments.push(Argument {
                name: own,
                direction,
                has_default,
                oid,
                fields: start..start,
                is_composite: false,
                relation: 0,
            });
            return;
        }
        // an output of composite type is not unfolded
        self.composite_outputs += usize::from(composite.is_some() && direction.is_output());
        let composite = composite.filter(|_| direction == Direction::In);
        let shown = match name.strip_prefix('@') {
            Some(shown) => shown.into(),
            None => own.clone(),
        };
        let single = [Attribute { name: shown, oid, pg_type, typmod: -1 }];
        self.fields.extend(composite.map_or(&single[..], |composite| composite.attributes).iter().map(
            |field| Field {
                name: field.name.clone(),
                oid: field.oid,
                pg_type: field.pg_type,
                capacity: Capacity::of(field.pg_type, field.typmod),
                argument,
                is_unique: true,
            },
        ));
        self.arguments.push(Argument {
            name: own,
            direction,
            has_default,
            oid,
            fields: start..self.fields.len(),
            is_composite: composite.is_some(),
            relation: composite.map_or(0, |composite| composite.relation),
        });
    }

    pub fn parameters(mut self) -> Parameters {
        let mut indexes: Vec<usize> = (0..self.fields.len()).collect();
        let fields = &self.fields;
        indexes.sort_by(|one, other| match (fields.get(*one), fields.get(*other)) {
            (Some(one), Some(other)) => folded_order(&one.name, &other.name),
            _ => Ordering::Equal,
        });
        let is_same = |one: usize, other: usize| match (fields.get(one), fields.get(other)) {
            (Some(one), Some(other)) => folded_order(&one.name, &other.name).is_eq(),
            _ => false,
        };
        let twice: Vec<usize> = indexes
            .windows(2)
            .filter_map(|pair| pair.first().copied().zip(pair.last().copied()))
            .filter(|(one, other)| is_same(*one, *other))
            .flat_map(|(one, other)| [one, other])
            .collect();
        for index in twice {
            if let Some(field) = self.fields.get_mut(index) {
                field.is_unique = false;
            }
        }
        let by_name = indexes.into_iter().map(|index| index as u32).collect();
        Parameters {
            arguments: self.arguments.into(),
            fields: self.fields.into(),
            status_column: self.status_column,
            composite_outputs: self.composite_outputs,
            by_name,
        }
    }
}
