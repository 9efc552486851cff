//! A procedure call as received, in either dialect: RPC at 7.x (MS-TDS 2.2.6.6), DBRPC with PARAMFMT and PARAMS at
//! 5.0 (FreeTDS src/tds/query.c, tds_submit_rpc). Values stay in wire form.

use super::dialect::{Dialect, Endian, Version};
use super::table_value::TableValue;
use super::tokens::returns::{PARAMFMT, PARAMFMT2, PARAMS};
use super::types::{decode_value, take_value, ConvertError, TypeInfo, Value};
use super::wire::{utf16_text, Reader, Result, WireError};
use crate::convert::{type_of_wire, wire_of_type};
use std::borrow::Cow;
use std::sync::OnceLock;
use tsql::facts::types::{Type, TABLE};

/// The most parameters of one call: somewhat more than the columns of PostgreSQL's widest row type.
const MOST_PARAMETERS: usize = 2_100;

/// The called procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Procedure {
    Named(String),
    /// One of the system procedures that 7.x clients call by number.
    Numbered(u16),
}

/// A parameter's name without its @, as sent: names are compared, rarely decoded.
#[derive(Clone, Debug)]
pub enum Name<'a> {
    /// UTF-16LE, of a 7.x RPC.
    Wide(&'a [u8]),
    /// In the client's character set, of a 5.0 DBRPC.
    Narrow(&'a [u8]),
    /// From the text of an `exec`.
    Text(String),
}

/// The source of a parameter's value.
#[derive(Debug)]
pub enum Content<'a> {
    Wire { type_info: TypeInfo, bytes: Option<Cow<'a, [u8]>> },
    Value(Value<'a>),
    Table(TableValue<'a>),
}

#[derive(Debug)]
pub struct Param<'a> {
    /// Empty for a positional one.
    name: Name<'a>,
    pub output: bool,
    /// The client requests the procedure's default.
    pub default: bool,
    content: Content<'a>,
    /// The type that the text of an `exec` declares.
    of: Option<Type>,
    /// The value for a text parameter, if it differs from PostgreSQL's text of the value.
    text: OnceLock<Value<'static>>,
}

impl<'a> Param<'a> {
    /// A parameter in the text of an `exec`; `name` is "" for a positional one.
    pub fn of_text(name: String, value: Value<'a>, output: bool) -> Param<'a> {
        let content = Content::Value(value);
        Param { name: Name::Text(name), output, default: false, content, of: None, text: OnceLock::new() }
    }

    pub fn of_type(self, of: Option<Type>) -> Param<'a> {
        Param { of, ..self }
    }

    /// Sets a separate value for a text parameter.
    pub fn set_text(&self, value: Value<'static>) {
        self.text.get_or_init(|| value);
    }

    /// The keyword `default` in the text of an `exec`.
    pub fn default(name: String) -> Param<'a> {
        Param { default: true, ..Param::of_text(name, Value::Null, false) }
    }

    pub fn is_named(&self) -> bool {
        match &self.name {
            Name::Wide(raw) | Name::Narrow(raw) => !raw.is_empty(),
            Name::Text(text) => !text.is_empty(),
        }
    }

    /// Whether this is parameter `name` (ASCII letters compared without case).
    pub fn is(&self, name: &str) -> bool {
        match &self.name {
            Name::Wide(raw) => {
                raw.len() == 2 * name.len()
                    && raw
                        .chunks_exact(2)
                        .zip(name.bytes())
                        .all(|(unit, byte)| unit[1] == 0 && unit[0].eq_ignore_ascii_case(&byte))
            }
            Name::Narrow(raw) => raw.eq_ignore_ascii_case(name.as_bytes()),
            Name::Text(text) => text.eq_ignore_ascii_case(name),
        }
    }

    /// The name without its @.
    pub fn name(&self, dialect: &Dialect) -> String {
        match &self.name {
            Name::Wide(raw) => utf16_text(raw).unwrap_or_else(|| String::from("\u{FFFD}")),
            Name::Narrow(raw) => dialect.charset.decode_lossily(raw),
            Name::Text(text) => text.clone(),
        }
    }

    pub fn value(&self, dialect: &Dialect) -> std::result::Result<Value<'_>, ConvertError> {
        match &self.content {
            Content::Wire { type_info, bytes } => decode_value(bytes.as_deref(), type_info, dialect),
            Content::Value(value) => Ok(value.clone()),
            Content::Table(_) => Err(ConvertError::unsupported("a table as a value")),
        }
    }

    /// The value for a text parameter or, if not `is_text`, for another.
    pub fn value_for(
        &self,
        is_text: bool,
        dialect: &Dialect,
    ) -> std::result::Result<Value<'_>, ConvertError> {
        match self.text.get() {
            Some(text) if is_text => Ok(text.clone()),
            _ => self.value(dialect),
        }
    }

    /// The T-SQL type of its value; None: unknown.
    pub fn type_of(&self) -> Option<Type> {
        match &self.content {
            Content::Wire { type_info, .. } => type_of_wire(type_info),
            Content::Value(_) => self.of,
            Content::Table(_) => Some(TABLE),
        }
    }

    /// The type that the client declared; None in text, which declares none.
    pub fn declared_type(&self) -> Option<TypeInfo> {
        match &self.content {
            Content::Wire { type_info, .. } => Some(*type_info),
            Content::Value(_) | Content::Table(_) => None,
        }
    }

    /// The table sent as its value.
    pub fn table(&self) -> Option<&TableValue<'a>> {
        match &self.content {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The type of its value in a sql_variant; None: unknown.
    pub fn variant_type(&self) -> Option<TypeInfo> {
        self.declared_type().or_else(|| self.of.and_then(wire_of_type))
    }
}

