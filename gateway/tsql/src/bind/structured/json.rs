//! `for json path | auto`: the rows of a query as one JSON text (SQL Server: "FOR Clause", "Format query results as
//! JSON").

use super::json_property::{name_written, quoted, sources, value_of, JsonSource};
use crate::bind::binder::item::{has_star, Item, Stands, Written, NAMELESS};
use crate::bind::binder::title::ResultType;
use crate::bind::binder::Binder;
use crate::bind::query::select;
use crate::error::Error;
use crate::facts::types::nvarchar;
use crate::postgres::{self, call, Alias, Listed, Order, Scalar, Source};
use crate::resolve::names::quoted as identifier;
use crate::tree::{ForJson, Query, QueryBody, SelectItem};

/// The name of the column of a result.
const TITLE: &str = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B";
/// Characters per row of a result.
const ROW: u32 = 2033;
/// The most arguments of a function of PostgreSQL, except the first.
const MOST_ARGUMENTS: usize = 99;

/// A property: its name and a colon, and its value.
#[derive(Debug)]
struct Leaf {
    name: Scalar,
    value: Scalar,
}

/// A member of an object, by its name.
#[derive(Debug)]
enum Member {
    Leaf(String, Leaf),
    Object(String, Vec<Member>),
}

impl Member {
    fn name(&self) -> &str {
        match self {
            Member::Leaf(name, _) | Member::Object(name, _) => name,
        }
    }

    /// `"name":value`, null if nothing is written.
    fn sql(&self, json: &ForJson) -> Scalar {
        match self {
            Member::Leaf(_, Leaf { name, value }) => {
                let value = value.clone();
                let value = match json.includes_nulls {
                    true => call("coalesce", [value, Scalar::text("null")]),
                    false => value,
                };
                name.clone().concatenated(value)
            }
            Member::Object(name, members) => {
                let open = Scalar::Text(format!("{}:{{", quoted(name)));
                open.concatenated(not_empty(members_sql(members, json))).concatenated(Scalar::text("}"))
            }
        }
    }
}

/// A nesting level of FOR JSON AUTO.
#[derive(Debug)]
struct Level {
    source: Option<usize>,
    members: Vec<Member>,
    /// Whether each is a column of the level's table.
    are_columns: Vec<bool>,
}

/// The members of an object, separated by commas.
fn members_sql(members: &[Member], json: &ForJson) -> Scalar {
    joined(members.iter().map(|member| member.sql(json)).collect())
}

fn joined(mut parts: Vec<Scalar>) -> Scalar {
    if parts.len() <= MOST_ARGUMENTS {
        parts.insert(0, Scalar::text(","));
        return call("concat_ws", parts);
    }
    joined(parts.chunks(MOST_ARGUMENTS).map(|some| not_empty(joined(some.to_vec()))).collect())
}

/// A text, or null if it has no characters.
fn not_empty(text: Scalar) -> Scalar {
    call("nullif", [text, Scalar::text("")])
}

pub fn for_json(
    binder: &mut Binder<'_>,
    query: &Query,
    json: &ForJson,
    stands: Stands,
) -> Result<Written, Error> {
    refuse_json(binder, query, json, stands)?;
    let plain = Query { for_json: None, ..query.clone() };
    let around = (binder.around.aggregates, binder.around.for_json);
    binder.around.for_json = true;
    let Written { sql, items } = select::query(binder, &plain, Stands::Inside)?;
    (binder.around.aggregates, binder.around.for_json) = around;
    if has_star(&items) {
        let why = "the columns of * are not known here: name them";
        return not_known(binder, "for json of *", why, json, stands);
    }
    let columns: Vec<String> = (1..=items.len()).map(|index| format!("c{index}")).collect();
    let rows = match (&plain.body, json.is_auto) {
        (QueryBody::Select(select), true) => {
            let sources = sources(&select.from);
            if let Some(item) = items.iter().find(|item| item.property.is_strange) {
                let what = format!("for json auto of column {}", item.name.as_deref().unwrap_or(""));
                return not_known(binder, &what, "its table is not known here: qualify it", json, stands);
            }
            auto(&items, &columns, &sources, json)?
        }
        (_, true) => one_object(&flat(&items, &columns, json)?, json),
        (_, false) => one_object(&nested(&items, &columns, json)?, json),
    };
    let (open, close) = match (&json.root, json.has_wrapper) {
        (_, false) => (String::new(), ""),
        (None, true) => (String::from("["), "]"),
        (Some(root), true) => (format!("{{{}:[", quoted(root)), "]}"),
    };
    let whole = match open.is_empty() {
        true => rows,
        false => Scalar::Text(open).concatenated(rows).concatenated(Scalar::text(close)),
    };
    let rows = sql.named("\"@@json\"", columns);
    Ok(result(postgres::Query::of([Listed::from(whole)], rows), stands))
}

