//! Resolves the name of a function or procedure, and calls it.

use super::name::ProcedureName;
use super::refusals::{
    is_damage, node_that_has, not_known, refusal, talks, Refusal, MOVED, OTHER_COLUMNS, OTHER_TABLE,
};
use super::returned::Returned;
use crate::backend::{rows_are_lost, Backend, Completed, Errors, Meaning, Rows, Source, Unfinished};
use crate::callers::Caller;
use crate::catalogue::{
    self, bind, BindError, Catalogue, Function, Plan, Reason, Returns, SearchPath, Unresolved, TEMPORARY,
};
use crate::client::{Arithabort, Calendar, Client, Locking};
use crate::convert::Zone;
use crate::gateway::Gateway;
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::postgres::commit::{not_written, Claim, Outcome};
use crate::postgres::{Notice, PgError};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tracing::warn;
use tsql::facts::notices::{HANDED_OVER, RAISED};
use tsql::quoting::literal;

/// How often the catalogue is read again for one call: the procedure may change repeatedly.
const MOST_RELOADS: usize = 3;

/// The procedures that a session calls.
pub struct Procedures {
    pub(super) gateway: Arc<Gateway>,
    pub backend: Backend,
    /// The oid of the session's role.
    pub(super) role: u32,
    pub(super) caller: Arc<Caller>,
    /// The schemas of the role's own search path.
    path: Arc<[String]>,
    /// The claim of the call that waits for group commit.
    pub(super) claim: Claim,
    /// The plans of known calls.
    pub(super) plans: Vec<Plan>,
    /// The oid of the session's login on each node that it has called, by the node's id.
    pub(super) logins: HashMap<u64, u32>,
    /// Its connections to nodes it has read from.
    pub(super) elsewhere: Vec<Backend>,
}

impl Procedures {
    pub fn new(
        gateway: Arc<Gateway>,
        backend: Backend,
        role: u32,
        path: Arc<[String]>,
        caller: Caller,
    ) -> Procedures {
        let (caller, claim) = (Arc::new(caller), Claim::default());
        let (plans, logins, elsewhere) = (Vec::new(), HashMap::new(), Vec::new());
        Procedures { gateway, backend, role, caller, path, claim, plans, logins, elsewhere }
    }