#[derive(Debug)]
pub struct Call<'a> {
    pub procedure: Procedure,
    pub params: Vec<Param<'a>>,
    /// The client already knows the columns of the rows (fNoMetaData).
    pub knows_columns: bool,
}

/// Skips ALL_HEADERS, which start every 7.2 request (MS-TDS 2.2.5.3).
pub fn skip_headers(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<()> {
    if dialect.version >= Version::Tds72 {
        let total = reader.u32("request headers")? as usize;
        let rest = total
            .checked_sub(4)
            .ok_or_else(|| WireError::Malformed(format!("request headers of {total} bytes")))?;
        reader.take(rest, "request headers")?;
    }
    Ok(())
}

/// Reads one call of a 7.x RPC message. None at the end of the message.
pub fn decode_rpc<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Option<Call<'a>>> {
    if reader.is_empty() {
        return Ok(None);
    }
    let (procedure, options) = decode_rpc_head(reader)?;
    let mut params = Vec::new();
    while !reader.is_empty() {
        if at_separator(reader, dialect) {
            reader.u8("separator")?;
            break;
        }
        check_count(params.len())?;
        let (name, status) = decode_rpc_param_head(reader)?;
        let content = match TableValue::is_next(reader, dialect) {
            true => Content::Table(TableValue::decode(reader, dialect)?),
            false => {
                let type_info = TypeInfo::decode(reader, dialect)?;
                Content::Wire { type_info, bytes: take_value(reader, &type_info, dialect)? }
            }
        };
        params.push(Param {
            name: Name::Wide(name.strip_prefix(b"@\0").unwrap_or(name)),
            output: status & 0x01 != 0,
            default: status & 0x02 != 0,
            content,
            of: None,
            text: OnceLock::new(),
        });
    }
    Ok(Some(Call { procedure, params, knows_columns: options & NO_METADATA != 0 }))
}

/// fNoMetaData of a call's options.
const NO_METADATA: u16 = 0x02;

/// Procedure and options of a 7.x call.
pub(super) fn decode_rpc_head(reader: &mut Reader<'_>) -> Result<(Procedure, u16)> {
    let units = reader.u16("procedure name")?;
    let procedure = if units == 0xFFFF {
        Procedure::Numbered(reader.u16("procedure number")?)
    } else {
        Procedure::Named(reader.utf16(usize::from(units), "procedure name")?)
    };
    Ok((procedure, reader.u16("call options")?))
}

/// Whether a batch separator follows: 0x80 up to 7.1, 0xFF since 7.2.
pub(super) fn at_separator(reader: &Reader<'_>, dialect: &Dialect) -> bool {
    reader.peek() == Some(if dialect.version >= Version::Tds72 { 0xFF } else { 0x80 })
}

/// Name and status of a 7.x parameter.
pub(super) fn decode_rpc_param_head<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], u8)> {
    let units = usize::from(reader.u8("parameter name")?);
    let name = reader.take(units * 2, "parameter name")?;
    let status = reader.u8("parameter status")?;
    if status & 0x08 != 0 {
        return Err(WireError::Malformed("encrypted parameters are not served".into()));
    }
    Ok((name, status))
}

const DBRPC: u8 = 0xE6;