/// For a statement that is written again when its tables are known; an error if it never is.
fn not_known(
    binder: &Binder<'_>,
    what: &str,
    why: &str,
    json: &ForJson,
    stands: Stands,
) -> Result<Written, Error> {
    let refusal = Error::refused(what, why, json.at);
    match &binder.scope.schema {
        None => Err(refusal),
        Some(_) => {
            let arguments = [Scalar::number(102), Scalar::Text(refusal.text), Scalar::Null.cast("text")];
            let refused = Listed::from(call("tsql.refused", arguments));
            let one = postgres::Select { list: vec![refused], ..Default::default() };
            Ok(result(one.into(), stands))
        }
    }
}

fn refuse_json(binder: &Binder<'_>, query: &Query, json: &ForJson, stands: Stands) -> Result<(), Error> {
    if !binder.dialect().has_for_xml {
        return Err(Error::refused("for json", "a result is rows and columns", json.at));
    }
    if binder.scope.limits_rows && stands == Stands::Outermost {
        return Err(Error::refused("for json beside set rowcount", "use top", json.at));
    }
    let QueryBody::Select(select) = &query.body else { return Ok(()) };
    if let Some(into) = &select.into {
        return Err(not_allowed("SELECT INTO", into.at));
    }
    if select.items.iter().any(|item| matches!(item, SelectItem::Assign { .. })) {
        let text = "The FOR JSON clause is not allowed in a ASSIGNMENT statement.";
        return Err(Error::new(6819, text, json.at).with_severity(16));
    }
    if json.is_auto && select.from.is_empty() {
        let text = "FOR JSON AUTO requires at least one table for generating JSON objects. Use FOR JSON PATH or add a \
                        FROM clause with a table name.";
        return Err(Error::new(13600, text, json.at).with_severity(16));
    }
    Ok(())
}

/// 13602
pub fn not_allowed(statement: &str, at: impl Into<crate::tree::Position>) -> Error {
    let text = format!("The FOR JSON clause is not allowed in a {statement} statement.");
    Error::new(13602, text, at.into()).with_severity(16)
}

/// The query for one text. A result consists of parts, and has no row if it is null.
fn result(sql: postgres::Query, stands: Stands) -> Written {
    let of = nvarchar(None);
    if stands != Stands::Outermost {
        let item = Item { of, ..Item::new(Scalar::column(NAMELESS), Some(String::new())) };
        return Written { sql, items: vec![item] };
    }
    let (text, part) = (Scalar::column("\"@@text\""), Scalar::column("\"@@part\""));
    let [one, row] = [1, ROW].map(Scalar::number);
    let start = one.clone().infix("+", row.clone().infix("*", part.clone()));
    let last = call("length", [text.clone()]).infix("-", one).infix("/", row.clone());
    let value = call("pg_catalog.substr", [text, start, row]);
    let parts = call("generate_series", [Scalar::number(0), last]);
    let parts = Source::Call(parts, Some(Alias { name: part.to_string(), columns: Vec::new() }));
    let whole = sql.named("\"@@whole\"", vec![String::from("\"@@text\"")]);
    let query = postgres::Query::from(postgres::Select {
        list: vec![Listed::named(value.clone(), identifier(TITLE))],
        from: vec![whole, parts],
        ..Default::default()
    });
    let result_type = Some(ResultType { of, not_null: false });
    let item = Item { of, result_type, ..Item::new(value, Some(TITLE.to_owned())) };
    Written { sql: query.ordered(vec![Order::by(part, false)]), items: vec![item] }
}

/// The rows, each as an object.
fn one_object(members: &[Member], json: &ForJson) -> Scalar {
    let object = Scalar::text("{").concatenated(members_sql(members, json)).concatenated(Scalar::text("}"));
    call("string_agg", [object, Scalar::text(",")])
}

fn leaves<'i>(
    items: &'i [Item],
    columns: &'i [String],
    json: &'i ForJson,
) -> impl Iterator<Item = Result<(&'i Item, &'i str, Leaf), Error>> {
    items.iter().zip(columns).map(|(item, column)| {
        let Some(name) = item.name.as_deref().filter(|name| !name.is_empty()) else {
            let text = "Column expressions and data sources without names or aliases cannot be formatted as JSON text \
                        using FOR JSON clause. Add alias to the unnamed column or table.";
            return Err(Error::new(13605, text, json.at).with_severity(16));
        };
        let written = item.property.name.clone().unwrap_or_else(|| name_written(name));
        Ok((item, name, Leaf { name: written, value: value_of(item, column) }))
    })
}

