//! Queries of a procedure: their rows are returned to its caller by a cursor, which a notice names.

use super::current;
use super::cursor::rows_of;
use crate::bind::{self, ResultType, Title, Translated, Verb};
use crate::error::Error;
use crate::facts::notices::{RESULT_SET, ROW_COUNT, WIDE};
use crate::plpgsql::{Body, Definition, Raise, Step};
use crate::postgres::{call, Scalar, Statement};
use crate::procedure::context::Context;
use crate::procedure::run::Run;
use crate::procedure::variable::{
    field, variable, BEGAN, CURSOR, MADE, N, ROW, SCOPE_IDENTITY, SILENT, TRY_SETTING,
};
use crate::procedure::writer::{BodyWriter, Purpose, RowCount, Rows};
use crate::procedure::{inside, run};
use crate::resolve::names::{stored, table, table_variable, Relation};
use crate::tree::{self, Expression, Select, SelectItem, StatementKind as Tree, TableSource, TableVariable};

/// The kind of a change in the notice of its row count; "" for an update.
fn kind_of(change: Verb) -> &'static str {
    match change {
        Verb::Insert => "insert",
        Verb::Delete => "delete",
        Verb::Merge => "merge",
        Verb::Update | Verb::Select | Verb::SelectInto => "",
    }
}

pub(super) fn query<'t>(
    writer: &mut BodyWriter<'t>,
    statement: &Tree,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let (scope, mut named) = writer.named();
    named.has_time = true;
    let translated = bind::statement(statement, scope, &mut named)?;
    let (uses_time, keeps, texts) = (named.uses_time, named.facts.keeps(), named.texts);
    let made = named.facts.created.take().filter(|made| named.facts.of_one_table && !made.is_global());
    let Some(mut query) = translated else { return define(writer, statement, line, context) };
    if uses_time {
        // one variable for all functions of a statement
        writer.declare(BEGAN, "timestamptz");
        writer.at(line);
        writer.add(Step::assign(BEGAN, call("clock_timestamp", [])));
    }
    let makes_table = query.kind == Verb::SelectInto;
    if makes_table {
        writer.own_connection = true;
    }
    if let Some(made) = made_by(statement) {
        end_with(writer, &made.name);
        writer.make(table(made)?, query.made.take());
    }
    if !query.assigns.is_empty() {
        if query.kind != Verb::Select {
            return Err(Error::refused("update … set @variable", "not inside a procedure", line));
        }
        let run = select_into(writer, query);
        run::run(writer, context, line, run);
    } else if query.kind == Verb::Select {
        let wide = is_wide(&query, texts);
        return rows(writer, query, keeps, wide, line, context);
    } else if gives_rows(statement) {
        return Err(Error::refused("output", "not inside a procedure", line));
    } else {
        let mut steps = match &query.current {
            Some(current) => current::change_current(writer, current, query.sql, line)?,
            None => vec![Step::Sql(query.sql)],
        };
        let kind = kind_of(query.kind);
        steps.extend(send_count(writer, kind));
        steps.extend(made.map(|made| inherit(statement, &made)).transpose()?.flatten());
        let identity = query.into.as_deref().and_then(|into| keep_identity(writer, into));
        let is_counted = writer.sends_counts || identity.is_some();
        steps.extend(identity.into_iter().flatten());
        let rows = match (is_counted, writer.rows) {
            (false, _) => RowCount::Counted,
            (true, Rows::Left) if writer.sends_counts => RowCount::SENT,
            (true, _) => RowCount::Value(variable(N)),
        };
        // SQL Server's "(0 row(s) affected)"
        let caught = writer.sends_counts.then(|| count_of(writer, Scalar::number(0), kind));
        run::run(writer, context, line, Run { caught, ..Run::leaving(steps, rows) });
    }
    Ok(())
}

fn send_count(writer: &mut BodyWriter<'_>, kind: &str) -> Body {
    if !writer.sends_counts {
        return Body::new();
    }
    writer.declare(N, "bigint");
    vec![Step::CountRows(N.to_owned()), count_of(writer, variable(N), kind)]
}

