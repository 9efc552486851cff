//! GOTO and the labels that it can reach: those of the enclosing statements.

use super::compiler::{Compiler, Labels};
use crate::error::Error;
use crate::program::Action;
use crate::tree::{self, Name, StatementKind as Tree};

/// Adds the labels of a list of statements. Error 132: one is repeated.
pub(super) fn enter(compiler: &mut Compiler<'_>, body: &[tree::Statement]) -> Result<(), Error> {
    let mut labels = Labels::new();
    let mut lists = vec![body.iter()];
    while let Some(list) = lists.last_mut() {
        match list.next().map(|statement| &statement.kind) {
            None => {
                lists.pop();
            }
            // its statements belong to the same list
            Some(Tree::Block(inner)) => lists.push(inner.iter()),
            Some(Tree::Label(name)) => {
                let own = name.text.to_lowercase();
                if compiler.labels.iter().any(|outer| outer.contains_key(&own)) || labels.contains_key(&own) {
                    let text = format!(
                            "The label '{}' has already been declared. Label names must be unique within a query \
                             batch or stored procedure.",
                            name.text
                        );
                    return Err(Error::new(132, text, name.at));
                }
                compiler.last_label += 1;
                labels.insert(own, compiler.last_label);
            }
            Some(_) => {}
        }
    }
    compiler.labels.push(labels);
    Ok(())
}

pub(super) fn label(compiler: &Compiler<'_>, name: &Name) -> Option<u32> {
    let own = name.text.to_lowercase();
    compiler.labels.iter().rev().find_map(|labels| labels.get(&own)).copied()
}

pub(super) fn goto(compiler: &Compiler<'_>, name: &Name, batch: &[tree::Statement]) -> Result<Action, Error> {
    if let Some(label) = label(compiler, name) {
        return Ok(Action::Goto(label));
    }
    let is_it = |statement: &tree::Statement| matches!(&statement.kind, Tree::Label(label) if label.text.eq_ignore_ascii_case(&name.text));
    if tree::every(batch).into_iter().any(is_it) {
        let why = "the label is inside a statement that does not contain the goto";
        return Err(Error::refused(&format!("goto {}", name.text), why, name.at));
    }
    let text =
        format!("A GOTO statement references the label '{}' but the label has not been declared.", name.text);
    Err(Error::new(133, text, name.at))
}