/// Names with periods are paths of objects: the members of an object must be adjacent.
fn nested(items: &[Item], columns: &[String], json: &ForJson) -> Result<Vec<Member>, Error> {
    let mut members = Vec::new();
    for leaf in leaves(items, columns, json) {
        let (_, name, leaf) = leaf?;
        let steps: Vec<&str> = name.split('.').collect();
        if steps.iter().any(|step| step.is_empty()) {
            let text = format!(
                "Property '{name}' cannot be generated in JSON output due to invalid character in the column name or \
                 alias. Column name or alias that contains '..', starts or ends with '.' is not allowed in query that \
                 has FOR JSON clause."
            );
            return Err(Error::new(13603, text, json.at).with_severity(16));
        }
        // the path up to this step as written
        let written = match steps.as_slice() {
            [.., last] if steps.len() > 1 => name_written(last),
            _ => leaf.name,
        };
        add(&mut members, &steps, name, Leaf { name: written, value: leaf.value }, json)?;
    }
    Ok(members)
}

fn add(
    members: &mut Vec<Member>,
    steps: &[&str],
    path: &str,
    leaf: Leaf,
    json: &ForJson,
) -> Result<(), Error> {
    let (own, inner) = match steps {
        [] => return Ok(()),
        [own, inner @ ..] => (*own, inner),
    };
    if let (Some(Member::Object(name, members)), false) = (members.last_mut(), inner.is_empty()) {
        if name == own {
            return add(members, inner, path, leaf, json);
        }
    }
    if members.iter().any(|member| member.name() == own) {
        return Err(conflict(path, json));
    }
    if inner.is_empty() {
        members.push(Member::Leaf(own.to_owned(), leaf));
        return Ok(());
    }
    let mut object = Vec::new();
    add(&mut object, inner, path, leaf, json)?;
    members.push(Member::Object(own.to_owned(), object));
    Ok(())
}

fn conflict(path: &str, json: &ForJson) -> Error {
    let text = format!(
        "Property '{path}' cannot be generated in JSON output due to a conflict with another column name or alias. Use \
         different names and aliases for each column in SELECT list."
    );
    Error::new(13601, text, json.at).with_severity(16)
}

/// A member for each item.
fn flat(items: &[Item], columns: &[String], json: &ForJson) -> Result<Vec<Member>, Error> {
    let mut members = Vec::new();
    for leaf in leaves(items, columns, json) {
        let (_, name, leaf) = leaf?;
        add_to(&mut members, name, leaf, json)?;
    }
    Ok(members)
}

fn add_to(members: &mut Vec<Member>, name: &str, leaf: Leaf, json: &ForJson) -> Result<(), Error> {
    if members.iter().any(|member| member.name() == name) {
        return Err(conflict(name, json));
    }
    members.push(Member::Leaf(name.to_owned(), leaf));
    Ok(())
}

/// FOR JSON AUTO: each table begins a level with its first column, and other values belong to the deepest level so far.
fn auto(items: &[Item], columns: &[String], sources: &[JsonSource], json: &ForJson) -> Result<Scalar, Error> {
    let mut levels: Vec<Level> = Vec::new();
    for leaf in leaves(items, columns, json) {
        let (item, name, leaf) = leaf?;
        let source = item.property.source;
        let index = match source {
            Some(_) => levels.iter().position(|level| level.source == source),
            None => levels.len().checked_sub(1),
        };
        let index = match index {
            Some(index) => index,
            // values before all columns belong to the first table
            None if levels.len() == 1 && levels[0].source.is_none() => {
                levels[0].source = source;
                0
            }
            None => {
                levels.push(Level { source, members: Vec::new(), are_columns: Vec::new() });
                levels.len() - 1
            }
        };
        add_to(&mut levels[index].members, name, leaf, json)?;
        levels[index].are_columns.push(source.is_some());
    }
    if let [level] = levels.as_slice() {
        return Ok(one_object(&level.members, json));
    }
    let mut parts = Vec::new();
    let mut names = Vec::new();
    for level in &levels {
        let own = level.members.iter().zip(&level.are_columns).filter(|(_, is_column)| **is_column);
        let compared: Vec<Scalar> = own.map(|(member, _)| member.sql(json)).collect();
        parts.push(members_sql(&level.members, json));
        parts.push(joined(compared));
        let shown = level.source.map_or("", |index| sources[index].shown.as_str());
        names.push(name_written(shown));
    }
    let rows = call("array_agg", [Scalar::Array(parts, "text")]);
    Ok(call("tsql.json_nested", [rows, Scalar::Array(names, "text")]))
}