    /// Calls `function`, to which `name` with its qualifiers refers. `in_try`: errors go to a CATCH.
    pub async fn call(
        &mut self,
        client: &mut Client,
        name: &str,
        function: Arc<Function>,
        params: &[Param<'_>],
        in_try: bool,
    ) -> Result<Returned, Interrupt> {
        let start = Instant::now();
        let called = if function.is_system() {
            self.call_system(client, ProcedureName::read(name).qualifier, &function, params, in_try).await
        } else {
            self.call_function(client, function.clone(), params, in_try).await
        };
        count(&function, start, &self.caller, &called);
        called
    }

    /// Counts a call that the interpreter has run.
    pub fn answered<T>(&self, function: &Function, start: Instant, called: &Result<T, Interrupt>) {
        count(function, start, &self.caller, called);
    }

    /// The function of a call.
    pub async fn called(
        &mut self,
        client: &Client,
        name: &str,
        params: &[Param<'_>],
    ) -> Result<Arc<Function>, Interrupt> {
        if is_temporary(&ProcedureName::read(name).bare) {
            self.backend.read_temporary().await.map_err(|error| Failure::of_call(&error))?;
        }
        Ok(self.resolve(client, name, params).await.map_err(Failure::of_statement)?)
    }

    /// The function of a name. An unknown name may be new: the catalogue is read again.
    pub async fn resolve(
        &self,
        client: &Client,
        name: &str,
        params: &[Param<'_>],
    ) -> Result<Arc<Function>, ServerMessage> {
        let name = ProcedureName::read(name);
        let bare = &*name.bare;
        let mut found = self.find_named(client, &name, params);
        let may_be_new = matches!(found, Err(Unresolved::Missing)) && !is_temporary(bare);
        if may_be_new {
            if !self.gateway.reload_catalogue(Reason::Unknown).await {
                return Err(not_known(&format!("it has the procedure '{bare}'")).to_message());
            }
            found = self.find_named(client, &name, params);
        }
        found.map_err(|unresolved| match unresolved {
            Unresolved::Missing => {
                ServerMessage::error(2812, 16, format!("Could not find stored procedure '{bare}'."))
            }
            Unresolved::Ambiguous(names) => ServerMessage::error(
                2812,
                16,
                format!("'{bare}' is not one procedure but several: {}.", names.join(", ")),
            ),
        })
    }

    pub(super) fn find_named(
        &self,
        client: &Client,
        name: &ProcedureName<'_>,
        params: &[Param<'_>],
    ) -> Result<Arc<Function>, Unresolved> {
        let schema = name.schema(&self.catalogue().databases())?;
        self.find(client, schema, &name.bare, params)
    }

    pub(super) fn find(
        &self,
        client: &Client,
        schema: Option<&str>,
        name: &str,
        params: &[Param<'_>],
    ) -> Result<Arc<Function>, Unresolved> {
        let dialect = client.dialect();
        let path = SearchPath { database: &self.backend.database, schemas: &self.path };
        let fits = |function: &Function| catalogue::fits(function, params, &dialect);
        if is_temporary(name) {
            let own = self.backend.temporary_catalogue().ok_or(Unresolved::Missing)?;
            return own.find(Some(TEMPORARY), name, path, &dialect, fits);
        }
        self.catalogue().find(schema, name, path, &dialect, fits)
    }

    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.backend.catalogue()
    }

    /// Forgets plans, after a change of procedures.
    pub fn forget_plans(&mut self) {
        self.plans.clear();
    }

    /// Calls `function`, or the function that has replaced it since the catalogue was read.
    pub(super) async fn call_function(
        &mut self,
        client: &mut Client,
        function: Arc<Function>,
        params: &[Param<'_>],
        in_try: bool,
    ) -> Result<Returned, Interrupt> {
        let mut function = function;
        let mut left = MOST_RELOADS;
        let mut is_alone = false;
        loop {
            let refusal = match self.call_once(client, &function, params, in_try, is_alone).await {
                Ok(returned) => return Ok(returned),
                Err(Refusal::Outdated(error)) if !is_alone && talks(&error) => {
                    // on the session's own connection its messages are sent as they arrive
                    is_alone = true;
                    continue;
                }
                Err(Refusal::Interrupt(interrupt)) => return Err(interrupt),
                Err(Refusal::Outdated(error)) if is_damage(&error) => {
                    if left > 0 && self.repaired(&function, &error).await {
                        left -= 1;
                        continue;
                    }
                    return Err(self.give_up(client, Refusal::Outdated(error), &function));
                }
                Err(refusal) => refusal,
            };
            let reason = match &refusal {
                Refusal::Outdated(error) if error.sqlstate() == Some(MOVED) => Reason::Moved,
                Refusal::Outdated(_) if function.joins_group || function.node.is_some() => Reason::Outdated,
                Refusal::Outdated(_) => Reason::Refused,
                _ => Reason::Unknown,
            };
            if reason == Reason::Moved {
                // the catalogue may have been read again since the call was received
                let again = self.find_again(client, &function, params).await;
                if let Some(again) = again.filter(|again| left > 0 && again.node != function.node) {
                    left -= 1;
                    function = again;
                    continue;
                }
            }
            if left == 0 {
                return Err(self.give_up(client, refusal, &function));
            }
            if !self.gateway.reload_catalogue(reason).await {
                return Err(match refusal {
                    Refusal::Unfit(_) => {
                        let what = format!("{} has these parameters", function.name);
                        Failure::of_call(&not_known(&what)).into()
                    }
                    _ => self.give_up(client, refusal, &function),
                });
            }
            left -= 1;
            if matches!(reason, Reason::Outdated | Reason::Refused) {
                if let Err(error) = self.backend.forget_plans().await {
                    return Err(Failure::of_call(&error).into());
                }
            }
            let again = self.find_again(client, &function, params).await;
            let for_value = |again: Arc<Function>| match function.returns {
                Returns::Value => again.for_value(),
                _ => again,
            };
            match again.map(for_value) {
                Some(again) if !Arc::ptr_eq(&again, &function) => {
                    // its table has really changed, and may change again
                    if again.parameters != function.parameters {
                        left = MOST_RELOADS;
                    }
                    function = again;
                }
                _ => return Err(self.give_up(client, refusal, &function)),
            }
        }
    }

    /// Repairs the damaged page that a call has found, and returns whether the call can be repeated. Only ringlog's
    /// tables whose rows also exist elsewhere are repaired, and not in a transaction, in which no further statement can
    /// run.
    async fn repaired(&mut self, function: &Function, damage: &PgError) -> bool {
        if function.schema != catalogue::OWN || self.backend.in_transaction() {
            return false;
        }
        let backend = match &function.node {
            None => &mut self.backend,
            Some(name) => {
                let Ok(node) = self.node_named(name) else { return false };
                match self.opened_on(&node, "").await {
                    Ok(backend) => backend,
                    Err(_) => return false,
                }
            }
        };
        let asked = format!("select ringlog.mend_ring({})", literal(&damage.to_string()));
        match backend.ask(&asked).await {
            Ok(rows) => rows.into_iter().flatten().flatten().any(|answer| answer == "t"),
            Err(error) => {
                warn!("{}: {damage}, and what is damaged was not mended: {error}", function.name);
                false
            }
        }
    }

    /// The function that has replaced `function`.
    pub async fn find_again(
        &self,
        client: &Client,
        function: &Function,
        params: &[Param<'_>],
    ) -> Option<Arc<Function>> {
        let find = || self.find(client, Some(&function.schema), &function.name, params);
        match find() {
            Err(Unresolved::Missing) if self.gateway.reload_catalogue(Reason::Unknown).await => find().ok(),
            found => found.ok(),
        }
    }

    fn give_up(&self, client: &mut Client, refusal: Refusal, function: &Function) -> Interrupt {
        match refusal {
            Refusal::Unfit(message) => Failure::of_statement(message).into(),
            Refusal::Outdated(error) if function.node.is_some() => {
                // the node and its entry in the catalogue here are changed one after the other
                let text = format!("The node and this server differ, nothing was written: {error}");
                Failure::of_call(&not_written(text)).into()
            }
            Refusal::Outdated(error)
                if function.joins_group
                    && error.sqlstate().is_some_and(|state| OTHER_TABLE.contains(&state)) =>
            {
                let text = format!(
                    "{}: its table was changed, and ringlog init has not been run since. Nothing was written: {error}",
                    function.name
                );
                Failure::of_call(&not_written(text)).into()
            }
            Refusal::Outdated(error) => {
                put_notices(client, error.before(), function);
                Failure::of_call(&error).into()
            }
            Refusal::Interrupt(interrupt) => interrupt,
        }
    }

    async fn call_once(
        &mut self,
        client: &mut Client,
        function: &Function,
        params: &[Param<'_>],
        in_try: bool,
        is_alone: bool,
    ) -> Result<Returned, Refusal> {
        // only on the session's own connection can a setting decide how errors are handled
        let shares = !in_try && !is_alone && self.shares(client, function);
        let zone = match shares || function.node.is_some() {
            true => self.gateway.zone(),
            false => self.backend.zone().await.map_err(|error| Failure::of_call(&error))?,
        };
        let bound = match bind(function, params, &client.dialect(), &zone) {
            Ok(bound) => bound,
            Err(error @ (BindError::TooMany | BindError::NotAParameter(_))) => {
                return Err(Refusal::Unfit(error.to_message(function)))
            }
            Err(error) => return Err(Failure::of_statement(error.to_message(function)).into()),
        };
        let statement = function.statement(&bound.given);
        let node = self.node_of(function, &bound.values).map_err(|error| Failure::of_call(&error))?;
        // ringlog's own procedures do not depend on a CATCH
        let shares = shares || node.is_some() && self.shares(client, function);
        // which reading of a repeated time applies is a setting too
        let repeated = if function.only_reads { String::new() } else { repeated_times(&bound.repeated) };
        if shares && repeated.is_empty() {
            let called = self.call_shared(client, function, statement, bound.values.into()).await;
            let outcome = called.map_err(|unfinished| match unfinished {
                Unfinished::Failed(error) if node.is_none() && talks(&error) => Refusal::Outdated(error),
                unfinished => refusal(unfinished, function),
            })?;
            return Ok(completed(function, &bound.outputs, &outcome, &zone)?);
        }
        if let Some(node) = &node {
            return self.call_elsewhere(client, node, function, &statement, &bound.values, &zone).await;
        }
        if !function.only_reads {
            if client.settings().row_limit > 0 {
                let text = "Under SET ROWCOUNT only procedures that read can be called.";
                return Err(Failure::of_statement(ServerMessage::error(195, 15, text)).into());
            }
            self.backend.pin();
        }
        let source = Source::Call {
            statement: &statement,
            values: &bound.values,
            only_reads: function.only_reads,
            repeated: &repeated,
            errors: match in_try {
                true => Errors::Caught,
                false if client.settings().abort_on_error => Errors::Abort,
                false => Errors::Sent,
            },
        };
        let rows = if function.returns == Returns::Rows { Rows::ToClient(None) } else { Rows::Kept };
        let reply_so_far = client.reply.tokens.len();
        let ran = match self.backend.run(client, source, rows).await {
            Err(Unfinished::Failed(error)) if in_try && error.takes_rows() => {
                let failure = Failure::of_call(&rows_are_lost());
                return Err(Failure { ends: Ends::Batch, stage: Stage::Refused, ..failure }.into());
            }
            ran => ran,
        };
        match ran {
            Ok(Completed { outcome, .. }) => Ok(completed(function, &bound.outputs, &outcome, &zone)?),
            Err(Unfinished::Refused(error)) if function.only_reads && node_that_has(&error).is_some() => {
                client.reply.tokens.truncate(reply_so_far);
                let name = node_that_has(&error).unwrap_or_default();
                let node = self.node_named(name).map_err(|error| Failure::of_call(&error))?;
                self.call_elsewhere(client, &node, function, &statement, &bound.values, &zone).await
            }
            Err(Unfinished::Failed(error)) if error.sqlstate() != Some(OTHER_COLUMNS) => {
                Err(Failure::of_call(&error).into())
            }
            Err(unfinished) => {
                let refusal = refusal(unfinished, function);
                if matches!(refusal, Refusal::Outdated(_)) {
                    client.reply.tokens.truncate(reply_so_far);
                }
                Err(refusal)
            }
        }
    }

    /// Whether a call of `function` may share a transaction with those of other clients.
    pub(super) fn shares(&self, client: &Client, function: &Function) -> bool {
        let is_alone = !self.backend.in_transaction()
            && !client.settings().implicit_transactions
            && client.settings().locking == Locking::default()
            && client.settings().calendar == Calendar::default()
            && client.settings().arithabort.unwrap_or_default() == Arithabort::default()
            // it has no effect on ringlog's own procedures
            && (!client.settings().abort_on_error || function.schema == catalogue::OWN);
        match &function.node {
            None => function.joins_group && self.backend.may_share && is_alone,
            Some(_) if function.only_reads => function.returns != Returns::Rows,
            Some(_) => function.joins_group && is_alone,
        }
    }
}

/// Whether it names a temporary procedure of the session.
fn is_temporary(name: &str) -> bool {
    name.starts_with('#')
}

/// The results of a committed call.
pub(super) fn completed(
    function: &Function,
    asked: &[(usize, usize)],
    outcome: &Outcome,
    zone: &Zone,
) -> Result<Returned, Failure> {
    if let Some(error) = outcome.notices.iter().find(|notice| notice.sqlstate == HANDED_OVER) {
        let error = Notice { sqlstate: RAISED.into(), ..error.clone() };
        return Err(Failure::of_call(&PgError::Server(Box::new(error))));
    }
    let meanings: Vec<Meaning> = outcome.notices.iter().rev().map(Meaning::of).collect();
    let error =
        |meaning: &Meaning| if let Meaning::LeftError(number) = meaning { Some(*number) } else { None };
    let error = meanings.iter().find_map(error).unwrap_or(0);
    let row_count = outcome.row_count.or_else(|| {
        meanings.iter().find_map(|meaning| match meaning {
            Meaning::LeftRows(rows) => Some(*rows),
            Meaning::Count(counted) if !counted.in_trigger => i64::try_from(counted.rows).ok(),
            _ => None,
        })
    });
    let returned = Returned::of(function, asked, outcome, zone)
        .map_err(|message| Failure::of_statement(message.in_procedure(&function.name)))?;
    Ok(Returned { error, row_count, ..returned })
}

pub(super) fn put_notices(client: &mut Client, notices: &[Notice], function: &Function) {
    for notice in notices {
        match Meaning::of(notice) {
            Meaning::Count(counted) => client.reply.counted(counted),
            Meaning::Ended { failed } => client.reply.ended_inside(failed),
            Meaning::LeftError(_)
            | Meaning::LeftRows(_)
            | Meaning::Doomed
            | Meaning::HandedOver
            | Meaning::Nothing => {}
            // its cursor has ended with the connection's transaction
            Meaning::ResultSet { .. } => {
                client.reply.message(&notice.to_message().in_procedure(&function.name))
            }
            Meaning::Message(message) => client.reply.message(&message.in_procedure(&function.name)),
        }
    }
}

/// The value of the setting tsql.repeated for a procedure: a JSON object with, by field, the seconds from the
/// earlier reading of a time to the one that was passed.
fn repeated_times(repeated: &[(String, i64)]) -> String {
    let seconds = |(field, micros): &(String, i64)| (field.clone(), (micros / 1_000_000).into());
    if repeated.is_empty() {
        return String::new();
    }
    serde_json::Value::Object(repeated.iter().map(seconds).collect()).to_string()
}

pub(super) fn count<T>(
    function: &Function,
    start: Instant,
    caller: &Arc<Caller>,
    called: &Result<T, Interrupt>,
) {
    let error = match called {
        Err(Interrupt::Failed(failure)) => Some(&failure.message),
        _ => None,
    };
    function.metrics.answered(start.elapsed().as_secs_f64(), caller, error);
}
