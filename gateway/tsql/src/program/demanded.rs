//! Tables that have to be there before a batch runs, since ASE "compiles a batch before executing it" (Transact-SQL Users
//! Guide, "Rules Associated with Batches").

use super::{Action, Statement};

/// A table or view that a statement names.
#[derive(Debug, PartialEq, Eq)]
pub struct Demanded {
    /// Of the statement.
    pub line: u32,
    /// As SQL names it.
    pub table: String,
}

/// What is named behind the first statement that has an effect: what the statements before name, they miss by themselves.
/// `made`: what the batch makes elsewhere than by `select … into`.
pub fn demanded(statements: &[Statement], made: Vec<String>) -> Vec<Demanded> {
    let mut found = Found { made, ..Found::default() };
    found.all(statements);
    let Found { made, mut demanded, .. } = found;
    let made: Vec<_> = made.iter().map(|table| own_name(table)).collect();
    demanded.retain(|one| !made.contains(&own_name(&one.table)));
    demanded
}

#[derive(Default)]
struct Found {
    made: Vec<String>,
    demanded: Vec<Demanded>,
    has_effect: bool,
    /// A `use` was before: what follows is compiled in another database.
    is_elsewhere: bool,
}

impl Found {
    fn all(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.one(statement));
    }

    fn one(&mut self, statement: &Statement) {
        if self.has_effect && !self.is_elsewhere {
            statement.action.own_sql(&mut |sql| {
                for table in sql.tables.iter().filter(|table| is_looked_for(table)) {
                    if self.demanded.iter().all(|known| known.table != *table) {
                        self.demanded.push(Demanded { line: statement.line, table: table.clone() });
                    }
                }
            });
        }
        match &statement.action {
            Action::Query(query) => self.made.extend(query.made.iter().map(|made| made.table.clone())),
            Action::Use(_) => self.is_elsewhere = true,
            _ => {}
        }
        // a branch that is not taken is compiled too
        self.has_effect |=
            !matches!(statement.action, Action::Declare(_) | Action::Assign(..) | Action::Label(_));
        for body in statement.action.bodies() {
            self.all(body);
        }
    }
}

/// A table's name without its database, which may be the current one.
fn own_name(table: &str) -> &str {
    table.rsplit(".\"").next().unwrap_or_default().trim_matches('"')
}

/// Not the views of the system, which are always there, nor what ASE has not: table variables, recursive queries and global
/// temporary tables.
fn is_looked_for(table: &str) -> bool {
    let is_variable = |name: &str| name.starts_with("\"@") || name.starts_with("pg_temp.\"#@");
    (table.starts_with('"') || table.starts_with("pg_temp.")) && !is_variable(table)
}
