//! Calls of procedures whose table is on a node. Those that write or return outputs use the node's group commit; those
//! that return rows run on the session's own connection to the node.

use super::procedures::{completed, Procedures};
use super::refusals::{refusal, Refusal, MOVED};
use super::returned::Returned;
use crate::backend::{Backend, Errors, Rows, Source, Unfinished};
use crate::catalogue::{Function, Reason, Returns};
use crate::client::{Client, Locking};
use crate::convert::Zone;
use crate::interrupt::Failure;
use crate::nodes::Node;
use crate::postgres::commit::{not_written, Statement};
use crate::postgres::PgError;
use crate::program::{Query, Sql};
use crate::tds::tokens::message::ServerMessage;
use bytes::Bytes;
use std::sync::Arc;
use tsql::quoting::literal;

/// SQL Server's number for an aborted distributed transaction.
const NO_DISTRIBUTED_TRANSACTION: i32 = 1206;
/// SQL Server's number for a name of another server where none is allowed.
const NO_REFERENCE: i32 = 40515;

/// Whether each statement is its own transaction, with the usual isolation and lock timeout.
fn as_usual(client: &Client) -> bool {
    let settings = client.settings();
    !settings.implicit_transactions && settings.locking == Locking::default()
}

impl Procedures {
    /// The node for a call of `function` with these values; None: this server.
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

    /// Calls a function that returns rows. Other functions are refused: they cannot run in the session's
    /// transaction or with its settings.
    pub(super) async fn call_elsewhere(
        &mut self,
        client: &mut Client,
        node: &Arc<Node>,
        function: &Function,
        statement: &Statement,
        values: &Bytes,
        zone: &Zone,
    ) -> Result<Returned, Refusal> {
        if !(function.only_reads && function.returns == Returns::Rows && as_usual(client)) {
            let text = format!(
                "{} is on node {}, and a call of it can be no part of a transaction, have another isolation level or \
                 lock timeout, or a time that was twice when clocks were set back. Nothing was done.",
                function.name, node.name
            );
            return Err(
                Failure::of_statement(ServerMessage::error(NO_DISTRIBUTED_TRANSACTION, 16, text)).into()
            );
        }
        // qualified by its schema: the database of an earlier text may not exist on the node
        let backend = self.opened_on(node, "").await.map_err(Failure::of_statement)?;
        let source = Source::Call { statement, values, only_reads: true, repeated: "", errors: Errors::Sent };
        match backend.run(client, source, Rows::ToClient(None)).await {
            Ok(done) => Ok(completed(function, &[], &done.outcome, zone)?),
            Err(unfinished) => Err(refusal(unfinished, function)),
        }
    }

    /// The connection for a query that only reads: one to the node with its tables, otherwise the session's
    /// own.
    pub async fn backend_of(
        &mut self,
        client: &mut Client,
        sql: &Sql,
    ) -> Result<&mut Backend, ServerMessage> {
        let Some(node) = self.node_of_tables(client, sql).await? else {
            return Ok(&mut self.backend);
        };
        let cannot = |why: &str| {
            let text = format!("Node {} has the tables of this query: {why}.", node.name);
            ServerMessage::error(NO_REFERENCE, 16, text)
        };
        if sql.facts.calls {
            return Err(cannot("it cannot call functions of a site there"));
        }
        if !as_usual(client) {
            return Err(cannot(
                "it can be no part of a transaction, or have another isolation level or lock timeout",
            ));
        }
        let database = self.backend.database.clone();
        self.opened_on(&node, &database).await
    }

    /// The connection that describes a query.
    pub async fn describing(
        &mut self,
        client: &mut Client,
        query: &Query,
    ) -> Result<&mut Backend, ServerMessage> {
        match query.only_reads() {
            true => self.backend_of(client, &query.sql).await,
            false => Ok(&mut self.backend),
        }
    }

    /// The node that has all tables of a query; None: they are on this server, or do not exist.
    async fn node_of_tables(
        &mut self,
        client: &mut Client,
        sql: &Sql,
    ) -> Result<Option<Arc<Node>>, ServerMessage> {
        let catalogue = self.catalogue();
        if !sql.facts.tables.iter().any(|table| catalogue.node_of_table(&table.sql).is_some()) {
            return Ok(None);
        }
        let names: Vec<_> = sql.facts.tables.iter().map(|table| literal(&table.sql)).collect();
        let asked = format!("select ringlog.node_of_tables(array[{}])", names.join(", "));
        let found = match self.backend.ask(&asked).await {
            Ok(rows) => rows.into_iter().flatten().next().flatten(),
            Err(error) => return Err(self.backend.message_of(&error, client)),
        };
        found.map(|name| self.node_named(&name).map_err(|error| error.to_message())).transpose()
    }

    /// The session's connection to a node, with this database; "": the login's default there.
    pub(super) async fn opened_on(
        &mut self,
        node: &Arc<Node>,
        database: &str,
    ) -> Result<&mut Backend, ServerMessage> {
        let index = self.elsewhere.iter().position(|backend| backend.is_of(node));
        let index = index.unwrap_or_else(|| {
            self.elsewhere.push(self.backend.on_node(node.clone()));
            self.elsewhere.len() - 1
        });
        let Some(backend) = self.elsewhere.get_mut(index) else {
            return Err(PgError::Protocol("no connection".into()).to_message());
        };
        backend.let_go_if_ended().await;
        if !(database.is_empty() && backend.is_open()) {
            backend.database = database.to_owned();
        }
        match backend.open().await {
            Ok(_) => Ok(backend),
            Err(error) => {
                let text = format!("Node {} cannot be read: {error}", node.name);
                Err(ServerMessage::error(50000, 16, text))
            }
        }
    }

    /// Whether a query was refused before any result, perhaps because its table has moved to another server.
    /// The catalogue has then been read again.
    pub async fn may_have_moved(&mut self, unfinished: &Unfinished) -> bool {
        // insufficient_privilege, undefined_table, wrong_object_type, feature_not_supported: "… is on node …";
        // internal_error: "could not open relation"
        const SIGNS: [&str; 6] = ["42501", "42P01", "42809", "0A000", "XX000", MOVED];
        let Unfinished::Refused(error) = unfinished else { return false };
        !self.gateway.nodes.is_empty()
            && error.sqlstate().is_some_and(|state| SIGNS.contains(&state))
            && !self.backend.in_transaction()
            && self.gateway.reload_catalogue(Reason::Moved).await
    }

    /// Whether the session has connections to nodes.
    pub fn is_elsewhere(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Closes the connections to nodes, which hold no state.
    pub async fn leave_nodes(&mut self) {
        for mut backend in self.elsewhere.drain(..) {
            backend.close().await;
        }
    }

    /// Closes all connections.
    pub async fn close(&mut self) {
        self.leave_nodes().await;
        self.backend.close().await;
    }
}
