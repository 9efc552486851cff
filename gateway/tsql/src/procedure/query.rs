//! Queries of a procedure: their rows are returned to its caller by a cursor, which a notice names.

use super::context::Context;
use super::inside;
use super::run::Run;
use super::variable::{BEGAN, CURSOR, MADE, N, ROW, SCOPE_IDENTITY, SILENT, TRY_SETTING};
use super::writer::{quoted, BodyWriter, Purpose, Rows, COUNTED, SENT};
use crate::error::Error;
use crate::facts::notices::{RESULT_SET, ROW_COUNT};
use crate::resolve::names::{array, literal, stored, table, table_variable};
use crate::translate::{self, ResultType, Title, Translated, Verb};
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
        let translated = translate::statement(statement, scope, &mut named)?;
        let (uses_time, keeps) = (named.uses_time, named.facts.keeps());
        let Some(mut query) = translated else { return self.define(statement, line, context) };
        if uses_time {
            // one variable for all functions of a statement
            self.declare(BEGAN, "timestamptz");
            self.line = line;
            self.add(format!("{} := clock_timestamp();", quoted(BEGAN)));
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
            let run = self.select_into(&query);
            self.run(context, line, run);
        } else if query.kind == Verb::Select {
            return self.rows(&query, keeps, line, context);
        } else if gives_rows(statement) {
            return Err(Error::refused("output", "not inside a procedure", line));
        } else {
            let mut lines = match &query.current {
                Some(current) => self.change_current(current, &query.sql.to_string(), line)?,
                None => vec![format!("{};", query.sql)],
            };
            let kind = kind_of(query.kind);
            lines.extend(self.send_count(kind));
            let identity = query.into.as_deref().and_then(|into| self.keep_identity(into));
            let is_counted = self.sends_counts || identity.is_some();
            lines.extend(identity.into_iter().flatten());
            let rows = match (is_counted, self.rows) {
                (false, _) => String::from(COUNTED),
                (true, Rows::Left) if !self.sends_counts => quoted(N),
                (true, Rows::Left) => String::from(SENT),
                (true, _) => quoted(N),
            };
            // SQL Server's "(0 row(s) affected)"
            let caught = self.sends_counts.then(|| self.count_of("0", kind));
            self.run(context, line, Run { caught, ..Run::leaving(lines, rows) });
        }
        Ok(())
    }

    fn send_count(&mut self, kind: &str) -> Vec<String> {
        if !self.sends_counts {
            return Vec::new();
        }
        self.declare(N, "bigint");
        let n = quoted(N);
        vec![format!("get diagnostics {n} = row_count;"), self.count_of(&n, kind)]
    }

    /// After an insert, if scope_identity() is used: the number assigned to its rows.
    fn keep_identity(&mut self, into: &str) -> Option<Vec<String>> {
        if !self.is_declared(SCOPE_IDENTITY) {
            return None;
        }
        let (identity, n) = (quoted(SCOPE_IDENTITY), quoted(N));
        let mut lines = Vec::new();
        if !self.sends_counts {
            self.declare(N, "bigint");
            lines.push(format!("get diagnostics {n} = row_count;"));
        }
        lines.push(format!("if {n} > 0 then"));
        lines.push(format!("  {identity} := coalesce(tsql.identity_of({}), {identity});", literal(into)));
        lines.push(String::from("end if;"));
        Some(lines)
    }

    /// The notice of a row count. `kind`: of the statement.
    fn count_of(&self, rows: &str, kind: &str) -> String {
        let said = match (&self.purpose, kind) {
            (Purpose::Trigger { .. }, kind) => format!("trigger {kind}").trim_end().to_owned(),
            (_, kind) => kind.to_owned(),
        };
        let detail = self.silently(literal(&said));
        format!("raise notice using errcode = '{ROW_COUNT}', message = {rows}::text, detail = {detail};")
    }

    /// SELECT @a = …: the values of the last row, or the variables' previous ones if there is none.
    fn select_into(&mut self, query: &Translated) -> Run {
        self.declare(ROW, "record");
        self.declare(N, "bigint");
        let (row, n) = (quoted(ROW), quoted(N));
        let columns: Vec<String> = (1..=query.assigns.len()).map(|place| format!("c{place}")).collect();
        let names = columns.join(", ");
        let mut lines = vec![
            format!("{n} := 0;"),
            format!("for {row} in select * from ({}) as \"@@r\" ({names}) loop", query.sql),
        ];
        for (name, column) in query.assigns.iter().zip(&columns) {
            lines.push(format!("  {} := {row}.{column};", quoted(name)));
        }
        lines.push(format!("  {n} := {n} + 1;"));
        lines.push(String::from("end loop;"));
        if !self.sends_counts {
            return Run::leaving(lines, n);
        }
        lines.push(self.count_of(&n, "select"));
        let rows = if self.rows == Rows::Left { String::from(SENT) } else { n };
        Run::leaving(lines, rows)
    }

    /// A result set: a cursor from which the caller fetches. `keeps`: see `Facts`.
    fn rows(
        &mut self,
        query: &Translated,
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
        let cursor = quoted(CURSOR);
        self.declare(CURSOR, "refcursor");
        // its errors and row count are known only after it has run, and so are values of the clock
        let runs = !context.handler.is_none() || self.rows == Rows::Asked || !keeps;
        self.declare(N, "bigint");
        let mut lines = vec![format!("{cursor} := null;")];
        let run = [
            format!("open {cursor} scroll for {};", query.sql),
            format!("move forward all in {cursor};"),
            format!("get diagnostics {} = row_count;", quoted(N)),
            format!("move absolute 0 in {cursor};"),
        ];
        if runs {
            lines.extend(run);
        } else {
            // a caller's CATCH may handle its error
            lines.push(format!(
                "if current_setting('{TRY_SETTING}', true) in ('on', 'told', 'returned') then"
            ));
            lines.extend(run.map(|line| format!("  {line}")));
            lines.push(String::from("else"));
            lines.push(format!("  open {cursor} no scroll for {};", query.sql));
            lines.push(String::from("end if;"));
        }
        let mut notice = format!("raise notice using errcode = '{RESULT_SET}', message = {cursor}::text");
        if let Some(columns) = &query.columns {
            notice.push_str(&format!(", detail = {}", literal(&json(columns))));
        }
        match (self.sends_counts, self.sets_nocount) {
            (false, _) => notice.push_str(", hint = 'nocount'"),
            (true, false) => notice.push_str(&format!(", hint = {}", quoted(SILENT))),
            (true, true) => {}
        }
        lines.push(format!("{notice};"));
        let rows = if self.rows == Rows::Asked { quoted(N) } else { String::from(SENT) };
        self.run(context, line, Run::leaving(lines, rows));
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
            self.make(table(&create.table)?, Some(translate::declared_table(create, &self.scope)?));
        }
        if let Tree::Drop(objects) = statement {
            if objects.names.iter().all(tree::ObjectName::is_temporary) {
                // the rows of a result set may still have to be fetched from it
                let names = objects.names.iter().map(|table| literal(&stored(&table.name)));
                let names = array(names, "text");
                let drop = format!("perform tsql.drop_temporary({names}, {});", objects.if_exists);
                self.run_with_end(context, line, Run::new(vec![drop]));
                return Ok(());
            }
            if self.has_sent {
                let why = "rows that were selected before are read when the procedure has ended";
                return Err(Error::refused("drop table", why, line));
            }
        }
        let sql = translate::defined(statement, &self.scope)?;
        self.run_with_end(context, line, Run::new(vec![format!("{sql};")]));
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
        self.make(table(&name)?, Some(translate::declared_table(&create, &self.scope)?));
        let sql = translate::defined(&Tree::CreateTable(Box::new(create)), &self.scope)?;
        // in a loop the variable keeps its rows
        let made = format!("{MADE} {}", declared.variable.name);
        self.declare(made.as_str(), "boolean := false");
        let made = quoted(&made);
        let lines = vec![
            format!("if not {made} then"),
            format!("  {sql};"),
            format!("  {made} := true;"),
            String::from("end if;"),
        ];
        self.run(context, line, Run::keeping(lines));
        Ok(())
    }
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
