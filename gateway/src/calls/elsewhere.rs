//! Calls of procedures whose table is on a node. Those that write or return outputs go into the node's group commit;
//! those that return rows run on a connection of the session's own to the node.

use super::procedures::{completed, refusal, Procedures, Refusal};
use super::returned::Returned;
use crate::backend::{Rows, Source};
use crate::catalogue::{Function, Returns};
use crate::client::{Client, Locking};
use crate::convert::Zone;
use crate::interrupt::Failure;
use crate::nodes::Node;
use crate::postgres::commit::{not_written, Statement};
use crate::postgres::PgError;
use crate::tds::tokens::message::ServerMessage;
use bytes::Bytes;
use std::sync::Arc;

/// SQL Server's number for a distributed transaction that was given up.
const NO_DISTRIBUTED_TRANSACTION: i32 = 1206;

impl Procedures {
    /// The node that a call of `function` with these values is for; None: it is for here.
    pub(super) fn node_of(&self, function: &Function, values: &[u8]) -> Result<Option<Arc<Node>>, PgError> {
        if function.node.is_none() && self.gateway.nodes.is_empty() {
            return Ok(None);
        }
        let catalogue = self.catalogue();
        let Some(name) = catalogue.node_of(function, values) else {
            return Ok(None);
        };
        self.node_named(name).map(Some)
    }

    pub(super) fn node_named(&self, name: &str) -> Result<Arc<Node>, PgError> {
        self.gateway.nodes.get(name).ok_or_else(|| {
            not_written(format!(
                "The gateway does not know node {name} yet, nothing was written: send it again."
            ))
        })
    }

    /// The oid of the session's login on a node.
    pub(super) async fn login_on(&mut self, node: &Node) -> Result<u32, PgError> {
        if let Some(oid) = self.logins.get(&node.id) {
            return Ok(*oid);
        }
        let oid = node.login(self.backend.user()).await?;
        self.logins.insert(node.id, oid);
        Ok(oid)
    }

    /// Calls what gives rows; everything else cannot be called as it is now.
    pub(super) async fn call_elsewhere(
        &mut self,
        client: &mut Client,
        node: &Arc<Node>,
        function: &Function,
        statement: &Statement,
        values: &Bytes,
        zone: &Zone,
    ) -> Result<Returned, Refusal> {
        let settings = client.settings();
        let as_usual = !settings.implicit_transactions && settings.locking == Locking::default();
        if !(function.only_reads && function.returns == Returns::Rows && as_usual) {
            let text = format!(
                "{} is on node {}, and a call of it can be no part of a transaction, have another isolation level or \
                 lock timeout, or a time that was twice when clocks were set back. Nothing was done.",
                function.name, node.name
            );
            return Err(
                Failure::of_statement(ServerMessage::error(NO_DISTRIBUTED_TRANSACTION, 16, text)).into()
            );
        }
        let place = self.elsewhere.iter().position(|backend| backend.is_of(node));
        let place = place.unwrap_or_else(|| {
            self.elsewhere.push(self.backend.on_node(node.clone()));
            self.elsewhere.len() - 1
        });
        let Some(backend) = self.elsewhere.get_mut(place) else {
            return Err(Failure::of_call(&PgError::Protocol("no connection".into())).into());
        };
        backend.let_go_if_ended().await;
        if let Err(error) = backend.open().await {
            let text = format!("Node {} cannot be read: {error}", node.name);
            return Err(Failure::of_statement(ServerMessage::error(50000, 16, text)).into());
        }
        let source = Source::Call { statement, values, only_reads: true, repeated: "", in_try: false };
        match backend.run(client, source, Rows::ToClient(None)).await {
            Ok(done) => Ok(completed(function, &[], &done.outcome, zone)?),
            Err(unfinished) => Err(refusal(unfinished, function)),
        }
    }

    /// Whether the session has connections to nodes.
    pub fn is_elsewhere(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Gives up the connections to nodes, which hold nothing.
    pub async fn leave_nodes(&mut self) {
        for mut backend in self.elsewhere.drain(..) {
            backend.close().await;
        }
    }

    /// Gives up every connection.
    pub async fn close(&mut self) {
        self.leave_nodes().await;
        self.backend.close().await;
    }
}
