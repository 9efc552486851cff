//! GOTO to a later label among the outermost statements: it leaves the block that ends there.

use super::context::{Body, Context, Label};
use super::variable::TRY_SETTING;
use super::writer::{quoted, BodyWriter};
use crate::error::Error;
use crate::tree::{Name, Statement, StatementKind as Tree};

impl<'t> BodyWriter<'t> {
    /// The outermost statements, with a block for each label that begins with the first of them and ends at the label.
    pub(super) fn labelled(&mut self, body: &'t [Statement], context: &Context<'t>) -> Result<(), Error> {
        let body = Body::flat(body);
        let mut ends = Vec::new();
        for (at, statement) in body.statements().iter().copied().enumerate() {
            if let Tree::Label(name) = &statement.kind {
                ends.push((at, name));
            }
        }
        for (_, name) in ends.iter().rev() {
            let own = name.text.to_lowercase();
            if self.labels.iter().any(|label| label.name == own) {
                return Err(Error::refused(&name.text, "the label stands twice", name.at));
            }
            let block = format!("@@label {}", self.number());
            self.add(format!("<<{}>>", quoted(&block)));
            self.add("begin");
            self.indent += 1;
            self.labels.push(Label { name: own, block });
        }
        let mut from = 0;
        for (end, _) in ends {
            let before = self.lines.len();
            self.body(&body.after(from).until(end - from), context)?;
            if self.lines.len() == before {
                self.add("null;");
            }
            self.indent -= 1;
            self.add("end;");
            self.labels.pop();
            from = end + 1;
        }
        self.body(&body.after(from), context)
    }

    pub(super) fn goto(&mut self, name: &Name, context: &Context<'t>) -> Result<(), Error> {
        let own = name.text.to_lowercase();
        let Some(label) = self.labels.iter().find(|label| label.name == own) else {
            return Err(Error::refused(
                "goto",
                "the label is not further down, outside of all blocks",
                name.at,
            ));
        };
        if let Some(region) = &context.region {
            let why = format!("it would leave the transaction begun in line {} open", region.line);
            return Err(Error::refused("goto", &why, name.at));
        }
        let leave = format!("exit {};", quoted(&label.block));
        let mut handler = context.handler.clone();
        while let Some(block) = handler.as_try().cloned() {
            if block.calls {
                let marked = self.marked_by(&block.outer);
                self.set(TRY_SETTING, &marked);
            }
            handler = block.outer.clone();
        }
        self.add(leave);
        Ok(())
    }
}
