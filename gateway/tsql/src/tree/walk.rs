//! The statements inside statements.

use super::{Statement, StatementKind};

/// `statements` and those inside them, in the order of the text, except those of a procedure that is defined.
pub fn every(statements: &[Statement]) -> Every<'_> {
    Every { rest: vec![statements.iter()] }
}

pub struct Every<'t> {
    rest: Vec<std::slice::Iter<'t, Statement>>,
}

impl<'t> Iterator for Every<'t> {
    type Item = &'t Statement;

    fn next(&mut self) -> Option<&'t Statement> {
        loop {
            let Some(next) = self.rest.last_mut()?.next() else {
                self.rest.pop();
                continue;
            };
            // the last one pushed is visited first
            for body in next.bodies().into_iter().flatten().rev() {
                self.rest.push(body.iter());
            }
            return Some(next);
        }
    }
}

impl Statement {
    /// The nested lists of statements.
    pub fn bodies(&self) -> [Option<&[Statement]>; 2] {
        match &self.kind {
            StatementKind::Block(body) => [Some(body), None],
            StatementKind::If { then, otherwise, .. } => {
                [Some(then.alone()), otherwise.as_deref().map(Statement::alone)]
            }
            StatementKind::While { body, .. } => [Some(body.alone()), None],
            StatementKind::TryCatch { body, catch } => [Some(body), Some(catch)],
            _ => [None, None],
        }
    }

    /// Itself as a list.
    pub fn alone(&self) -> &[Statement] {
        std::slice::from_ref(self)
    }

    /// The body of a branch or loop: the statements of a block, or itself.
    pub fn body(&self) -> &[Statement] {
        match &self.kind {
            StatementKind::Block(body) => body,
            _ => self.alone(),
        }
    }
}
