//! Tests of binding without a database: functions are described by hand, calls are encoded as clients do.

use super::function::Declared;
use super::parameters::{Attribute, Composite, Parts};
use super::*;
use crate::convert::{PgType, Zone};
use crate::metrics::Metrics;
use crate::postgres::Values;
use crate::tds::call::{self, Param};
use crate::tds::dialect::{Dialect, Endian, Version};
use crate::tds::layout::Layout;
use crate::tds::types::{encode_value, TypeInfo, TypeToken, Value};
use crate::tds::wire::Put;
use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use std::sync::Arc;

const INT4: u32 = 23;
const FLOAT4: u32 = 700;
const VARCHAR: u32 = 1043;
const ROW: u32 = 90_001;

fn declared<'a>(schema: &'a str, name: &'a str) -> Declared<'a> {
    Declared {
        oid: 1,
        schema,
        name,
        is_procedure: false,
        is_set: false,
        return_type: 0,
        joins_group: false,
        only_reads: false,
        node: None,
        value_type: None,
        takes: Arc::default(),
    }
}

fn function(declared: Declared<'_>, parts: Parts) -> Arc<Function> {
    let metrics = Metrics::default().of_procedure(declared.name.to_owned());
    Arc::new(Function::new(declared, Arc::new(parts.parameters()), metrics))
}

/// `put(r row(seq_no int4, a real, b real, s varchar))` returning int.
fn put_function() -> Arc<Function> {
    let attributes =
        [("seq_no", INT4), ("a", FLOAT4), ("b", FLOAT4), ("s", VARCHAR)].map(|(name, oid)| Attribute {
            name: name.into(),
            oid,
            pg_type: PgType::from_oid(oid),
            // varchar(8)
            typmod: if oid == VARCHAR { 4 + 8 } else { -1 },
        });
    let mut parts = Parts::default();
    parts.argument(
        "r",
        Direction::In,
        false,
        ROW,
        PgType::Other(ROW),
        Some(Composite { relation: 90_000, attributes: &attributes }),
    );
    let declared = Declared { joins_group: true, return_type: INT4, ..declared("s", "put") };
    function(declared, parts)
}

/// `last(n int4 default …, out seq_no int4, out at float4)`.
fn last_function() -> Arc<Function> {
    let mut parts = Parts::default();
    parts.argument("n", Direction::In, true, INT4, PgType::Int4, None);
    parts.argument("seq_no", Direction::Out, false, INT4, PgType::Int4, None);
    parts.argument("at", Direction::Out, false, FLOAT4, PgType::Float4, None);
    function(Declared { oid: 2, return_type: 2249, only_reads: true, ..declared("s", "last") }, parts)
}

#[derive(Clone, Debug)]
struct Sent {
    name: &'static str,
    type_info: TypeInfo,
    value: Value<'static>,
    output: bool,
}

fn sent(name: &'static str, value: Value<'static>, dialect: &Dialect) -> Sent {
    let type_info = match value {
        Value::Int(_) => TypeInfo::new(TypeToken::IntN, 4),
        Value::Text(_) if dialect.is_tds7() => TypeInfo::new(TypeToken::NVarChar, 400),
        Value::Text(_) => TypeInfo::new(TypeToken::VarChar, 255),
        _ => TypeInfo::new(TypeToken::FloatN, 4),
    };
    Sent { name, type_info, value, output: false }
}

fn request(params: &[Sent], dialect: &Dialect) -> BytesMut {
    let mut out = BytesMut::new();
    if dialect.is_tds7() {
        out.put_u16_le(3);
        out.put_utf16("put");
        out.put_u16_le(0);
        for param in params {
            let units = param.name.encode_utf16().count() as u8;
            out.put_u8(units);
            out.put_utf16(param.name);
            out.put_u8(u8::from(param.output));
            param.type_info.encode(&mut out, dialect);
            encode_value(&param.value, &param.type_info, dialect, &mut out).unwrap();
        }
        return out;
    }
    out.put_u8(0xE6);
    out.put_u16_as(6, dialect.endian);
    out.put_slice(b"\x03put");
    out.put_u16_as(if params.is_empty() { 0 } else { 2 }, dialect.endian);
    if params.is_empty() {
        return out;
    }
    let mut formats = BytesMut::new();
    formats.put_u16_as(params.len() as u16, dialect.endian);
    for param in params {
        formats.put_u8(param.name.len() as u8);
        formats.put_slice(param.name.as_bytes());
        formats.put_u8(u8::from(param.output));
        formats.put_u32_as(0, dialect.endian);
        param.type_info.encode(&mut formats, dialect);
        formats.put_u8(0);
    }
    out.put_u8(0xEC);
    out.put_u16_as(formats.len() as u16, dialect.endian);
    out.put_slice(&formats);
    out.put_u8(0xD7);
    for param in params {
        encode_value(&param.value, &param.type_info, dialect, &mut out).unwrap();
    }
    out
}