/// Reads a 5.0 call up to its values: its DBRPC token and the declaration of the parameters. None if another token
/// follows.
pub(super) fn decode_dbrpc_head<'a>(
    reader: &mut Reader<'a>,
    dialect: &Dialect,
) -> Result<Option<(Procedure, Vec<Format<'a>>)>> {
    if reader.peek() != Some(DBRPC) {
        return Ok(None);
    }
    reader.u8("DBRPC")?;
    let length = usize::from(reader.u16("DBRPC length")?);
    let mut body = Reader::new(reader.take(length, "DBRPC")?, dialect.endian);
    let name_length = usize::from(body.u8("procedure name")?);
    let name = body.take(name_length, "procedure name")?;
    let options = body.u16("call options")?;
    let name = dialect.charset.decode(name).ok_or_else(|| {
        WireError::Malformed(format!("procedure name is not valid {}", dialect.charset.name()))
    })?;
    let formats = if options & 0x02 == 0 { Vec::new() } else { decode_declared(reader, dialect)? };
    Ok(Some((Procedure::Named(name.into_owned()), formats)))
}

/// Reads PARAMFMT or PARAMFMT2, and the PARAMS token that follows if anything is declared.
fn decode_declared<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Vec<Format<'a>>> {
    let wide = match reader.u8("parameter format")? {
        PARAMFMT => false,
        PARAMFMT2 => true,
        other => {
            return Err(WireError::Malformed(format!(
                "token 0x{other:02x} where parameters should be declared"
            )))
        }
    };
    let formats = decode_formats(reader, wide, dialect)?;
    if !formats.is_empty() && reader.u8("parameters")? != PARAMS {
        return Err(WireError::Malformed("declared parameters have no values".into()));
    }
    Ok(formats)
}

/// Skips the declarations of parameters whose values are sent later.
pub(super) fn skip_formats(reader: &mut Reader<'_>) -> Result<()> {
    let length = match reader.u8("parameter format")? {
        PARAMFMT => usize::from(reader.u16("PARAMFMT length")?),
        PARAMFMT2 => reader.u32("PARAMFMT2 length")? as usize,
        other => {
            let text = format!("token 0x{other:02x} where parameters should be declared");
            return Err(WireError::Malformed(text));
        }
    };
    reader.take(length, "parameter formats").map(|_| ())
}

/// Reads the parameters of a 5.0 command or dynamic statement: PARAMFMT and PARAMS.
pub fn decode_arguments<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Vec<Param<'a>>> {
    let formats = decode_declared(reader, dialect)?;
    decode_params(reader, formats, dialect)
}

/// Reads a 5.0 call. None if another token follows.
pub fn decode_dbrpc<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Option<Call<'a>>> {
    let Some((procedure, formats)) = decode_dbrpc_head(reader, dialect)? else { return Ok(None) };
    let params = decode_params(reader, formats, dialect)?;
    Ok(Some(Call { procedure, params, knows_columns: false }))
}

/// A parameter as PARAMFMT declares it.
#[derive(Clone, Debug)]
pub(super) struct Format<'a> {
    name: &'a [u8],
    output: bool,
    type_info: TypeInfo,
}

impl Format<'_> {
    pub(super) fn type_info(&self) -> TypeInfo {
        self.type_info
    }
}

/// Reads the body of a 5.0 PARAMFMT (`wide`: PARAMFMT2) token.
fn decode_formats<'a>(reader: &mut Reader<'a>, wide: bool, dialect: &Dialect) -> Result<Vec<Format<'a>>> {
    let length = if wide {
        reader.u32("PARAMFMT2 length")? as usize
    } else {
        usize::from(reader.u16("PARAMFMT length")?)
    };
    let mut body = Reader::new(reader.take(length, "PARAMFMT")?, dialect.endian);
    let count = usize::from(body.u16("parameter count")?);
    check_count(count.saturating_sub(1))?;
    let mut formats = Vec::with_capacity(count.min(length));
    for _ in 0..count {
        let name_length = usize::from(body.u8("parameter name")?);
        let name = body.take(name_length, "parameter name")?;
        let status =
            if wide { body.u32("parameter status")? } else { u32::from(body.u8("parameter status")?) };
        let user_type = body.u32("user type")?;
        let type_info = TypeInfo::decode(&mut body, dialect)?.with_user_type(user_type);
        let locale = usize::from(body.u8("locale")?);
        body.take(locale, "locale")?;
        formats.push(Format {
            name: name.strip_prefix(b"@").unwrap_or(name),
            output: status & 0x01 != 0,
            type_info,
        });
    }
    Ok(formats)
}

/// Reads the values of a 5.0 PARAMS token, declared by `formats`.
fn decode_params<'a>(
    reader: &mut Reader<'a>,
    formats: Vec<Format<'a>>,
    dialect: &Dialect,
) -> Result<Vec<Param<'a>>> {
    formats
        .into_iter()
        .map(|format| {
            let bytes = take_value(reader, &format.type_info, dialect)?;
            Ok(Param {
                name: Name::Narrow(format.name),
                output: format.output,
                default: false,
                content: Content::Wire { type_info: format.type_info, bytes },
                of: None,
                text: OnceLock::new(),
            })
        })
        .collect()
}