/// After an insert, if scope_identity() is used: the number assigned to its rows.
fn keep_identity(writer: &mut BodyWriter<'_>, into: &str) -> Option<Body> {
    if !writer.is_declared(SCOPE_IDENTITY) {
        return None;
    }
    let mut steps = Vec::new();
    if !writer.sends_counts {
        writer.declare(N, "bigint");
        steps.push(Step::CountRows(N.to_owned()));
    }
    let identity = [call("tsql.identity_of", [Scalar::text(into)]), variable(SCOPE_IDENTITY)];
    let keep = Step::assign(SCOPE_IDENTITY, call("coalesce", identity));
    steps.push(Step::if_(variable(N).infix(">", Scalar::number(0)), [keep]));
    Some(steps)
}

/// The notice of a row count. `kind`: of the statement.
fn count_of(writer: &BodyWriter<'_>, rows: Scalar, kind: &str) -> Step {
    let detail = match writer.purpose {
        Purpose::Trigger { .. } => format!("trigger {kind}").trim_end().to_owned(),
        _ => kind.to_owned(),
    };
    let detail = writer.silently(Scalar::Text(detail));
    Step::notice(Some(ROW_COUNT), rows.cast("text"), Some(detail))
}

/// SELECT @a = …: the values of the last row, or the variables' previous ones if there is none.
fn select_into(writer: &mut BodyWriter<'_>, query: Translated) -> Run {
    writer.declare(ROW, "record");
    writer.declare(N, "bigint");
    let columns: Vec<String> = (1..=query.assigns.len()).map(|number| format!("c{number}")).collect();
    let assigned = query.assigns.iter().zip(&columns);
    let mut body: Body =
        assigned.map(|(name, column)| Step::assign(name.as_str(), field(ROW, column.as_str()))).collect();
    body.push(Step::assign(N, variable(N).infix("+", Scalar::number(1))));
    let rows = query.sql.into_query().map(|query| rows_of(query, columns));
    let mut steps = vec![Step::assign(N, Scalar::number(0))];
    steps.extend(rows.map(|rows| Step::For(ROW.to_owned(), rows, body)));
    if !writer.sends_counts {
        return Run::leaving(steps, RowCount::Value(variable(N)));
    }
    steps.push(count_of(writer, variable(N), "select"));
    Run::leaving(steps, if writer.rows == Rows::Left { RowCount::SENT } else { RowCount::Value(variable(N)) })
}

/// Whether a text of a result may contain any character, as in a batch: one of the query's variables does. None if that
/// does not matter.
fn is_wide(query: &Translated, texts: Vec<Scalar>) -> Option<Scalar> {
    let is_text = |title: &Title| title.result_type.is_some_and(|known| known.of.is_text());
    query.columns.as_ref().filter(|columns| columns.iter().any(is_text))?;
    let has_any = |text: Scalar| {
        let [bytes, characters] =
            ["octet_length", "char_length"].map(|length| call(length, [text.clone().cast("text")]));
        bytes.infix("is distinct from", characters)
    };
    texts.into_iter().map(has_any).reduce(Scalar::or)
}

