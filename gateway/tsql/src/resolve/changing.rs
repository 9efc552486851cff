//! The tables that a text makes or changes: their declarations in the schema do not hold for all its statements.

use super::names::{self, Relation};
use crate::error::Error;
use crate::tree::{self, ObjectKind, StatementKind as Tree};
use std::collections::HashSet;

/// The tables and views that statements create anywhere, and those that they change or drop too.
pub fn defined_tables(body: &[tree::Statement]) -> Result<(Vec<Relation>, Vec<Relation>), Error> {
    let (mut made, mut redefined) = (Vec::new(), Vec::new());
    for statement in tree::every(body) {
        match &statement.kind {
            Tree::CreateTable(create) => made.push(names::relation(&create.table)?),
            Tree::CreateView(create) => made.push(names::relation(&create.name)?),
            Tree::AlterTable { table, .. } => redefined.push(names::relation(table)?),
            Tree::Drop(dropped) if matches!(dropped.kind, ObjectKind::Table | ObjectKind::View) => {
                for name in &dropped.names {
                    redefined.push(names::relation(name)?);
                }
            }
            _ => {}
        }
    }
    redefined.extend_from_slice(&made);
    Ok((made, redefined))
}

/// The own names of the tables that statements make or change; `redefined`: by statements of their own.
pub fn changing(body: &[tree::Statement], redefined: &[Relation]) -> Result<HashSet<String>, Error> {
    let mut found: HashSet<String> = redefined.iter().map(|table| table.own.clone()).collect();
    for statement in tree::every(body) {
        if let Tree::Select(query) = &statement.kind {
            let into = query.body.first_select().and_then(|first| first.into.as_ref());
            found.extend(into.map(names::relation).transpose()?.map(|table| table.own));
        }
    }
    Ok(found)
}
