//! Calls that share a transaction with those of other clients (group commit). A call of known shape is bound by its
//! plan, without further examination.

use super::name::ProcedureName;
use super::procedures::{completed, count, put_notices, Procedures};
use super::refusals::{may_be_outdated, talks};
use super::returned::Returned;
use crate::backend::Unfinished;
use crate::catalogue::{BindError, Function, Plan};
use crate::client::Client;
use crate::convert::Zone;
use crate::interrupt::{Failure, Interrupt};
use crate::postgres::commit::{Claim, Outcome, Statement};
use crate::postgres::Values;
use crate::tds::call::Param;
use crate::tds::layout::Layout;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of plans of a session: a client that calls more procedures gains little from them.
const MOST_PLANS: usize = 4;

/// A call bound by its plan.
pub struct Planned {
    function: Arc<Function>,
    statement: Arc<Statement>,
    values: Result<Values, BindError>,
    /// Of an sp_prepexecrpc: the name of the procedure as the client sends it, and the handle.
    pub prepares: Option<(Arc<str>, Option<i32>)>,
    zone: Zone,
    start: Instant,
}

impl Procedures {
    /// Runs a call by group commit and passes its messages on. A client may cancel it before it is sent;
    /// afterwards its result counts.
    pub(super) async fn call_shared(
        &mut self,
        client: &mut Client,
        function: &Function,
        statement: Arc<Statement>,
        values: Values,
    ) -> Result<Outcome, Unfinished> {
        let (commit, role) = match self.node_of(function, values.beginning())? {
            Some(node) => (node.commit(), self.login_on(&node).await?),
            None => {
                self.backend.leave_standby().await?;
                (self.gateway.commit(), self.role)
            }
        };
        self.claim.renew();
        let call = commit.call(statement, role, values, self.claim.clone());
        tokio::pin!(call);
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            attention = client.attention() => {
                if attention.is_ok() && self.claim.withdraw() {
                    self.claim = Claim::default();
                    return Err(Unfinished::Cancelled);
                }
                // the complete call of a disconnected client runs nevertheless
                call.await
            }
        };
        self.backend.note_statement(false, answer.as_ref().err());
        match &answer {
            Ok(outcome) => put_notices(client, &outcome.notices, function),
            // an error that may be repeated is reported only if it is not repeated
            Err(error) if may_be_outdated(error) => {}
            Err(error) => put_notices(client, error.before(), function),
        }
        match answer {
            Ok(outcome) => Ok(outcome),
            Err(mut error) => {
                self.backend.explain(&mut error, String::new, client).await;
                Err(error.into())
            }
        }
    }

    /// The call in `body` (a message without its headers) by the plan of an earlier call of the same shape. None: there
    /// is no plan, or it does not suffice.
    pub fn planned(&mut self, client: &Client, body: &Bytes) -> Option<Planned> {
        if self.plans.is_empty() {
            return None;
        }
        let start = Instant::now();
        let catalogue = self.catalogue();
        self.plans.retain(|plan| plan.is_of(&catalogue));
        let zone = self.gateway.zone();
        let dialect = client.dialect();
        self.plans.iter().filter(|plan| self.shares(client, &plan.function)).find_map(|plan| {
            let (values, handle) = plan.bind(body, &dialect, &zone)?;
            let prepares = plan.prepares.clone().map(|name| (name, handle));
            let (function, statement) = (plan.function.clone(), plan.statement.clone());
            Some(Planned { function, statement, values, prepares, zone: zone.clone(), start })
        })
    }

    /// Runs it. None: it must be run without its plan.
    pub async fn call_planned(
        &mut self,
        client: &mut Client,
        planned: Planned,
    ) -> Option<Result<Returned, Interrupt>> {
        let Planned { function, statement, values, zone, start, .. } = planned;
        let called = match values {
            Err(error) => Err(Failure::of_statement(error.to_message(&function)).into()),
            Ok(values) => match self.call_shared(client, &function, statement, values).await {
                Ok(outcome) => completed(&function, &[], &outcome, &zone).map_err(Interrupt::from),
                Err(Unfinished::Failed(error)) if may_be_outdated(&error) || talks(&error) => return None,
                Err(Unfinished::Failed(error)) => Err(Failure::of_call(&error).into()),
                Err(other) => Err(other.into()),
            },
        };
        count(&function, start, &self.caller, &called);
        Some(called)
    }

    /// Makes a plan from a successful call, for later calls.
    pub fn learn(&mut self, client: &Client, body: &[u8], name: &str, params: &[Param<'_>]) {
        if self.plans.len() >= MOST_PLANS {
            return;
        }
        let dialect = client.dialect();
        let Ok(function) = self.find_named(client, &ProcedureName::read(name), params) else {
            return;
        };
        if !self.shares(client, &function) {
            return;
        }
        if let Ok(Some(layout)) = Layout::of(body, &dialect) {
            let prepares = layout.prepares().then(|| name.into());
            let plan = Plan::make(&self.catalogue(), &function, params, layout, &dialect);
            self.plans.extend(plan.map(|plan| plan.prepared_as(prepares)));
        }
    }
}