fn check_count(so_far: usize) -> Result<()> {
    if so_far >= MOST_PARAMETERS {
        return Err(WireError::Malformed(format!("a call has more than {MOST_PARAMETERS} parameters")));
    }
    Ok(())
}

/// Big-endian clients exist only at 5.0.
pub fn reader<'a>(body: &'a [u8], dialect: &Dialect) -> Reader<'a> {
    Reader::new(body, if dialect.is_tds7() { Endian::Little } else { dialect.endian })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RPC: &[u8] = b"\x04\0e\0c\0h\0o\0\0\0\x02@\0a\0\x01\x26\x04\x04\x05\0\0\0\
        \0\0\xe7\x28\0\x09\x04\xd0\0\x34\x04\0h\0i\0\xff\x01\0p\0\0\0";
    /// PARAMFMT declares an INTN(4) called @a, to be returned, and a VARCHAR(255).
    const DBRPC: &[u8] = b"\xe6\x07\0\x04echo\x02\0\xec\x16\0\x02\0\x02@a\x01\0\0\0\0\x26\x04\0\
        \0\0\0\0\0\0\x27\xff\0\xd7\x04\x05\0\0\0\x02hi";

    fn rpc_calls(bytes: &[u8], dialect: &Dialect) -> Result<Vec<(Procedure, usize)>> {
        let mut reader = reader(bytes, dialect);
        let mut calls = Vec::new();
        while let Some(call) = decode_rpc(&mut reader, dialect)? {
            calls.push((call.procedure, call.params.len()));
        }
        Ok(calls)
    }

    #[test]
    fn two_calls_of_a_7x_message() {
        let dialect = Dialect::new(Version::Tds74);
        let named = |name: &str| Procedure::Named(name.to_owned());
        assert_eq!(rpc_calls(RPC, &dialect), Ok(vec![(named("echo"), 2), (named("p"), 0)]));
        let call = decode_rpc(&mut reader(RPC, &dialect), &dialect).unwrap().unwrap();
        let [a, words] = &call.params[..] else { panic!("two parameters") };
        assert!(a.is_named() && a.is("A") && a.output && !words.is_named() && !words.output);
        assert_eq!(
            (a.value(&dialect), words.value(&dialect)),
            (Ok(Value::Int(5)), Ok(Value::Text("hi".into())))
        );
    }

    #[test]
    fn a_call_of_5() {
        let dialect = Dialect::new(Version::Tds50);
        let mut reader = reader(DBRPC, &dialect);
        let call = decode_dbrpc(&mut reader, &dialect).unwrap().unwrap();
        assert!(reader.is_empty() && call.procedure == Procedure::Named("echo".into()));
        let [a, words] = &call.params[..] else { panic!("two parameters") };
        assert!(a.is("a") && a.output && !words.is_named());
        assert_eq!(
            (a.value(&dialect), words.value(&dialect)),
            (Ok(Value::Int(5)), Ok(Value::Text("hi".into())))
        );
    }

    #[test]
    fn every_message_cut_short_is_refused() {
        let seven = Dialect::new(Version::Tds74);
        let five = Dialect::new(Version::Tds50);
        for length in 1..RPC.len() {
            // a call may end after its head, after each parameter and after the separator
            let whole = matches!(length, 12 | 25 | 41 | 42);
            assert_eq!(rpc_calls(&RPC[..length], &seven).is_ok(), whole, "{length}");
        }
        for length in 1..DBRPC.len() {
            assert!(decode_dbrpc(&mut reader(&DBRPC[..length], &five), &five).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(
            changes in proptest::collection::vec((0usize..60, any::<u8>()), 1..5),
            big in any::<bool>(),
        ) {
            let mut seven = RPC.to_vec();
            let mut five = DBRPC.to_vec();
            for (at, byte) in changes {
                for bytes in [&mut seven, &mut five] {
                    if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
                }
            }
            for version in [Version::Tds71, Version::Tds72, Version::Tds74] {
                let _ = rpc_calls(&seven, &Dialect::new(version));
            }
            let endian = if big { Endian::Big } else { Endian::Little };
            let dialect = Dialect { endian, ..Dialect::new(Version::Tds50) };
            if let Ok(Some(call)) = decode_dbrpc(&mut reader(&five, &dialect), &dialect) {
                for param in &call.params {
                    let _ = param.value(&dialect);
                }
            }
        }
    }
}
