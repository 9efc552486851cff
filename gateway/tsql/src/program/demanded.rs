//! The objects that must exist before a batch runs: SQL Server and ASE compile a batch as a whole (ASE: Transact-SQL
//! Users Guide, "Rules Associated with Batches"; SQL Server: "Batches").

use super::{Action, Statement, Uses};
use crate::resolve::names::{own_name, Relation, RelationKind};
use crate::resolve::Scope;

/// A table or view that must exist before a batch of ASE runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Demanded {
    /// The line of the statement that names it.
    pub line: u32,
    pub table: Relation,
}

impl Uses {
    /// The objects that the statements of a text use, except tables that the text creates or changes, and those of
    /// another database.
    pub(crate) fn of_all(statements: &[Statement], scope: &Scope) -> Uses {
        let (mut all, mut is_elsewhere) = (Uses::default(), false);
        each(statements, &mut |statement| {
            is_elsewhere |= matches!(statement.action, Action::Use(_));
            statement.action.own_sql(&mut |sql| {
                let bound = sql.bound.as_ref().filter(|_| !is_elsewhere);
                let uses = bound.into_iter().flat_map(|bound| bound.uses.iter());
                uses.filter(|one| !scope.changing.contains(own_name(&one.name))).for_each(|one| all.add(one));
            });
        });
        all
    }
}

/// The names after the first effect of a batch: earlier statements fail by themselves before that. Branches that are not
/// taken are compiled too. After a `use` names have another meaning. `made`: the tables and views that the batch creates
/// otherwise than by `select … into`.
pub fn demanded(statements: &[Statement], made: &[Relation]) -> Vec<Demanded> {
    let mut demanded: Vec<Demanded> = Vec::new();
    let (mut has_effect, mut is_elsewhere) = (false, false);
    each(statements, &mut |statement| {
        if has_effect && !is_elsewhere {
            statement.action.own_sql(&mut |sql| {
                for table in sql.facts.tables.iter().filter(|table| is_looked_for(table)) {
                    if demanded.iter().all(|known| known.table != *table) {
                        demanded.push(Demanded { line: statement.line, table: table.clone() });
                    }
                }
            });
        }
        is_elsewhere |= matches!(statement.action, Action::Use(_));
        has_effect |= !matches!(statement.action, Action::Declare(_) | Action::Assign(..) | Action::Label(_));
    });
    let selected = selected_into(statements);
    let is_made = |name: &str| selected.contains(&name) || made.iter().any(|made| made.own == name);
    demanded.retain(|one| !is_made(&one.table.own));
    demanded
}

/// The tables created by `select … into`.
fn selected_into(statements: &[Statement]) -> Vec<&str> {
    let mut made = Vec::new();
    each(statements, &mut |statement| {
        if let Action::Query(query) = &statement.action {
            made.extend(query.made().map(|table| table.own.as_str()));
        }
    });
    made
}

/// Every statement of the list and of its blocks, in the order of the text.
pub(crate) fn each<'s>(statements: &'s [Statement], found: &mut dyn FnMut(&'s Statement)) {
    for statement in statements {
        found(statement);
        for body in statement.action.bodies() {
            each(body, found);
        }
    }
}

/// Excludes system views, which always exist, and those that ASE lacks: table variables and global temporary tables.
fn is_looked_for(table: &Relation) -> bool {
    matches!(table.kind, RelationKind::Table | RelationKind::Temporary)
}
