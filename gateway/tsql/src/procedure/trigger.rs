//! Triggers on a site's own tables, after a statement that changes rows.
//!
//! `inserted` and `deleted` are PostgreSQL's transition tables, which only triggers of a single event can have: a
//! trigger of several events becomes several, and an event without such rows has an empty table.

use super::writer::Purpose;
use super::{body, header, notes, read_names, Created};
use crate::error::Error;
use crate::long_names::demand_short;
use crate::plpgsql::{Routine, Step};
use crate::postgres::{call, Scalar};
use crate::program::{Define, Settings};
use crate::quoting::in_quotes;
use crate::resolve::names::{quoted, schema_of, table};
use crate::resolve::{Fired, Scope};
use crate::tree::{CreateTrigger, TriggerEvent, TriggerTime};

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
    let mentioned = read_names(text, &header.name)?;
    let source = text.trim();
    let target = match schema_of(&create.table) {
        "" => format!("{}.{}", quoted(&header.schema), table(&create.table)?),
        _ => table(&create.table)?,
    };
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
            notes: notes(&header, &writer, source, settings),
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

fn word(event: TriggerEvent) -> &'static str {
    match event {
        TriggerEvent::Insert => "insert",
        TriggerEvent::Update => "update",
        TriggerEvent::Delete => "delete",
    }
}