/// A result set: a cursor from which the caller fetches. `keeps`: see `Facts`; `wide`: see `is_wide`.
fn rows<'t>(
    writer: &mut BodyWriter<'t>,
    query: Translated,
    keeps: bool,
    wide: Option<Scalar>,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    if writer.purpose != Purpose::Procedure {
        let text = "Select statements included within a function or trigger cannot return data to a client.";
        return Err(Error::new(444, text, line));
    }
    writer.own_connection = true;
    if let Some(region) = &context.region {
        if region.results.get().is_none() {
            region.results.set(Some(line));
        }
    }
    writer.declare(CURSOR, "refcursor");
    // its errors and row count are known only after it has run, and so are values of the clock
    let runs = !context.handler.is_none() || writer.rows == Rows::Asked || !keeps;
    writer.declare(N, "bigint");
    let open = |scrolls, query: Statement| Step::Open { cursor: CURSOR.to_owned(), scrolls, query };
    let run = vec![
        open(true, query.sql.clone()),
        Step::Move("forward all", CURSOR.to_owned()),
        Step::CountRows(N.to_owned()),
        Step::Move("absolute 0", CURSOR.to_owned()),
    ];
    let mut steps = vec![Step::assign(CURSOR, Scalar::Null)];
    match runs {
        true => steps.extend(run),
        false => {
            // a caller's CATCH may handle its error
            let setting = call("current_setting", [Scalar::text(TRY_SETTING), Scalar::Boolean(true)]);
            let values = ["on", "told", "returned"].map(Scalar::text);
            let is_caught = setting.infix("in", Scalar::Row(values.into()));
            steps.push(Step::If(vec![(is_caught, run)], vec![open(false, query.sql)]));
        }
    }
    let silent = match (writer.sends_counts, writer.sets_nocount) {
        (false, _) => Some(Scalar::text("nocount")),
        (true, false) => Some(variable(SILENT)),
        (true, true) => None,
    };
    let wide = wide.map(|wide| Scalar::either(wide, Scalar::text(format!("{WIDE} ")), Scalar::text("")));
    let hint = wide.into_iter().chain(silent).reduce(Scalar::concatenated);
    steps.push(Step::Raise(Raise {
        level: "notice",
        code: Some(RESULT_SET),
        message: variable(CURSOR).cast("text"),
        detail: query.columns.as_deref().map(|columns| Scalar::Text(json(columns))),
        hint,
    }));
    let rows = if writer.rows == Rows::Asked { RowCount::Value(variable(N)) } else { RowCount::SENT };
    run::run(writer, context, line, Run::leaving(steps, rows));
    writer.has_sent = true;
    Ok(())
}

// --- tables ---

/// Drops a temporary table at the end of the procedure.
fn end_with(writer: &mut BodyWriter<'_>, table: &str) {
    if !writer.temporary.iter().any(|known| known == table) {
        writer.temporary.push(table.to_owned());
    }
}

pub(super) fn define<'t>(
    writer: &mut BodyWriter<'t>,
    statement: &Tree,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    writer.own_connection = true;
    if let Tree::CreateTable(create) = statement {
        if create.table.is_temporary() {
            end_with(writer, &create.table.name);
        }
        writer.make(table(&create.table)?, Some(bind::declared_table(create, &writer.scope)?));
    }
    if let Tree::Drop(objects) = statement {
        if objects.names.iter().all(tree::ObjectName::is_temporary) {
            // the rows of a result set may still have to be fetched from it
            let drop = drop_temporary(objects.names.iter().map(|table| &table.name), objects.if_exists);
            run::run_with_end(writer, context, line, Run::new([drop]));
            return Ok(());
        }
        if writer.has_sent {
            let why = "rows that were selected before are read when the procedure has ended";
            return Err(Error::refused("drop table", why, line));
        }
    }
    let sql = bind::defined(statement, &writer.scope)?;
    run::run_with_end(writer, context, line, Run::new([Step::Define(sql)]));
    Ok(())
}

/// A table variable is a temporary table, empty at its declaration.
pub(in crate::procedure) fn declare_table<'t>(
    writer: &mut BodyWriter<'t>,
    declared: &TableVariable,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let variable_name = &declared.variable.name;
    let first = *writer.tables.entry(variable_name.clone()).or_insert(declared);
    // a CATCH block may be written twice
    if writer.scope.variables.contains_key(variable_name) || !std::ptr::eq(first, declared) {
        return Err(Error::declared_twice(variable_name, line));
    }
    let name = table_variable(&declared.variable, &writer.scope.table_owner);
    if context.region.as_ref().is_some_and(|region| region.rolls_back.get()) {
        let why = "a rollback would remove its rows";
        return Err(Error::refused(&format!("declare {} table", declared.variable.name), why, line));
    }
    writer.own_connection = true;
    writer.scope.table_variables.insert(declared.variable.name.clone());
    end_with(writer, &name.name);
    let create =
        tree::CreateTable { table: name.clone(), elements: declared.elements.clone(), indexes: Vec::new() };
    writer.make(table(&name)?, Some(bind::declared_table(&create, &writer.scope)?));
    let sql = bind::defined(&Tree::CreateTable(Box::new(create)), &writer.scope)?;
    // in a loop the variable keeps its rows
    let made = format!("{MADE} {}", declared.variable.name);
    writer.declare_as(made.as_str(), "boolean", Scalar::Boolean(false));
    let is_missing = variable(&made).negated_if(true);
    let make = [Step::Define(sql), Step::assign(made, Scalar::Boolean(true))];
    run::run(writer, context, line, Run::keeping([Step::if_(is_missing, make)]));
    Ok(())
}

