//! Sequences.

use super::procedure;
use crate::error::Error;
use crate::parser::{names, Parser};
use crate::tree::{Sequence, StatementKind};

/// The rest after `create sequence` and `alter sequence`.
pub(super) fn sequence(parser: &mut Parser<'_>, creates: bool) -> Result<StatementKind, Error> {
    let name = names::object_name(parser)?;
    let mut sequence = Sequence::of(name, creates);
    while sequence_option(parser, &mut sequence)? {}
    Ok(StatementKind::Sequence(Box::new(sequence)))
}

/// Returns false if no further option follows.
fn sequence_option(parser: &mut Parser<'_>, sequence: &mut Sequence) -> Result<bool, Error> {
    if sequence.creates && parser.word("as") {
        sequence.type_ = names::type_name(parser)?;
    } else if sequence.creates && parser.words(&["start", "with"]) {
        sequence.start = Some(names::integer(parser)?);
    } else if !sequence.creates && parser.word("restart") {
        sequence.restarts = true;
        sequence.start = if parser.word("with") { Some(names::integer(parser)?) } else { None };
    } else if parser.words(&["increment", "by"]) {
        sequence.increment = Some(names::integer(parser)?);
    } else if parser.word("minvalue") {
        sequence.least = Some(names::integer(parser)?);
    } else if parser.word("maxvalue") {
        sequence.most = Some(names::integer(parser)?);
    } else if parser.word("cycle") {
        sequence.cycles = Some(true);
    } else if parser.word("cache") {
        // the number of cached values does not affect results
        if !procedure::at_statement_end(parser)
            && !parser.next_is_any(&["no", "cycle", "minvalue", "maxvalue"])
        {
            names::integer(parser)?;
        }
    } else if parser.words(&["no", "cycle"]) {
        sequence.cycles = Some(false);
    } else if !parser.words(&["no", "cache"]) {
        let at = parser.position();
        if !parser.words(&["no", "minvalue"]) && !parser.words(&["no", "maxvalue"]) {
            return Ok(false);
        }
        if !sequence.creates {
            return Err(Error::refused("alter sequence … no minvalue", "give the number", at));
        }
    }
    Ok(true)
}
