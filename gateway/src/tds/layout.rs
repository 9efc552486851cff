//! The shape of a call: its bytes without the values. A writer sends calls of one shape only, so names and types are
//! examined once; later calls are compared with the shape byte by byte and only their values are decoded.

use super::call::{self, Procedure};
use super::dialect::Dialect;
use super::table_value::TableValue;
use super::types::{decode_value, take_value, TypeInfo, Value};
use super::wire::{Reader, Result};
use std::borrow::Cow;

/// The number of sp_prepexecrpc, whose handle differs from call to call (MS-TDS 2.2.6.6).
pub const PREPARE_AND_CALL: u16 = 14;

#[derive(Debug)]
pub struct Layout {
    /// The bytes before the first parameter: the procedure, and at 5.0 the declaration of all parameters.
    head: Box<[u8]>,
    /// The bytes before each value (7.x: name, status and type), one after another.
    prefixes: Box<[u8]>,
    params: Box<[Slot]>,
    prepares: Option<Prepares>,
}

/// The beginning of an sp_prepexecrpc after `head`, which then ends before the handle.
#[derive(Debug)]
struct Prepares {
    handle: TypeInfo,
    /// The bytes of the parameter that names the procedure.
    name: Box<[u8]>,
}

#[derive(Debug)]
struct Slot {
    /// The end of its prefix in `prefixes`.
    prefix_end: usize,
    type_info: TypeInfo,
}

impl Layout {
    /// The shape of the single call in `body` after its headers. None if `body` contains anything else.
    pub fn of(body: &[u8], dialect: &Dialect) -> Result<Option<Layout>> {
        if dialect.is_tds7() {
            Layout::of_rpc(body, dialect)
        } else {
            Layout::of_dbrpc(body, dialect)
        }
    }

    fn of_rpc(body: &[u8], dialect: &Dialect) -> Result<Option<Layout>> {
        let mut reader = call::reader(body, dialect);
        let (procedure, _) = call::decode_rpc_head(&mut reader)?;
        let handle = match procedure {
            Procedure::Named(_) => None,
            Procedure::Numbered(PREPARE_AND_CALL) => {
                call::decode_rpc_param_head(&mut reader)?;
                Some(TypeInfo::decode(&mut reader, dialect)?)
            }
            Procedure::Numbered(_) => return Ok(None),
        };
        let head = between(body, 0, reader.position());
        let prepares = match handle {
            None => None,
            Some(handle) => {
                take_value(&mut reader, &handle, dialect)?;
                let start = reader.position();
                call::decode_rpc_param_head(&mut reader)?;
                let name = TypeInfo::decode(&mut reader, dialect)?;
                take_value(&mut reader, &name, dialect)?;
                Some(Prepares { handle, name: between(body, start, reader.position()).into() })
            }
        };
        let mut prefixes = Vec::new();
        let mut params = Vec::new();
        while !reader.is_empty() {
            let start = reader.position();
            if call::at_separator(&reader, dialect) {
                return Ok(None);
            }
            call::decode_rpc_param_head(&mut reader)?;
            if TableValue::is_next(&reader, dialect) {
                return Ok(None);
            }
            let type_info = TypeInfo::decode(&mut reader, dialect)?;
            prefixes.extend_from_slice(between(body, start, reader.position()));
            params.push(Slot { prefix_end: prefixes.len(), type_info });
            take_value(&mut reader, &type_info, dialect)?;
        }
        Ok(Some(Layout { head: head.into(), prefixes: prefixes.into(), params: params.into(), prepares }))
    }

    fn of_dbrpc(body: &[u8], dialect: &Dialect) -> Result<Option<Layout>> {
        let mut reader = call::reader(body, dialect);
        let Some((_, formats)) = call::decode_dbrpc_head(&mut reader, dialect)? else { return Ok(None) };
        let head = between(body, 0, reader.position());
        let params: Vec<Slot> =
            formats.iter().map(|format| Slot { prefix_end: 0, type_info: format.type_info() }).collect();
        for slot in &params {
            take_value(&mut reader, &slot.type_info, dialect)?;
        }
        if !reader.is_empty() {
            return Ok(None);
        }
        let prefixes = Box::default();
        Ok(Some(Layout { head: head.into(), prefixes, params: params.into(), prepares: None }))
    }

    /// Whether its calls are of sp_prepexecrpc.
    pub fn prepares(&self) -> bool {
        self.prepares.is_some()
    }

    /// The type of a parameter.
    pub fn type_of(&self, index: usize) -> Option<&TypeInfo> {
        self.params.get(index).map(|slot| &slot.type_info)
    }

    /// Starts reading `body`, if its head has this shape; otherwise None.
    pub fn read<'a>(&'a self, body: &'a [u8], dialect: &'a Dialect) -> Option<Values<'a>> {
        let mut reader = call::reader(body.strip_prefix(&*self.head)?, dialect);
        let mut handle = None;
        if let Some(prepares) = &self.prepares {
            let raw = take_value(&mut reader, &prepares.handle, dialect).ok()?;
            handle = match decode_value(raw.as_deref(), &prepares.handle, dialect).ok()? {
                Value::Int(handle) => Some(i32::try_from(handle).ok()?),
                Value::Null => None,
                _ => return None,
            };
            if reader.take(prepares.name.len(), "procedure name").ok()? != &*prepares.name {
                return None;
            }
        }
        Some(Values { layout: self, dialect, reader, next: 0, prefix_at: 0, handle })
    }
}

fn between(body: &[u8], start: usize, end: usize) -> &[u8] {
    body.get(start..end).unwrap_or(&[])
}

/// The values of a call of known shape, in the order they were sent.
pub struct Values<'a> {
    layout: &'a Layout,
    dialect: &'a Dialect,
    reader: Reader<'a>,
    next: usize,
    prefix_at: usize,
    /// The handle sent with an sp_prepexecrpc.
    pub handle: Option<i32>,
}

impl<'a> Values<'a> {
    /// The next value and its type. None if the bytes have another shape.
    pub fn value(&mut self) -> Option<(TypeInfo, Option<Cow<'a, [u8]>>)> {
        let slot = self.layout.params.get(self.next)?;
        let prefix = self.layout.prefixes.get(self.prefix_at..slot.prefix_end)?;
        // an empty comparison is slow on machines that compare memory by masked loads
        if !prefix.is_empty() && self.reader.take(prefix.len(), "parameter").ok()? != prefix {
            return None;
        }
        let value = take_value(&mut self.reader, &slot.type_info, self.dialect).ok()?;
        self.next += 1;
        self.prefix_at = slot.prefix_end;
        Some((slot.type_info, value))
    }

    /// Whether everything has been read.
    pub fn is_at_end(&self) -> bool {
        self.next == self.layout.params.len() && self.reader.is_empty()
    }
}