fn read<'a>(body: &'a [u8], dialect: &Dialect) -> Vec<Param<'a>> {
    let mut reader = call::reader(body, dialect);
    let call = if dialect.is_tds7() {
        call::decode_rpc(&mut reader, dialect)
    } else {
        call::decode_dbrpc(&mut reader, dialect)
    };
    call.unwrap().unwrap().params
}

fn dialects() -> impl Strategy<Value = Dialect> {
    prop_oneof![
        Just(Dialect::new(Version::Tds74)),
        Just(Dialect::new(Version::Tds71)),
        Just(Dialect::new(Version::Tds50)),
        Just(Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) }),
    ]
}

fn reals() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![4 => any::<f32>().prop_map(Value::Real), 1 => Just(Value::Null)]
}

/// Calls of put: fields in order, some left out.
fn calls() -> impl Strategy<Value = (Dialect, Vec<Sent>)> {
    (dialects(), any::<i32>(), reals(), reals(), "[ -~]{1,20}", any::<[bool; 4]>()).prop_map(
        |(dialect, seq_no, a, b, s, given)| {
            let all = [
                sent("@seq_no", Value::Int(seq_no.into()), &dialect),
                sent("@a", a, &dialect),
                sent("@B", b, &dialect),
                sent("@s", Value::Text(s.into()), &dialect),
            ];
            let some: Vec<Sent> =
                all.iter().zip(given).filter(|(_, given)| *given).map(|(sent, _)| sent.clone()).collect();
            (dialect, if some.is_empty() { all.to_vec() } else { some })
        },
    )
}

fn plan_of(body: &[u8], dialect: &Dialect) -> Option<Plan> {
    let layout = Layout::of(body, dialect).unwrap().unwrap();
    Plan::make(&Arc::new(Catalogue::default()), &put_function(), &read(body, dialect), layout, dialect)
}

fn bound(body: &[u8], dialect: &Dialect) -> Result<Values, BindError> {
    bind(&put_function(), &read(body, dialect), dialect, &Zone::UTC).map(|bound| bound.values.into())
}

proptest! {
    #[test]
    fn a_plan_writes_what_binding_writes((dialect, params) in calls(), other in any::<i32>()) {
        let body = request(&params, &dialect).freeze();
        let plan = plan_of(&body, &dialect).unwrap();
        prop_assert_eq!(plan.bind(&body, &dialect, &Zone::UTC), Some((bound(&body, &dialect), None)));
        // the next call of the same shape
        let mut next = params.clone();
        next[0].value = if next[0].name == "@seq_no" { Value::Int(other.into()) } else { Value::Null };
        let body = request(&next, &dialect).freeze();
        prop_assert_eq!(plan.bind(&body, &dialect, &Zone::UTC), Some((bound(&body, &dialect), None)));
    }

    #[test]
    fn a_plan_never_reads_another_shape((dialect, params) in calls(), at in any::<prop::sample::Index>(), byte: u8) {
        let body = request(&params, &dialect).freeze();
        let plan = plan_of(&body, &dialect).unwrap();
        let mut damaged = body.to_vec();
        *at.get_mut(&mut damaged) = byte;
        let damaged = Bytes::from(damaged);
        if let Some((values, _)) = plan.bind(&damaged, &dialect, &Zone::UTC) {
            prop_assert_eq!(values, bound(&damaged, &dialect));
        }
        let cut = body.slice(..at.index(body.len()));
        prop_assert_eq!(plan.bind(&cut, &dialect, &Zone::UTC), None);
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), dialect in dialects()) {
        let mut reader = call::reader(&bytes, &dialect);
        let _ = call::decode_rpc(&mut reader, &dialect);
        let mut reader = call::reader(&bytes, &dialect);
        let _ = call::decode_dbrpc(&mut reader, &dialect);
        let _ = Layout::of(&bytes, &dialect);
    }
}

