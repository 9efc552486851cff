//! The T-SQL declarations of columns that PostgreSQL does not keep.

use crate::convert::{declared, Declaration, SqlType};
use crate::postgres::message::PgColumn;
use crate::tds::tokens::columns::Traits;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The first oid that is not PostgreSQL's own (access/transam.h, FirstNormalObjectId).
pub(super) const FIRST_OF_USERS: u32 = 16384;

/// Replaces a column's number for a type of schema tsql.
const TYPE: &str = "0";

#[derive(Default)]
pub struct Declarations {
    columns: HashMap<(u32, i16), Declaration>,
    /// The tables whose declarations have been read.
    tables: HashSet<u32>,
    /// PostgreSQL's oids of the types of schema tsql, and the gateway's own numbers of these types; empty until read.
    types: HashMap<u32, u32>,
}

impl Declarations {
    /// The query for the declarations of `tables`.
    pub fn question(tables: &[u32]) -> String {
        let tables: Vec<String> = tables.iter().map(u32::to_string).collect();
        include_str!("declarations.sql").replace(":tables", &tables.join(", "))
    }

    /// Sets `declared` of each column that has a declaration.
    pub fn apply(&self, columns: &mut [PgColumn]) {
        for column in columns {
            column.declared = self.columns.get(&column.origin).cloned().unwrap_or_default();
            if let Some(known) = self.types.get(&column.oid) {
                column.oid = *known;
            }
        }
    }

    /// The tables of `columns` whose declarations have not been read, and 0 if the number of a type is needed.
    /// PostgreSQL's own tables have no declarations.
    pub fn missing(&self, columns: &[PgColumn]) -> Vec<u32> {
        let mut tables: Vec<u32> = columns.iter().map(|column| column.origin.0).collect();
        tables.retain(|table| *table >= FIRST_OF_USERS && !self.tables.contains(table));
        if self.types.is_empty() && columns.iter().any(|column| column.oid >= FIRST_OF_USERS) {
            tables.push(0);
        }
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    pub fn read(&mut self, tables: &[u32], rows: Vec<Vec<Option<String>>>) {
        for row in rows {
            let [Some(table), Some(number), shown, of, traits @ ..] = row.as_slice() else { continue };
            let [not_null, identity, computed] = traits else { continue };
            if number == TYPE {
                let known = shown.as_deref().and_then(SqlType::of_own);
                self.types
                    .extend(table.parse::<u32>().ok().zip(known).map(|(number, known)| (number, known.oid)));
                continue;
            }
            let is = |flag: &Option<String>| flag.as_deref() == Some("t");
            if let (Ok(table), Ok(number)) = (table.parse(), number.parse()) {
                let declaration = Declaration {
                    shown: shown.as_deref().map(Arc::from),
                    of: of.as_deref().and_then(declared::of_comment),
                    traits: Traits {
                        not_null: is(not_null),
                        identity: is(identity),
                        computed: is(computed),
                        ..Traits::default()
                    },
                    result_type: None,
                    pointer: None,
                };
                self.columns.insert((table, number), declaration);
            }
        }
        self.tables.extend(tables);
    }
}

/// Marks the columns as nullable, whatever their tables declare.
pub fn nullable(columns: &mut [PgColumn]) {
    for column in columns {
        column.declared.traits.not_null = false;
    }
}
