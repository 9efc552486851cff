//! A request as text for the report: the name of the call, or the beginning of a text. Never a login, nor a text that
//! may contain a password.

use crate::tds::call::{self, Procedure};
use crate::tds::dialect::Dialect;
use crate::tds::packet::MessageKind;
use crate::tds::types::Value;
use crate::tds::wire::utf16_text;

const LONGEST: usize = 500;
const LANGUAGE: u8 = 0x21;

pub fn shown(kind: MessageKind, body: &[u8], dialect: &Dialect) -> String {
    let text = match kind {
        MessageKind::Rpc => called(body, dialect),
        MessageKind::Batch => batch(body, dialect),
        MessageKind::Normal => tokens(body, dialect),
        MessageKind::BulkLoad => Some("rows of a bulk copy".to_owned()),
        MessageKind::Transaction => Some("a transaction manager's request".to_owned()),
        MessageKind::Attention => Some("a cancel".to_owned()),
        _ => None,
    };
    let text = text.unwrap_or_else(|| format!("a request of kind {kind:?}"));
    if text.to_lowercase().contains("password") {
        return "a text with the word password".to_owned();
    }
    text.chars().take(LONGEST).collect()
}

/// Whether a text contains @@spid, which clients query at their login.
pub fn asks_own(body: &[u8], dialect: &Dialect) -> bool {
    let wanted = b"@@spid";
    let text: Vec<u8> = match dialect.is_tds7() {
        true => body.iter().copied().filter(|byte| *byte != 0).collect(),
        false => body.to_vec(),
    };
    text.to_ascii_lowercase().windows(wanted.len()).any(|window| window == wanted)
}

fn called(body: &[u8], dialect: &Dialect) -> Option<String> {
    let mut reader = call::reader(body, dialect);
    call::skip_headers(&mut reader, dialect).ok()?;
    let call = call::decode_rpc(&mut reader, dialect).ok()??;
    let name = match &call.procedure {
        Procedure::Named(name) => name.clone(),
        Procedure::Numbered(number) => format!("system procedure {number}"),
    };
    // for sp_executesql and similar procedures the text identifies the request
    let text = call.params.iter().find_map(|param| match param.value(dialect) {
        Ok(Value::Text(text)) if name.starts_with("s") => Some(text.into_owned()),
        _ => None,
    });
    Some(match text {
        Some(text) if matches!(call.procedure, Procedure::Numbered(_)) => format!("{name}: {text}"),
        _ => format!("exec {name}"),
    })
}

fn batch(body: &[u8], dialect: &Dialect) -> Option<String> {
    let mut reader = call::reader(body, dialect);
    call::skip_headers(&mut reader, dialect).ok()?;
    utf16_text(reader.take(reader.remaining(), "text").ok()?)
}

fn tokens(body: &[u8], dialect: &Dialect) -> Option<String> {
    let mut reader = call::reader(body, dialect);
    if reader.peek() == Some(LANGUAGE) {
        reader.u8("LANGUAGE").ok()?;
        let length = reader.u32("text length").ok()? as usize;
        reader.u8("text status").ok()?;
        let text = reader.take(length.saturating_sub(1), "text").ok()?;
        return Some(dialect.charset.decode_lossily(text));
    }
    match call::decode_dbrpc(&mut reader, dialect).ok()??.procedure {
        Procedure::Named(name) => Some(format!("exec {name}")),
        Procedure::Numbered(number) => Some(format!("system procedure {number}")),
    }
}
