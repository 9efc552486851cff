//! A call of known shape: from the wire to the values of a Bind message in one pass, without intermediate values.

use super::arguments::{assign, put_value_of, texts_taken, BindError};
use super::function::Function;
use super::parameters::Field;
use super::Catalogue;
use crate::convert::{copied, repeated, Element, Packed, PgType, Value, Zone};
use crate::postgres::commit::Statement;
use crate::postgres::message::put_value;
use crate::postgres::Values;
use crate::tds::call::Param;
use crate::tds::dialect::{Dialect, Endian};
use crate::tds::layout::Layout;
use crate::tds::types::{decode_value, TypeInfo};
use bytes::{BufMut, Bytes, BytesMut};
use postgres_protocol::IsNull;
use std::borrow::Cow;
use std::sync::Arc;

/// Minimum bytes of a waveform that is converted only when it is sent.
const LONG: usize = 32 << 10;

/// The binding of calls of one shape.
#[derive(Debug)]
pub struct Plan {
    /// The snapshot from which it was made: the plan is valid only as long as this.
    catalogue: Arc<Catalogue>,
    pub function: Arc<Function>,
    pub statement: Arc<Statement>,
    layout: Layout,
    steps: Box<[Step]>,
    /// Bytes of the last call's values without long waveforms: the next call has about as many.
    size: std::sync::atomic::AtomicUsize,
    /// For calls by sp_prepexecrpc: the name of the procedure as the client sends it.
    pub prepares: Option<Arc<str>>,
}

#[derive(Debug)]
enum Step {
    /// The start of a composite with this number of fields.
    Open(i32),
    /// The end of the composite.
    Close,
    /// The next value sent, for this field of the function. A value of `copied` bytes is copied.
    Value { field: usize, oid: Option<u32>, copied: Option<usize> },
    /// A field of this type that the caller omits.
    Null(u32),
}

