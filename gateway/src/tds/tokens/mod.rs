//! The tokens of a reply, one subject per file. Differences between the dialects are in the dialect value.

pub mod columns;
pub mod done;
pub mod envchange;
pub mod loginack;
pub mod message;
pub mod returns;
pub mod text;

use super::dialect::Dialect;
use super::wire::{Reader, Result, WireError};

/// Skips the body of a token that is neither a row, a message nor the end of a statement.
pub fn skip(reader: &mut Reader<'_>, token: u8, dialect: &Dialect) -> Result<()> {
    match token {
        // FEATUREEXTACK: features up to the byte 0xFF
        0xAE if dialect.is_tds7() => {
            while reader.u8("feature")? != 0xFF {
                skip_long(reader)?;
            }
            Ok(())
        }
        0xE4 if dialect.is_tds7() => skip_long(reader),
        0x22 | 0x62 | 0x17 if !dialect.is_tds7() => skip_long(reader),
        0x65 if !dialect.is_tds7() => {
            let length = usize::from(reader.u8("message length")?);
            reader.take(length, "message").map(|_| ())
        }
        0x78 => reader.take(4, "offset").map(|_| ()),
        0x7C => reader.take(8, "procedure").map(|_| ()),
        // ENVCHANGE, CAPABILITY, ORDER, TABNAME, COLINFO, SSPI, DYNAMIC, CONTROL, OPTIONCMD, cursor tokens
        0xE3 | 0xE2 | 0xA9 | 0xA4 | 0xA5 | 0xED | 0xE7 | 0xAE | 0xA6 | 0x83 | 0x88 => {
            let length = usize::from(reader.u16("token length")?);
            reader.take(length, "token").map(|_| ())
        }
        other => Err(WireError::Malformed(format!("token 0x{other:02x} is not read here"))),
    }
}

fn skip_long(reader: &mut Reader<'_>) -> Result<()> {
    let length = reader.u32("token length")? as usize;
    reader.take(length, "token").map(|_| ())
}
