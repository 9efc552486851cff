//! The name of a procedure as written by its caller.

use crate::catalogue::Unresolved;
use std::borrow::Cow;
use tsql::Databases;

/// `procedure`, `schema.procedure`, `database..procedure`, `database.schema.procedure`.
#[derive(Debug, PartialEq, Eq)]
pub struct ProcedureName<'a> {
    /// Its database, or the schema of a name without one; None for neither, and for dbo.
    pub qualifier: Option<&'a str>,
    /// The schema in that database, if it is neither dbo nor a system's.
    inner: Option<&'a str>,
    /// A number in its group (`procedure;2`) other than 1 is part of the name.
    pub bare: Cow<'a, str>,
}

impl<'a> ProcedureName<'a> {
    pub fn read(name: &'a str) -> ProcedureName<'a> {
        let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let (group, number) = match name.rsplit_once(';').filter(|(_, number)| is_number(number)) {
            Some((group, number)) => (group, Some(number).filter(|number| *number != "1")),
            None => (name, None),
        };
        let (qualifiers, bare) = group.rsplit_once('.').unwrap_or(("", group));
        let (qualifier, inner) = qualifiers.split_once('.').unwrap_or((qualifiers, ""));
        let bare = strip(bare);
        ProcedureName {
            qualifier: named(qualifier, &["dbo"]),
            inner: named(inner, &["dbo", "sys"]),
            bare: match number {
                Some(number) => format!("{bare};{number}").into(),
                None => bare.into(),
            },
        }
    }

    /// The schema of PostgreSQL that it names; None for a name without one. Missing: the database has no such schema.
    pub fn schema(&self, databases: &Databases) -> Result<Option<&'a str>, Unresolved> {
        match (self.qualifier, self.inner) {
            (Some(database), Some(inner)) if !databases.has(database, inner) => Err(Unresolved::Missing),
            (qualifier, inner) => Ok(inner.or(qualifier)),
        }
    }
}

/// A qualifier that is none of these.
fn named<'a>(part: &'a str, others: &[&str]) -> Option<&'a str> {
    let part = strip(part);
    (!part.is_empty() && !others.iter().any(|other| part.eq_ignore_ascii_case(other))).then_some(part)
}

/// A name without its brackets or quotes.
fn strip(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .or_else(|| name.strip_prefix('"').and_then(|name| name.strip_suffix('"')))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_qualifiers() {
        let databases =
            Databases { inner: [("hr".into(), "site".into())].into(), are_all: true, ..Databases::default() };
        for (name, schema, bare) in [
            ("put_a", Ok(None), "put_a"),
            ("[put_a];1", Ok(None), "put_a"),
            ("log.[put_a];12", Ok(Some("log")), "put_a;12"),
            ("online..put_a", Ok(Some("online")), "put_a"),
            ("log.dbo.[put_a]", Ok(Some("log")), "put_a"),
            ("log.sys.sp_help", Ok(Some("log")), "sp_help"),
            ("dbo.put_a", Ok(None), "put_a"),
            ("Site.[HR].put_a", Ok(Some("HR")), "put_a"),
            ("log.hr.put_a", Err(Unresolved::Missing), "put_a"),
        ] {
            let read = ProcedureName::read(name);
            assert_eq!((read.schema(&databases), &*read.bare), (schema, bare), "{name}");
        }
    }
}