#[test]
fn values_out_of_order_take_the_long_way() {
    let dialect = Dialect::new(Version::Tds74);
    let params = [sent("@b", Value::Real(1.0), &dialect), sent("@seq_no", Value::Int(1), &dialect)];
    let body = request(&params, &dialect);
    assert!(plan_of(&body, &dialect).is_none());
    assert!(bound(&body, &dialect).is_ok());
}

fn refusal(params: &[Sent]) -> (i32, String) {
    let dialect = Dialect::new(Version::Tds74);
    let body = request(params, &dialect);
    let error = bound(&body, &dialect).unwrap_err();
    let message = error.to_message(&put_function());
    (message.number, message.text)
}

#[test]
fn calls_that_do_not_fit_are_refused_by_name() {
    let dialect = Dialect::new(Version::Tds74);
    let int = |name| sent(name, Value::Int(1), &dialect);
    assert_eq!(refusal(&[]).0, 201);
    assert_eq!(refusal(&[int(""), int(""), int(""), int(""), int("")]).0, 8144);
    let (number, text) = refusal(&[int("@seq_no"), int("@nope")]);
    assert_eq!((number, text.contains("@nope")), (8145, true));
    assert_eq!(refusal(&[int("@seq_no"), int("@SEQ_NO")]).0, 8143);
    assert_eq!(refusal(&[int("@seq_no"), int("")]).0, 119);
    let (number, text) = refusal(&[Sent { output: true, ..int("@seq_no") }]);
    assert_eq!((number, text.contains("@seq_no")), (8162, true));
    let (number, text) = refusal(&[int("@seq_no"), sent("@a", Value::Text("x".into()), &dialect)]);
    assert_eq!((number, text.contains("@a"), text.contains("'x'")), (8114, true, false));
}