impl Plan {
    /// A plan for calls of `layout`, made from the call with `params`. None if the values are not sent in the
    /// order in which they arrive, or for calls with defaults or outputs.
    pub fn make(
        catalogue: &Arc<Catalogue>,
        function: &Arc<Function>,
        params: &[Param<'_>],
        layout: Layout,
        dialect: &Dialect,
    ) -> Option<Plan> {
        // a value of another type for a text parameter of T-SQL is converted in each call
        let is_no_text = |param: &Param<'_>| param.type_of().is_some_and(|of| !of.is_text());
        let mut texts = texts_taken(function, params, dialect).into_iter().zip(params);
        if texts.any(|(text, param)| text.is_some() && is_no_text(param)) {
            return None;
        }
        let (slots, outputs) = assign(function, params, dialect).ok()?;
        let in_order = slots.iter().flatten().copied().eq(0..params.len());
        if !in_order || !outputs.is_empty() {
            return None;
        }
        let mut given = Vec::with_capacity(function.parameters.arguments.len());
        let mut steps = Vec::with_capacity(slots.len() + 2);
        let mut types = (0..).map_while(|index| layout.type_of(index));
        for argument in &function.parameters.arguments {
            let is_given = slots.get(argument.fields.clone())?.iter().any(Option::is_some);
            given.push(is_given && argument.direction.is_input());
            if !is_given {
                if argument.direction.is_input() && !argument.has_default {
                    return None;
                }
                continue;
            }
            if argument.is_composite {
                steps.push(Step::Open(i32::try_from(argument.fields.len()).ok()?));
            }
            for index in argument.fields.clone() {
                let field = function.parameters.fields.get(index)?;
                steps.push(match slots.get(index)? {
                    Some(_) => {
                        let copied = copied(types.next()?.token, field.pg_type);
                        Step::Value {
                            field: index,
                            oid: argument.is_composite.then_some(field.oid),
                            copied: copied.filter(|_| field.capacity.is_none()),
                        }
                    }
                    None => Step::Null(field.oid),
                });
            }
            if argument.is_composite {
                steps.push(Step::Close);
            }
        }
        Some(Plan {
            catalogue: catalogue.clone(),
            function: function.clone(),
            statement: function.statement(&given),
            layout,
            steps: steps.into(),
            size: std::sync::atomic::AtomicUsize::new(0),
            prepares: None,
        })
    }

    pub fn prepared_as(self, prepares: Option<Arc<str>>) -> Plan {
        Plan { prepares, ..self }
    }

    pub fn is_of(&self, catalogue: &Arc<Catalogue>) -> bool {
        Arc::ptr_eq(&self.catalogue, catalogue)
    }

    /// The values of the call in `body`, and its handle (sp_prepexecrpc). None if it is not a call of this shape, or has
    /// a time that occurs twice.
    pub fn bind(
        &self,
        body: &Bytes,
        dialect: &Dialect,
        zone: &Zone,
    ) -> Option<(Result<Values, BindError>, Option<i32>)> {
        use std::sync::atomic::Ordering::Relaxed;
        let mut values = self.layout.read(body, dialect)?;
        let mut out = BytesMut::with_capacity(self.size.load(Relaxed) + 64);
        let mut waveforms = Vec::new();
        // bytes of the waveforms; both counts at the start of the composite
        let mut left_out = 0;
        let mut open = (0, 0);
        for step in &self.steps {
            match step {
                Step::Open(fields) => {
                    open = (out.len(), left_out);
                    out.put_i32(-1);
                    out.put_i32(*fields);
                }
                Step::Close => {
                    let (start, before) = open;
                    let length = ((out.len() - start - 4 + left_out - before) as i32).to_be_bytes();
                    out.get_mut(start..start + 4)?.copy_from_slice(&length);
                }
                Step::Null(oid) => {
                    out.put_u32(*oid);
                    out.put_i32(-1);
                }
                Step::Value { field, oid, copied } => {
                    let (type_info, raw) = values.value()?;
                    if let Some(raw) = raw.as_deref().filter(|raw| Some(raw.len()) == *copied) {
                        put_number(*oid, raw, dialect.endian, &mut out);
                        continue;
                    }
                    let field = self.function.parameters.fields.get(*field)?;
                    if let Some(oid) = oid {
                        out.put_u32(*oid);
                    }
                    let mut is_repeated = false;
                    let element = raw.as_deref().and_then(|raw| element_of(field, raw, &type_info, dialect));
                    let written = match (raw, element) {
                        (Some(raw), Some(element)) => {
                            Packed::new(owned(raw, body), element).map(|waveform| {
                                out.put_i32(waveform.array_len() as i32);
                                left_out += waveform.array_len();
                                waveforms.push((out.len(), waveform));
                            })
                        }
                        (raw, _) => put_value(&mut out, |out| {
                            let Some(raw) = raw.as_deref() else { return Ok(IsNull::Yes) };
                            let value = decode_value(Some(raw), &type_info, dialect)?;
                            is_repeated = repeated(&value, field.pg_type, zone).is_some();
                            put_value_of(&value, field, oid.is_some(), dialect, zone, out)
                        }),
                    };
                    if is_repeated {
                        return None;
                    }
                    if let Err(error) = written {
                        // the refusal counts only if the rest also has this shape
                        while values.value().is_some() {}
                        let name = field.name.to_string();
                        let refused = Err(BindError::Value { name, error });
                        return values.is_at_end().then_some((refused, values.handle));
                    }
                }
            }
        }
        if !values.is_at_end() {
            return None;
        }
        self.size.store(out.len(), Relaxed);
        Some((Ok(Values::with_waveforms(out.freeze(), waveforms)), values.handle))
    }
}

/// The element type of a long packed waveform; None: another value.
fn element_of(field: &Field, raw: &[u8], type_info: &TypeInfo, dialect: &Dialect) -> Option<Element> {
    let PgType::Array(element) = field.pg_type else { return None };
    let is_packed = || matches!(decode_value(Some(raw), type_info, dialect), Ok(Value::Binary(_)));
    (raw.len() >= LONG && field.capacity.is_none() && is_packed()).then_some(element)
}

/// A value without a copy: a slice of `body`, or joined from several parts.
fn owned(raw: Cow<'_, [u8]>, body: &Bytes) -> Bytes {
    match raw {
        Cow::Borrowed(raw) => body.slice_ref(raw),
        Cow::Owned(raw) => raw.into(),
    }
}

/// A number in the client's byte order as a value of a Bind, or with its type as a field of a composite.
fn put_number(oid: Option<u32>, raw: &[u8], endian: Endian, out: &mut BytesMut) {
    if let Some(oid) = oid {
        out.put_u32(oid);
    }
    out.put_i32(raw.len() as i32);
    let start = out.len();
    out.put_slice(raw);
    if endian == Endian::Little {
        out[start..].reverse();
    }
}
