//! Triggers on a site's own tables, after a statement that changes rows.
//!
//! `inserted` and `deleted` are PostgreSQL's transition tables, which only triggers of a single event can have: a
//! trigger of several events becomes several, and an event without such rows has an empty table.

use super::names::read_names;
use super::statements::option::xact_abort;
use super::writer::Purpose;
use super::{body, header, notes, Created};
use crate::error::Error;
use crate::long_names::demand_short;
use crate::plpgsql::{Routine, Step};
use crate::postgres::{call, Scalar};
use crate::program::{Define, Settings};
use crate::quoting::in_quotes;
use crate::resolve::names::{quoted, schema_of, table};
use crate::resolve::{Fired, Scope};
use crate::tree::{CreateTrigger, Statement, StatementKind as Tree, TriggerEvent, TriggerTime};

/// The statements that create a trigger. `text`: its batch.
pub fn create(
    create: &CreateTrigger,
    text: &str,
    line: u32,
    scope: &Scope,
    settings: &Settings,
) -> Result<Created, Error> {
    if create.time == TriggerTime::InsteadOf {
        return Err(Error::refused("instead of", "triggers run after the change", line));
    }
    if create.table.is_temporary() {
        return Err(Error::refused(&create.table.name, "a temporary table has no triggers", create.table.at));
    }
    demand_short(&create.name.name, "trigger", create.name.at)?;
    // a trigger is in the schema of its table
    let mut name = create.name.clone();
    if schema_of(&name).is_empty() {
        name.database.clone_from(&create.table.database);
        name.owner.clone_from(&create.table.owner);
    }
    let header = header(&name, &[], line, scope)?;
    after_rollback(&create.body, false)?;
    let mentioned = read_names(text, &header.name)?;
    let source = text.trim();
    let target = match schema_of(&create.table) {
        "" => format!("{}.{}", quoted(&header.schema), table(&create.table)?),
        _ => table(&create.table)?,
    };
    // its errors end their statements only (tsql.raised_in_trigger)
    let goes_on = (xact_abort(&create.body) == Some(false)).then(|| String::from("xact_abort off"));
    let mut events: Vec<TriggerEvent> = Vec::new();
    let mut definitions = Vec::new();
    let mut asked = Vec::new();
    for event in &create.events {
        if events.contains(event) {
            let text = format!("Cannot specify {} twice in a trigger.", word(*event));
            return Err(Error::new(1034, text, line));
        }
        events.push(*event);
        let changed = if *event == TriggerEvent::Delete { "deleted" } else { "inserted" };
        let mut writer = header.writer(Purpose::Trigger { changed }, scope, Some(&target));
        for (rows, missing) in [("inserted", TriggerEvent::Delete), ("deleted", TriggerEvent::Insert)] {
            if *event == missing {
                writer.scope.empty.insert(String::from(rows), target.clone());
            }
        }
        writer.scope.trigger = Some(match event {
            TriggerEvent::Insert => Fired::Insert,
            TriggerEvent::Delete => Fired::Delete,
            TriggerEvent::Update => Fired::Update(format!("{}.{}", header.schema, header.name)),
        });
        writer.write(&create.body, &mentioned)?;
        asked.append(&mut writer.asked());
        let function = match definitions.len() {
            0 => header.name.clone(),
            _ => format!("{} {}", header.name, word(*event)),
        };
        definitions.push(Routine {
            // PostgreSQL cuts the name, as in tsql.create_trigger
            name: format!("{}.{}", quoted(&header.schema), in_quotes(&function)),
            returns: Some(String::from("trigger")),
            notes: notes(&header, &writer, source, settings).into_iter().chain(goes_on.clone()).collect(),
            ..body(&header, &writer, Step::Return(Some(Scalar::Null)))
        });
    }
    let definitions = definitions.iter().map(|definition| Scalar::Text(definition.to_string()));
    let parts = [
        Scalar::text(create.mode.action()),
        Scalar::text(header.schema.as_str()),
        Scalar::text(target),
        Scalar::text(header.name.as_str()),
        Scalar::Array(events.iter().map(|event| Scalar::text(word(*event))).collect(), "text"),
        Scalar::Array(definitions.collect(), "text"),
        Scalar::text(source),
    ];
    let statements = vec![format!("select {}", call("tsql.create_trigger", parts))];
    Ok(Created { define: Define { statements, is_temporary: false, notice: None }, asked })
}

/// Refuses what would have to run in a transaction of its own, after ROLLBACK has undone that of the statement which fired the
/// trigger. `ended`: it has before these statements. Returns whether it may have after them.
fn after_rollback(statements: &[Statement], mut ended: bool) -> Result<bool, Error> {
    for statement in statements {
        ended = match &statement.kind {
            Tree::Rollback(_) => true,
            Tree::Return(_) | Tree::Throw(_) | Tree::Goto(_) => return Ok(false),
            Tree::If { then, otherwise, .. } => {
                let otherwise = otherwise.as_deref().map_or(&[][..], Statement::body);
                after_rollback(then.body(), ended)? | after_rollback(otherwise, ended)?
            }
            Tree::While { body, .. } => {
                let once = ended | after_rollback(body.body(), ended)?;
                once | after_rollback(body.body(), once)?
            }
            Tree::Block(body) => after_rollback(body, ended)?,
            Tree::TryCatch { body, catch } => after_rollback(body, ended)? | after_rollback(catch, ended)?,
            kind if ended && works(kind) => {
                let why = "PostgreSQL undoes all of a trigger's work with the statement that fired it: write it before, by another \
                           connection, or return after ROLLBACK";
                return Err(Error::refused("a statement after rollback in a trigger", why, statement.at));
            }
            _ => ended,
        };
    }
    Ok(ended)
}

/// Whether a statement reads or changes tables, or runs what may.
fn works(kind: &Tree) -> bool {
    match kind {
        Tree::Select(query) => query.body.first_select().is_none_or(|select| !select.from.is_empty()),
        Tree::Insert(_) | Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) => true,
        Tree::Execute(_) | Tree::ExecuteText(_) | Tree::BeginTransaction(_) => true,
        _ => false,
    }
}

fn word(event: TriggerEvent) -> &'static str {
    match event {
        TriggerEvent::Insert => "insert",
        TriggerEvent::Update => "update",
        TriggerEvent::Delete => "delete",
    }
}
