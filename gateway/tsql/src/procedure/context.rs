//! The statements that enclose a statement of a procedure.

use crate::tree::{Statement, StatementKind, TransactionName};
use std::cell::RefCell;
use std::rc::Rc;

/// A label inside its block.
pub struct Label {
    pub name: String,
    pub block: String,
}

/// The handling of an error.
#[derive(Clone, Default)]
pub enum Handler<'t> {
    /// It ends the procedure.
    #[default]
    None,
    /// The procedure continues after an error that ends only its statement.
    GoOn,
    /// A CATCH block handles it.
    Try(Rc<Try<'t>>),
}

/// A TRY block with a CATCH for its errors.
pub struct Try<'t> {
    pub number: u32,
    /// The label of the block that an error leaves.
    pub label: String,
    pub outer: Handler<'t>,
    pub catch: &'t [Statement],
    /// The number of loops around it.
    pub loops: u32,
    /// Procedures and triggers that it runs are informed of it.
    pub marks: bool,
}

impl<'t> Handler<'t> {
    /// The TRY block, if it is one.
    pub fn as_try(&self) -> Option<&Rc<Try<'t>>> {
        match self {
            Handler::Try(block) => Some(block),
            _ => None,
        }
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Handler::None)
    }

    /// This handler if it is a TRY block, else none.
    pub fn only_try(&self) -> Handler<'t> {
        self.as_try().map_or(Handler::None, |block| Handler::Try(block.clone()))
    }
}

/// Some of the statements of a list.
#[derive(Clone)]
pub struct Statements<'t> {
    all: Rc<[&'t Statement]>,
    from: usize,
}

impl<'t> Statements<'t> {
    pub fn of(statements: &'t [Statement]) -> Statements<'t> {
        Statements { all: statements.iter().collect(), from: 0 }
    }

    /// Statements and those of the blocks among them, which are not scopes.
    pub fn flat(statements: &'t [Statement]) -> Statements<'t> {
        let mut all = Vec::new();
        let mut lists = vec![statements.iter()];
        while let Some(list) = lists.last_mut() {
            match list.next() {
                None => {
                    lists.pop();
                }
                Some(Statement { kind: StatementKind::Block(inner), .. }) => lists.push(inner.iter()),
                Some(statement) => all.push(statement),
            }
        }
        Statements { all: all.into(), from: 0 }
    }

    pub fn after(&self, at: usize) -> Statements<'t> {
        Statements { all: self.all.clone(), from: self.from + at }
    }

    pub fn until(&self, end: usize) -> Statements<'t> {
        Statements { all: self.statements()[..end].iter().copied().collect(), from: 0 }
    }

    pub fn and(&self, more: &Statements<'t>) -> Statements<'t> {
        Statements { all: self.statements().iter().chain(more.statements()).copied().collect(), from: 0 }
    }

    pub fn statements(&self) -> &[&'t Statement] {
        self.all.get(self.from..).unwrap_or(&[])
    }
}

/// The CATCH of the TRY block that began inside a region.
#[derive(Clone, Copy)]
pub struct Guard<'t> {
    pub catch: &'t [Statement],
    pub line: u32,
}

impl Guard<'_> {
    pub fn is(self, other: Self) -> bool {
        std::ptr::eq(self.catch, other.catch)
    }
}

/// Following statements, the CATCH block that contains them, and the TRY block around them in the region.
#[derive(Clone)]
pub struct Segment<'t> {
    pub body: Statements<'t>,
    pub caught: Option<u32>,
    pub guard: Option<Guard<'t>>,
}

/// The statements that follow up to the end of a region, the nearest first.
#[derive(Clone, Default)]
pub struct Rest<'t>(Option<Rc<(Segment<'t>, Rest<'t>)>>);

impl<'t> Rest<'t> {
    pub fn before(&self, segment: Segment<'t>) -> Rest<'t> {
        Rest(Some(Rc::new((segment, self.clone()))))
    }

    /// The following statements, in as few pieces as TRY and CATCH blocks allow.
    pub fn joined(&self) -> Vec<Segment<'t>> {
        let mut joined: Vec<Segment<'t>> = Vec::new();
        let mut rest = self;
        while let Some(next) = &rest.0 {
            let segment = &next.0;
            rest = &next.1;
            if segment.body.statements().is_empty() {
                continue;
            }
            let guards = |last: &Segment<'t>| match (last.guard, segment.guard) {
                (None, None) => true,
                (Some(one), Some(other)) => one.is(other),
                _ => false,
            };
            match joined.last_mut() {
                Some(last) if guards(last) && last.caught == segment.caught => {
                    last.body = last.body.and(&segment.body);
                }
                _ => joined.push(segment.clone()),
            }
        }
        joined
    }
}

/// A COMMIT or ROLLBACK, with the statements that follow it outside the region.
pub struct Site<'t> {
    pub rest: Rest<'t>,
    /// The TRY block to leave afterwards, if the site is in its CATCH.
    pub leaves: Option<Rc<Try<'t>>>,
}

/// A transaction.
pub struct Region<'t> {
    pub number: u32,
    pub line: u32,
    pub name: Option<TransactionName>,
    pub loops: u32,
    pub sites: RefCell<Vec<Site<'t>>>,
    /// The line of a result set inside.
    pub results: std::cell::Cell<Option<u32>>,
    pub rolls_back: std::cell::Cell<bool>,
}

#[derive(Clone, Default)]
pub struct Context<'t> {
    pub handler: Handler<'t>,
    pub caught: Option<u32>,
    pub region: Option<Rc<Region<'t>>>,
    /// The statements that follow up to the end of the region.
    pub rest: Rest<'t>,
    /// The TRY block that began inside the region.
    pub guard: Option<Guard<'t>>,
    pub leaves: Option<Rc<Try<'t>>>,
    pub loops: u32,
}
