//! Queries of a procedure: their rows are returned to its caller by a cursor, which a notice names.

use super::context::Context;
use super::cursor::rows_of;
use super::inside;
use super::run::Run;
use super::variable::{field, variable, BEGAN, CURSOR, MADE, N, ROW, SCOPE_IDENTITY, SILENT, TRY_SETTING};
use super::writer::{BodyWriter, Purpose, RowCount, Rows};
use crate::bind::{self, ResultType, Title, Translated, Verb};
use crate::error::Error;
use crate::facts::notices::{RESULT_SET, ROW_COUNT};
use crate::plpgsql::{Body, Raise, Step};
use crate::postgres::{call, Scalar, Statement};
use crate::resolve::names::{stored, table, table_variable};
use crate::tree::{self, Select, SelectItem, StatementKind as Tree, TableVariable};

/// The kind of a change in the notice of its row count; "" for an update.
fn kind_of(change: Verb) -> &'static str {
    match change {
        Verb::Insert => "insert",
        Verb::Delete => "delete",
        Verb::Merge => "merge",
        Verb::Update | Verb::Select | Verb::SelectInto => "",
    }
}

impl<'t> BodyWriter<'t> {
    pub(super) fn query(&mut self, statement: &Tree, line: u32, context: &Context<'t>) -> Result<(), Error> {
        let (scope, mut named) = self.named();
        named.has_time = true;
        let translated = bind::statement(statement, scope, &mut named)?;
        let (uses_time, keeps) = (named.uses_time, named.facts.keeps());
        let Some(mut query) = translated else { return self.define(statement, line, context) };
        if uses_time {
            // one variable for all functions of a statement
            self.declare(BEGAN, "timestamptz");
            self.at(line);
            self.add(Step::assign(BEGAN, call("clock_timestamp", [])));
        }
        let makes_table = query.kind == Verb::SelectInto;
        if makes_table {
            self.own_connection = true;
        }
        if let Some(made) = made_by(statement) {
            self.end_with(&made.name);
            self.make(table(made)?, query.made.take());
        }
        if !query.assigns.is_empty() {
            if query.kind != Verb::Select {
                return Err(Error::refused("update … set @variable", "not inside a procedure", line));
            }
            let run = self.select_into(query);
            self.run(context, line, run);
        } else if query.kind == Verb::Select {
            return self.rows(query, keeps, line, context);
        } else if gives_rows(statement) {
            return Err(Error::refused("output", "not inside a procedure", line));
        } else {
            let mut steps = match &query.current {
                Some(current) => self.change_current(current, query.sql, line)?,
                None => vec![Step::Sql(query.sql)],
            };
            let kind = kind_of(query.kind);
            steps.extend(self.send_count(kind));
            let identity = query.into.as_deref().and_then(|into| self.keep_identity(into));
            let is_counted = self.sends_counts || identity.is_some();
            steps.extend(identity.into_iter().flatten());
            let rows = match (is_counted, self.rows) {
                (false, _) => RowCount::Counted,
                (true, Rows::Left) if self.sends_counts => RowCount::SENT,
                (true, _) => RowCount::Value(variable(N)),
            };
            // SQL Server's "(0 row(s) affected)"
            let caught = self.sends_counts.then(|| self.count_of(Scalar::number(0), kind));
            self.run(context, line, Run { caught, ..Run::leaving(steps, rows) });
        }
        Ok(())
    }

    fn send_count(&mut self, kind: &str) -> Body {
        if !self.sends_counts {
            return Body::new();
        }
        self.declare(N, "bigint");
        vec![Step::CountRows(N.to_owned()), self.count_of(variable(N), kind)]
    }

    /// After an insert, if scope_identity() is used: the number assigned to its rows.
    fn keep_identity(&mut self, into: &str) -> Option<Body> {
        if !self.is_declared(SCOPE_IDENTITY) {
            return None;
        }
        let mut steps = Vec::new();
        if !self.sends_counts {
            self.declare(N, "bigint");
            steps.push(Step::CountRows(N.to_owned()));
        }
        let identity = [call("tsql.identity_of", [Scalar::text(into)]), variable(SCOPE_IDENTITY)];
        let keep = Step::assign(SCOPE_IDENTITY, call("coalesce", identity));
        steps.push(Step::if_(variable(N).infix(">", Scalar::number(0)), [keep]));
        Some(steps)
    }

    /// The notice of a row count. `kind`: of the statement.
    fn count_of(&self, rows: Scalar, kind: &str) -> Step {
        let detail = match self.purpose {
            Purpose::Trigger { .. } => format!("trigger {kind}").trim_end().to_owned(),
            _ => kind.to_owned(),
        };
        let detail = self.silently(Scalar::Text(detail));
        Step::notice(Some(ROW_COUNT), rows.cast("text"), Some(detail))
    }