/// Drops temporary tables, each as soon as no cursor reads it.
pub(in crate::procedure) fn drop_temporary<'n>(
    names: impl Iterator<Item = &'n String>,
    may_be_missing: bool,
) -> Step {
    let names = names.map(|name| Scalar::text(stored(name))).collect();
    Step::Perform(call(
        "tsql.drop_temporary",
        [Scalar::Array(names, "text"), Scalar::Boolean(may_be_missing)],
    ))
}

/// Whether a change returns rows to the client, by OUTPUT.
fn gives_rows(statement: &Tree) -> bool {
    let output = match statement {
        Tree::Insert(insert) => &insert.output,
        Tree::Update(update) => &update.output,
        Tree::Delete(delete) => &delete.output,
        Tree::Merge(merge) => &merge.output,
        _ => return false,
    };
    output.as_ref().is_some_and(|output| output.into.is_none())
}

/// After a SELECT INTO of one table: its columns become as that table's are, if they are nothing but these.
fn inherit(statement: &Tree, made: &Relation) -> Result<Option<Step>, Error> {
    let Tree::Select(query) = statement else { return Ok(None) };
    let Some(Select { from, items, .. }) = query.body.first_select().filter(|_| query.with.is_empty()) else {
        return Ok(None);
    };
    let [TableSource::Table { name: source, .. }] = &from[..] else { return Ok(None) };
    let column = |item: &SelectItem| match item {
        SelectItem::Star { .. } => Some([String::from("*"), String::from("*")]),
        SelectItem::Value { value: Expression::Column(column), alias } => {
            let name = alias.as_ref().map_or(&column.column, |alias| &alias.text);
            Some([stored(name), stored(&column.column)])
        }
        _ => None,
    };
    let (names, columns): (Vec<_>, Vec<_>) = items.iter().filter_map(column).map(<(_, _)>::from).unzip();
    let tables = [made.sql.clone(), table(source)?].map(Scalar::Text);
    let arguments = tables.into_iter().chain([Scalar::texts(names), Scalar::texts(columns)]);
    let inherit = call("tsql.inherit_from", arguments.collect::<Vec<_>>());
    Ok(Some(Step::Define(Definition::Call(inherit))))
}

/// The temporary table created by SELECT INTO.
fn made_by(statement: &Tree) -> Option<&tree::ObjectName> {
    first_of(statement)?.into.as_ref().filter(|into| into.is_temporary())
}

/// The first select of a query statement.
fn first_of(statement: &Tree) -> Option<&Select> {
    match statement {
        Tree::Select(query) => query.body.first_select(),
        _ => None,
    }
}

/// Whether a statement may send rows to the client.
pub(super) fn may_send(statement: &Tree) -> bool {
    let assigns = |select: &Select| matches!(select.items[..], [SelectItem::Assign { .. }, ..]);
    match statement {
        Tree::Execute(_) => true,
        Tree::Select(_) => {
            !first_of(statement).is_some_and(|select| select.into.is_some() || assigns(select))
        }
        _ => false,
    }
}

/// A list of texts as JSON.
fn json(titles: &[Title]) -> String {
    let one = |Title { text, is_own, result_type, .. }: &Title| match result_type {
        None if *is_own => format!("[{}]", inside::json(text)),
        None => inside::json(text),
        Some(ResultType { of, not_null }) => format!(
            "{{\"name\": {}, \"type\": {}, \"not_null\": {not_null}}}",
            inside::json(text),
            inside::json(&of.declared())
        ),
    };
    format!("[{}]", titles.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_json() {
        let result_type = Some(ResultType { of: crate::facts::types::nvarchar(Some(4)), not_null: true });
        let titles = [
            Title::given("a\"b"),
            Title::given("\\\n"),
            Title::given(""),
            Title::own("ID"),
            Title { result_type, ..Title::given("x") },
        ];
        let typed = r#"{"name": "x", "type": "nvarchar(4)", "not_null": true}"#;
        assert_eq!(json(&titles), format!(r#"["a\"b", "\\\u000a", "", ["ID"], {typed}]"#));
    }
}
