//! Cursors.

use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::tree::{Access, CursorName, CursorOption, DeclareCursor, Direction, Fetch, StatementKind};

const OPTIONS: [(&str, CursorOption); 13] = [
    ("local", CursorOption::Local),
    ("global", CursorOption::Global),
    ("forward_only", CursorOption::ForwardOnly),
    ("scroll", CursorOption::Scroll),
    ("static", CursorOption::Static),
    ("insensitive", CursorOption::Insensitive),
    ("keyset", CursorOption::Keyset),
    ("dynamic", CursorOption::Dynamic),
    ("fast_forward", CursorOption::FastForward),
    ("read_only", CursorOption::ReadOnly),
    ("scroll_locks", CursorOption::ScrollLocks),
    ("optimistic", CursorOption::Optimistic),
    ("type_warning", CursorOption::TypeWarning),
];

impl<'t> Parser<'t> {
    /// Whether `name [options] cursor` comes next.
    pub(super) fn declares_cursor(&self) -> bool {
        if !self.peek().is_some_and(super::names::is_free) {
            return false;
        }
        let options = ["insensitive", "scroll", "semi_sensitive", "no"];
        let mut ahead = 1;
        while self.ahead(ahead).is_some_and(|token| token.is_any(&options)) {
            ahead += 1;
        }
        self.ahead_is(ahead, "cursor")
    }

    pub(super) fn declare_cursor(&mut self) -> Result<StatementKind, Error> {
        let name = CursorName::Name { name: self.name()?, global: false };
        self.cursor_of(name)
    }

    /// The rest after the name in DECLARE, or after the = of SET.
    pub(super) fn cursor_of(&mut self, name: CursorName) -> Result<StatementKind, Error> {
        let mut options = Vec::new();
        self.cursor_options(&mut options);
        self.expect_word("cursor")?;
        self.cursor_options(&mut options);
        self.expect_word("for")?;
        if !self.next_is_any(&["select", "with"]) && !self.next_is_symbol("(") {
            let why = "a cursor reads a select";
            return Err(Error::refused("declare … cursor for", why, self.position()));
        }
        let query = self.query()?;
        let access = if self.words(&["for", "update"]) {
            Some(Access::Update(if self.word("of") { self.list(Self::name)? } else { Vec::new() }))
        } else if self.word("for") {
            self.expect_word("read")?;
            self.expect_word("only")?;
            Some(Access::ReadOnly)
        } else {
            None
        };
        Ok(StatementKind::DeclareCursor(Box::new(DeclareCursor { name, options, query, access })))
    }

    fn cursor_options(&mut self, options: &mut Vec<CursorOption>) {
        while let Some((_, option)) = OPTIONS.iter().find(|(word, _)| self.next_is(word)) {
            self.at += 1;
            options.push(*option);
        }
    }

    pub(super) fn cursor_name(&mut self) -> Result<CursorName, Error> {
        if self.next_is_variable() {
            return self.own_variable().map(CursorName::Variable);
        }
        let global = self.next_is("global") && self.ahead(1).is_some_and(|next| next.is_name());
        self.at += usize::from(global);
        Ok(CursorName::Name { name: self.name()?, global })
    }

    pub(super) fn open(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        self.cursor_name().map(StatementKind::OpenCursor)
    }

    pub(super) fn close(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        self.cursor_name().map(StatementKind::CloseCursor)
    }

    pub(super) fn deallocate(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.next_is("locator") && self.ahead(1).is_some_and(|next| next.kind == TokenKind::Variable) {
            return Err(Error::refused("deallocate locator", "texts have no locators", self.position()));
        }
        self.word("cursor");
        self.cursor_name().map(StatementKind::DeallocateCursor)
    }

    pub(super) fn fetch(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        let direction = self.direction()?;
        match direction {
            Some(_) => self.expect_word("from")?,
            None => {
                self.word("from");
            }
        }
        let cursor = self.cursor_name()?;
        let into = if self.word("into") { self.variables()? } else { Vec::new() };
        let direction = direction.unwrap_or(Direction::Next);
        Ok(StatementKind::Fetch(Box::new(Fetch { direction, cursor, into })))
    }

    fn direction(&mut self) -> Result<Option<Direction>, Error> {
        let plain = [
            ("next", Direction::Next),
            ("prior", Direction::Prior),
            ("first", Direction::First),
            ("last", Direction::Last),
        ];
        for (word, direction) in plain {
            if self.ahead_is(1, "from") && self.word(word) {
                return Ok(Some(direction));
            }
        }
        if self.word("absolute") {
            return self.operand_with_sign().map(Direction::Absolute).map(Some);
        }
        if self.word("relative") {
            return self.operand_with_sign().map(Direction::Relative).map(Some);
        }
        Ok(None)
    }
}
