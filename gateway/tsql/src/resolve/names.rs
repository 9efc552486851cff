//! Converts names of T-SQL to PostgreSQL's: lower case, quoted, a database becomes a schema.

use crate::error::Error;
use crate::facts::system;
use crate::long_names;
pub use crate::long_names::stored;
pub use crate::quoting::{in_quotes, literal, quoted};
use crate::tree::{Name, ObjectName, Variable};

/// The name as PostgreSQL stores it. T-SQL's names must differ by more than their case.
pub fn folded(name: &str, line: u32) -> Result<String, Error> {
    long_names::check(name, line)?;
    Ok(stored(name))
}

/// A name in quotes.
pub fn identifier(name: &str, line: u32) -> Result<String, Error> {
    folded(name, line).map(|name| quoted(&name))
}

pub fn name(name: &Name) -> Result<String, Error> {
    identifier(&name.text, name.at.line)
}

/// Names as PostgreSQL stores them.
pub fn all_folded<'n>(names: impl IntoIterator<Item = &'n Name>) -> Result<Vec<String>, Error> {
    names.into_iter().map(|name| folded(&name.text, name.at.line)).collect()
}

/// Quoted names, separated by commas.
pub fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// The schema of a system view; None for any other name.
pub fn of_system(name: &ObjectName) -> Result<Option<&'static str>, Error> {
    let own = stored(&name.name);
    let schema = if name.owner.eq_ignore_ascii_case("information_schema") {
        "tsql_information_schema"
    } else if name.owner.eq_ignore_ascii_case("sys") || (name.is_of_dbo() && system::is_view(&own)) {
        "sys"
    } else {
        return Ok(None);
    };
    Ok(Some(schema))
}

fn is_elsewhere(name: &ObjectName) -> bool {
    !name.database.is_empty() && !system::is_of_the_server(&stored(&name.name))
}

/// A table, a view or a catalogue function named in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Its name in SQL.
    pub sql: String,
    /// Without its schema and quotes: a schema may be the current one.
    pub own: String,
    pub kind: RelationKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    Table,
    /// `#t`
    Temporary,
    /// `##t`
    Global,
    /// The temporary table of a table variable.
    Variable,
    /// A system view.
    System,
    /// A system view of another database, which is a function.
    Elsewhere,
    /// A function that reads the catalogue.
    Function,
}

impl Relation {
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, RelationKind::Temporary | RelationKind::Variable | RelationKind::Global)
    }

    pub fn is_global(&self) -> bool {
        self.kind == RelationKind::Global
    }

    pub fn is_of_system(&self) -> bool {
        matches!(self.kind, RelationKind::System | RelationKind::Elsewhere)
    }

    /// A function of schema sys.
    pub fn system_function(name: &str) -> Relation {
        Relation { sql: format!("sys.{name}()"), own: name.to_owned(), kind: RelationKind::Function }
    }
}

/// A table or view: `a..b` and `a.dbo.b` are b in the schema a, `#t` and `##t` are temporary tables.
pub fn relation(name: &ObjectName) -> Result<Relation, Error> {
    let line = name.at.line;
    let own = folded(&name.name, line)?;
    let quoted = quoted(&own);
    let (sql, kind) = if let Some(system) = of_system(name)? {
        match is_elsewhere(name) {
            true => {
                let database = literal(&folded(&name.database, line)?);
                (format!("{system}.{quoted}({database})"), RelationKind::Elsewhere)
            }
            false => (format!("{system}.{quoted}"), RelationKind::System),
        }
    } else if name.is_temporary() {
        let kind = match () {
            _ if name.is_global() => RelationKind::Global,
            _ if name.is_table_variable() => RelationKind::Variable,
            _ => RelationKind::Temporary,
        };
        (format!("{}.{quoted}", temporary_schema(name)), kind)
    } else {
        match schema_of(name) {
            "" => (quoted, RelationKind::Table),
            schema => (format!("{}.{quoted}", identifier(schema, line)?), RelationKind::Table),
        }
    };
    Ok(Relation { sql, own, kind })
}

/// The SQL of `relation`.
pub fn table(name: &ObjectName) -> Result<String, Error> {
    relation(name).map(|relation| relation.sql)
}

/// A table's name without its database, which may be the current one, and without quotes.
pub fn own_name(table: &str) -> &str {
    table.rsplit(".\"").next().unwrap_or_default().trim_matches('"')
}

/// Whether SQL's name of a table is that of a global temporary one.
pub fn is_global(table: &str) -> bool {
    own_name(table).starts_with("##")
}

/// The schema of global temporary tables, which the gateway manages (`gateway/sql/ddl/globals.sql`).
pub const GLOBALS: &str = "tsql_global";

/// The schema of `#t` or `##t`.
pub fn temporary_schema(name: &ObjectName) -> &'static str {
    if name.is_global() {
        GLOBALS
    } else {
        "pg_temp"
    }
}

/// The qualifier of a column of a table or view.
pub fn qualifier(name: &ObjectName) -> Result<String, Error> {
    let is_bare = name.is_temporary() || (of_system(name)?.is_some() && is_elsewhere(name));
    if is_bare {
        identifier(&name.name, name.at.line)
    } else {
        table(name)
    }
}

/// The schema of PostgreSQL that a qualified name has, or "". The parser has checked that a database which it names has the
/// schema.
pub fn schema_of(name: &ObjectName) -> &str {
    // system procedures exist in every database: mssql-jdbc calls a.sys.sp_sproc_columns
    let is_system = !name.database.is_empty() && name.owner.eq_ignore_ascii_case("sys");
    match name.is_of_dbo() || is_system {
        true => &name.database,
        false => &name.owner,
    }
}

/// The temporary table of a table variable: #@t, a name that no other table can have. `of`: the mark of the procedure
/// or inner text with the variable, since its caller may have one of the same name; "" for a batch's.
pub fn table_variable(variable: &Variable, of: &str) -> ObjectName {
    let name = match of {
        "" => format!("#{}", variable.name),
        of => format!("#{}.{of}", variable.name),
    };
    ObjectName { name, at: variable.at, ..ObjectName::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(database: &str, owner: &str, name: &str) -> String {
        let name = ObjectName {
            database: database.into(),
            owner: owner.into(),
            name: name.into(),
            ..ObjectName::default()
        };
        table(&name).unwrap_or_else(|error| error.number.to_string())
    }

    #[test]
    fn tables() {
        assert_eq!(sql("", "", "Sr_Mag"), "\"sr_mag\"");
        assert_eq!(sql("", "dbo", "t"), "\"t\"");
        assert_eq!(sql("log", "", "t"), "\"log\".\"t\"");
        assert_eq!(sql("log", "dbo", "t"), "\"log\".\"t\"");
        assert_eq!(sql("log", "x", "t"), "\"x\".\"t\"");
        assert_eq!(sql("", "", "#t"), "pg_temp.\"#t\"");
        assert_eq!(sql("", "", "##T"), "tsql_global.\"##t\"");
        assert_eq!(sql("", "sys", "tables"), "sys.\"tables\"");
        assert_eq!(sql("log", "", "sysobjects"), "sys.\"sysobjects\"('log')");
        assert_eq!(sql("", "", &"x".repeat(129)), "103");
    }

    #[test]
    fn texts() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal(r"a\b'"), r"E'a\\b'''");
    }
}