    /// SELECT @a = …: the values of the last row, or the variables' previous ones if there is none.
    fn select_into(&mut self, query: Translated) -> Run {
        self.declare(ROW, "record");
        self.declare(N, "bigint");
        let columns: Vec<String> = (1..=query.assigns.len()).map(|number| format!("c{number}")).collect();
        let assigned = query.assigns.iter().zip(&columns);
        let mut body: Body =
            assigned.map(|(name, column)| Step::assign(name.as_str(), field(ROW, column.as_str()))).collect();
        body.push(Step::assign(N, variable(N).infix("+", Scalar::number(1))));
        let rows = query.sql.into_query().map(|query| rows_of(query, columns));
        let mut steps = vec![Step::assign(N, Scalar::number(0))];
        steps.extend(rows.map(|rows| Step::For(ROW.to_owned(), rows, body)));
        if !self.sends_counts {
            return Run::leaving(steps, RowCount::Value(variable(N)));
        }
        steps.push(self.count_of(variable(N), "select"));
        Run::leaving(
            steps,
            if self.rows == Rows::Left { RowCount::SENT } else { RowCount::Value(variable(N)) },
        )
    }

    /// A result set: a cursor from which the caller fetches. `keeps`: see `Facts`.
    fn rows(
        &mut self,
        query: Translated,
        keeps: bool,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        if self.purpose != Purpose::Procedure {
            let text =
                "Select statements included within a function or trigger cannot return data to a client.";
            return Err(Error::new(444, text, line));
        }
        self.own_connection = true;
        if let Some(region) = &context.region {
            if region.results.get().is_none() {
                region.results.set(Some(line));
            }
        }
        self.declare(CURSOR, "refcursor");
        // its errors and row count are known only after it has run, and so are values of the clock
        let runs = !context.handler.is_none() || self.rows == Rows::Asked || !keeps;
        self.declare(N, "bigint");
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
        let hint = match (self.sends_counts, self.sets_nocount) {
            (false, _) => Some(Scalar::text("nocount")),
            (true, false) => Some(variable(SILENT)),
            (true, true) => None,
        };
        steps.push(Step::Raise(Raise {
            level: "notice",
            code: Some(RESULT_SET),
            message: variable(CURSOR).cast("text"),
            detail: query.columns.as_deref().map(|columns| Scalar::Text(json(columns))),
            hint,
        }));
        let rows = if self.rows == Rows::Asked { RowCount::Value(variable(N)) } else { RowCount::SENT };
        self.run(context, line, Run::leaving(steps, rows));
        self.has_sent = true;
        Ok(())
    }

    // --- tables ---

    /// Drops a temporary table at the end of the procedure.
    fn end_with(&mut self, table: &str) {
        if !self.temporary.iter().any(|known| known == table) {
            self.temporary.push(table.to_owned());
        }
    }

    pub(super) fn define(&mut self, statement: &Tree, line: u32, context: &Context<'t>) -> Result<(), Error> {
        self.own_connection = true;
        if let Tree::CreateTable(create) = statement {
            if create.table.is_temporary() {
                self.end_with(&create.table.name);
            }
            self.make(table(&create.table)?, Some(bind::declared_table(create, &self.scope)?));
        }
        if let Tree::Drop(objects) = statement {
            if objects.names.iter().all(tree::ObjectName::is_temporary) {
                // the rows of a result set may still have to be fetched from it
                let drop = drop_temporary(objects.names.iter().map(|table| &table.name), objects.if_exists);
                self.run_with_end(context, line, Run::new([drop]));
                return Ok(());
            }
            if self.has_sent {
                let why = "rows that were selected before are read when the procedure has ended";
                return Err(Error::refused("drop table", why, line));
            }
        }
        let sql = bind::defined(statement, &self.scope)?;
        self.run_with_end(context, line, Run::new([Step::Define(sql)]));
        Ok(())
    }

    /// A table variable is a temporary table, empty at its declaration.
    pub(super) fn declare_table(
        &mut self,
        declared: &TableVariable,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let name = table_variable(&declared.variable, &self.scope.table_owner);
        if context.region.as_ref().is_some_and(|region| region.rolls_back.get()) {
            let why = "a rollback would remove its rows";
            return Err(Error::refused(&format!("declare {} table", declared.variable.name), why, line));
        }
        self.own_connection = true;
        self.scope.table_variables.insert(declared.variable.name.clone());
        self.end_with(&name.name);
        let create = tree::CreateTable {
            table: name.clone(),
            elements: declared.elements.clone(),
            indexes: Vec::new(),
        };
        self.make(table(&name)?, Some(bind::declared_table(&create, &self.scope)?));
        let sql = bind::defined(&Tree::CreateTable(Box::new(create)), &self.scope)?;
        // in a loop the variable keeps its rows
        let made = format!("{MADE} {}", declared.variable.name);
        self.declare_as(made.as_str(), "boolean", Scalar::Boolean(false));
        let is_missing = variable(&made).negated_if(true);
        let make = [Step::Define(sql), Step::assign(made, Scalar::Boolean(true))];
        self.run(context, line, Run::keeping([Step::if_(is_missing, make)]));
        Ok(())
    }
}

/// Drops temporary tables, each as soon as no cursor reads it.
pub(super) fn drop_temporary<'n>(names: impl Iterator<Item = &'n String>, may_be_missing: bool) -> Step {
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
