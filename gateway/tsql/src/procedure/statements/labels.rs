//! GOTO to a later label among the outermost statements: it leaves the block that ends there.

use super::control;
use crate::error::Error;
use crate::plpgsql::{Block, Step};
use crate::procedure::context::{Context, Label, Statements};
use crate::procedure::statements;
use crate::procedure::writer::BodyWriter;
use crate::tree::{Name, Statement, StatementKind as Tree};
use std::mem::take;

/// The outermost statements, with a block for each label that begins with the first of them and ends at the label.
pub(in crate::procedure) fn labelled<'t>(
    writer: &mut BodyWriter<'t>,
    body: &'t [Statement],
    context: &Context<'t>,
) -> Result<(), Error> {
    let body = Statements::flat(body);
    let mut ends = Vec::new();
    for (at, statement) in body.statements().iter().copied().enumerate() {
        if let Tree::Label(name) = &statement.kind {
            ends.push((at, name));
        }
    }
    for (_, name) in ends.iter().rev() {
        let own = name.text.to_lowercase();
        if writer.labels.iter().any(|label| label.name == own) {
            return Err(Error::refused(&name.text, "the label stands twice", name.at));
        }
        let block = format!("@@label {}", writer.number());
        writer.labels.push(Label { name: own, block });
    }
    let mut from = 0;
    for (end, _) in ends {
        statements::body(writer, &body.after(from).until(end - from), context)?;
        let label = writer.labels.pop().map(|label| label.block);
        // with the blocks of the labels further up
        let body = take(&mut writer.steps);
        writer.steps.push(Step::Block(Block { label, body, handler: None }));
        from = end + 1;
    }
    statements::body(writer, &body.after(from), context)
}

pub(super) fn goto<'t>(writer: &mut BodyWriter<'t>, name: &Name, context: &Context<'t>) -> Result<(), Error> {
    let own = name.text.to_lowercase();
    let Some(label) = writer.labels.iter().find(|label| label.name == own) else {
        return Err(Error::refused("goto", "the label is not further down, outside of all blocks", name.at));
    };
    if let Some(region) = &context.region {
        let why = format!("it would leave the transaction begun in line {} open", region.line);
        return Err(Error::refused("goto", &why, name.at));
    }
    let leave = Step::exit(label.block.as_str());
    control::leave_tries(writer, context, |_| true);
    writer.add(leave);
    Ok(())
}