#[test]
fn outputs_and_defaults_shape_the_statement() {
    let last = last_function();
    assert_eq!(last.returns, Returns::Outputs);
    assert_eq!(last.statement(&[true, false, false]).sql, r#"select * from "s"."last"($1)"#);
    assert_eq!(last.statement(&[false, false, false]).sql, r#"select * from "s"."last"()"#);
    let dialect = Dialect::new(Version::Tds74);
    let params = [Sent { output: true, ..sent("@at", Value::Null, &dialect) }];
    let body = request(&params, &dialect);
    let bound = bind(&last, &read(&body, &dialect), &dialect, &Zone::UTC).unwrap();
    assert_eq!((bound.given, bound.outputs), (vec![false, false, false], vec![(0, 2)]));
}

#[test]
fn a_composite_is_sent_to_columns_of_these_names_only() {
    let expected = concat!(
        r#"select "s"."put"($1) where tsql.demand_columns('90000'::pg_catalog.oid, "#,
        "array['seq_no', 'a', 'b', 's']::pg_catalog.text[])"
    );
    assert_eq!(put_function().statement(&[true]).sql, expected);
}

/// `p(out return_status int4, "@a" int4, inout "@b" float4)`, as compiled from T-SQL.
fn compiled_function() -> Arc<Function> {
    let mut parts = Parts::default();
    parts.argument("return_status", Direction::Out, false, INT4, PgType::Int4, None);
    parts.argument("@a", Direction::In, true, INT4, PgType::Int4, None);
    parts.argument("@b", Direction::InOut, true, FLOAT4, PgType::Float4, None);
    function(Declared { oid: 3, is_procedure: true, return_type: 2249, ..declared("s", "p") }, parts)
}

#[test]
fn a_compiled_procedure_shows_neither_the_sign_of_its_arguments_nor_its_status() {
    let function = compiled_function();
    let shown: Vec<_> = function.parameters.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(shown, ["a", "b"]);
    assert_eq!(function.parameters.status_column, Some(0));
    assert_eq!(
        function.statement(&[false, false, true]).sql,
        "call \"s\".\"p\"(\"return_status\" => null, \"@b\" => $1)"
    );
    assert_eq!(last_function().parameters.status_column, None);
}

#[test]
fn system_procedures_win_and_those_of_sybase_are_for_its_clients() {
    let all = ["ringlog", "sys", "sybsystemprocs"];
    let functions = all.map(|schema| function(declared(schema, "sp_help"), Parts::default()));
    let catalogue = Catalogue::of(functions, HashMap::new());
    let found = |schema, version| {
        let dialect = Dialect::new(version);
        let path = SearchPath { database: "ringlog", schemas: &[] };
        catalogue.find(schema, "SP_HELP", path, &dialect, |_| true).unwrap().schema.clone()
    };
    assert_eq!(found(None, Version::Tds74), "sys");
    assert_eq!(found(Some("ringlog"), Version::Tds71), "sys");
    assert_eq!(found(None, Version::Tds50), "sybsystemprocs");
}

#[test]
fn a_database_has_its_own_procedures_and_those_that_are_everywhere() {
    let all = [("msdb", "px"), ("site", "px"), ("ringlog", "put_a"), ("public", "pg")];
    let catalogue = Catalogue::of(
        all.map(|(schema, name)| function(declared(schema, name), Parts::default())),
        HashMap::new(),
    );
    let dialect = Dialect::new(Version::Tds74);
    for (schema, name, database, expected) in [
        (None, "px", "tempdb", None),
        (Some("tempdb"), "px", "msdb", None),
        (Some("MSDB"), "PX", "tempdb", Some("msdb")),
        (None, "px", "site", Some("site")),
        (None, "put_a", "tempdb", Some("ringlog")),
        (Some("log"), "put_a", "tempdb", Some("ringlog")),
        (None, "pg", "tempdb", Some("public")),
        (Some("tempdb"), "pg", "tempdb", None),
    ] {
        let path = ["online", "ringlog", "public"].map(String::from);
        let found = catalogue.find(schema, name, SearchPath { database, schemas: &path }, &dialect, |_| true);
        let found = found.as_ref().map(|found| found.schema.as_str());
        assert_eq!(found.ok(), expected, "{schema:?} {name} in {database}");
    }
}

#[test]
fn parameters_are_found_by_name_in_any_case() {
    let mut parts = Parts::default();
    for name in ["Ünit", "b", "a", "ÜNIT", "@B", "ΣΑΣ"] {
        parts.argument(name, Direction::In, false, INT4, PgType::Int4, None);
    }
    let parameters = parts.parameters();
    let indexes = |name: &str| parameters.indexes_of(name).collect::<Vec<_>>();
    assert_eq!((indexes("A"), indexes("B"), indexes("c")), (vec![2], vec![1, 4], vec![]));
    assert_eq!((indexes("üNIT"), indexes("σας")), (vec![0, 3], vec![5]));
    let unique: Vec<_> = parameters.fields.iter().map(|field| field.is_unique).collect();
    assert_eq!(unique, [false, false, true, false, false, true]);
}

#[test]
fn a_call_goes_to_the_node_that_has_its_table() {
    let node = |name: &str| Some(Arc::<str>::from(name));
    let mut parts = Parts::default();
    parts.argument("r", Direction::In, false, ROW, PgType::Other(ROW), None);
    let put =
        function(Declared { node: node("b"), joins_group: true, ..declared("ringlog", "put_x") }, parts);
    let by_table = |schema: &str, argument: &str| {
        let mut parts = Parts::default();
        parts.argument(argument, Direction::In, false, 25, PgType::Text, None);
        function(Declared { joins_group: true, ..declared(schema, "claim_writer") }, parts)
    };
    let nodes = HashMap::from([("x".to_owned(), Arc::<str>::from("b"))]);
    let catalogue = Catalogue::of([put.clone()], nodes);
    let value = |text: &str| [&(text.len() as i32).to_be_bytes()[..], text.as_bytes(), b"more"].concat();
    let found =
        |function: &Function, values: &[u8]| catalogue.node_of(function, values).map(|node| node.to_string());
    assert_eq!(found(&put, b""), Some("b".into()));
    // the table's row type has another oid on a node
    assert_eq!(put.statement(&[true]).parameter_types, [0]);
    assert_eq!(found(&by_table("ringlog", "table_name"), &value("x")), Some("b".into()));
    assert_eq!(found(&by_table("ringlog", "table_name"), &value("y")), None);
    assert_eq!(found(&by_table("ringlog", "table_name"), &(-1i32).to_be_bytes()), None);
    assert_eq!(found(&by_table("ringlog", "table_name"), &[0, 0, 0, 9, b'x']), None);
    assert_eq!(found(&by_table("ringlog", "name"), &value("x")), None);
    assert_eq!(found(&by_table("site", "table_name"), &value("x")), None);
}
