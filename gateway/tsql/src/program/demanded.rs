//! What T-SQL finds in a batch before it runs anything of it: SQL Server and ASE compile a batch as a whole (ASE:
//! Transact-SQL Users Guide, "Rules Associated with Batches"; SQL Server: "Batches").

use super::{Action, Declaration, Program, Sql, Statement, Uses};
use crate::resolve::names::{own_name, Relation, RelationKind};
use crate::resolve::Scope;

/// A table or view that has to be there before a batch of ASE runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Demanded {
    /// Of the statement that names it.
    pub line: u32,
    pub table: Relation,
}

impl Uses {
    /// What the statements of a text depend on, but for tables that the text makes or changes, and for those of another
    /// database.
    pub(crate) fn of_all(statements: &[Statement], scope: &Scope) -> Uses {
        let (mut all, mut is_elsewhere) = (Uses::default(), false);
        each(statements, &mut |statement| {
            is_elsewhere |= matches!(statement.action, Action::Use(_));
            statement.action.own_sql(&mut |sql| {
                let bound = sql.bound.as_ref().filter(|_| !is_elsewhere);
                let uses = bound.into_iter().flat_map(|bound| bound.uses().iter());
                uses.filter(|one| !scope.changing.contains(own_name(&one.name))).for_each(|one| all.add(one));
            });
        });
        all
    }
}

/// The names behind the first effect of a batch. `made`: the tables and views that the batch creates elsewhere than by
/// `select … into`.
pub fn demanded(statements: &[Statement], made: &[Relation]) -> Vec<Demanded> {
    let mut demanded: Vec<Demanded> = Vec::new();
    behind_effect(statements, &mut |line, sql| {
        for table in sql.facts.tables.iter().filter(|table| is_looked_for(table)) {
            if demanded.iter().all(|known| known.table != *table) {
                demanded.push(Demanded { line, table: table.clone() });
            }
        }
    });
    let selected = selected_into(statements);
    let is_made = |name: &str| selected.contains(&name) || made.iter().any(|made| made.own == name);
    demanded.retain(|one| !is_made(&one.table.own));
    demanded
}

impl Program {
    /// The SQL behind the first effect, with the lines of its statements, which must have a meaning before anything runs:
    /// without what names tables that the batch makes or changes, or views of the system, of which there are others here.
    pub fn compiled_first(&self) -> Vec<(u32, &Sql)> {
        let mut found = Vec::new();
        behind_effect(&self.statements, &mut |line, sql| found.push((line, sql)));
        if found.is_empty() {
            return found;
        }
        let mut redefined = selected_into(&self.statements);
        redefined.extend(self.redefined.iter().map(|table| table.own.as_str()));
        found.retain(|(_, sql)| {
            let mut tables = sql.facts.tables.iter().filter(|table| table.kind != RelationKind::Function);
            tables.all(|table| is_looked_for(table) && !redefined.contains(&table.own.as_str()))
                && !sql.facts.names_global()
        });
        found
    }

    /// The variables that its statements declare.
    pub fn declarations(&self) -> Vec<&Declaration> {
        let mut found = Vec::new();
        each(&self.statements, &mut |statement| {
            if let Action::Declare(declaration) = &statement.action {
                found.push(declaration);
            }
        });
        found
    }
}

/// Calls `found` with the SQL that stands behind the first statement that has an effect: what stands before it fails by
/// itself before anything has run. A branch that is not taken is compiled too. Behind a `use` names mean something else.
fn behind_effect<'s>(statements: &'s [Statement], found: &mut dyn FnMut(u32, &'s Sql)) {
    let (mut has_effect, mut is_elsewhere) = (false, false);
    each(statements, &mut |statement| {
        if has_effect && !is_elsewhere {
            statement.action.own_sql(&mut |sql| found(statement.line, sql));
        }
        is_elsewhere |= matches!(statement.action, Action::Use(_));
        has_effect |= !matches!(statement.action, Action::Declare(_) | Action::Assign(..) | Action::Label(_));
    });
}

/// The tables that `select … into` makes.
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

/// Not the views of the system, which are always there, nor those that ASE does not have: table variables and global
/// temporary tables.
fn is_looked_for(table: &Relation) -> bool {
    matches!(table.kind, RelationKind::Table | RelationKind::Temporary)
}
