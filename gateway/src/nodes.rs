//! Nodes: other servers with tables of their own. A call for a table is sent directly to its node, under the session's
//! login there, in the node's own group commit.

use crate::backend::privilege_to_act;
use crate::metrics::Metrics;
use crate::postgres::commit::{not_written, GroupCommit, Maker};
use crate::postgres::priority::WriterPriority;
use crate::postgres::{Address, Connection, Notice, PgError};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tsql::quoting::literal;

/// Connections of group commit to each node.
const COMMIT_CONNECTIONS: usize = 4;
/// Pause before an unreachable node is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// Timeout of the query of a login's oid.
const ANSWER: Duration = Duration::from_secs(5);

/// The address of a node, and the gateway's login there.
pub struct NodeAddress {
    pub name: String,
    pub address: Address,
    pub role: String,
    pub password: String,
}

pub struct Node {
    /// Differs for each address of a node of this name.
    pub id: u64,
    pub name: String,
    pub address: Address,
    maker: Arc<Maker>,
    commit: ArcSwap<GroupCommit>,
    asking: Mutex<Asking>,
}

/// The connection for queries of logins.
#[derive(Default)]
struct Asking {
    open: Option<Connection>,
    failed: Option<(Instant, String)>,
}

static NEXT_NODE: AtomicU64 = AtomicU64::new(1);

/// All known nodes.
pub struct Nodes {
    by_name: ArcSwap<HashMap<String, Arc<Node>>>,
    metrics: Arc<Metrics>,
}

impl Nodes {
    pub fn new(addresses: Vec<NodeAddress>, metrics: &Arc<Metrics>) -> Nodes {
        let nodes = Nodes { by_name: ArcSwap::default(), metrics: metrics.clone() };
        nodes.add(addresses);
        nodes
    }

    /// Adds new nodes, and those with a changed address.
    pub fn add(&self, addresses: Vec<NodeAddress>) {
        let mut all = HashMap::clone(&self.by_name.load());
        for node in addresses {
            all.insert(node.name.clone(), Arc::new(Node::start(node, self.metrics.clone())));
        }
        self.by_name.store(Arc::new(all));
    }

    pub fn get(&self, name: &str) -> Option<Arc<Node>> {
        self.by_name.load().get(name).cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.load().is_empty()
    }

    /// Starts new connections; the existing ones end after their current calls.
    pub fn renew(&self) {
        self.by_name.load().values().for_each(|node| node.renew());
    }
}

impl Node {
    /// Prepares a node; connections are opened when first needed.
    fn start(node: NodeAddress, metrics: Arc<Metrics>) -> Node {
        let address = node.address.of_a_node();
        let maker = Arc::new(Maker {
            threads: Handle::current(),
            server: format!("Node {}", node.name),
            address: address.clone(),
            user: node.role,
            password: node.password,
            metrics,
            // its processes may be on another machine
            priority: Arc::new(WriterPriority::new(false, None)),
        });
        let commit = ArcSwap::from_pointee(GroupCommit::start(&maker, COMMIT_CONNECTIONS));
        let id = NEXT_NODE.fetch_add(1, Ordering::Relaxed);
        Node { id, name: node.name, address, maker, commit, asking: Mutex::default() }
    }

    pub fn commit(&self) -> Arc<GroupCommit> {
        self.commit.load_full()
    }

    fn renew(&self) {
        self.commit.store(Arc::new(GroupCommit::start(&self.maker, COMMIT_CONNECTIONS)));
    }

    /// The oid on the node of a login whose role the gateway may take.
    pub async fn login(&self, name: &str) -> Result<u32, PgError> {
        let mut asking = self.asking.lock().await;
        if let Some((_, why)) = asking.failed.as_ref().filter(|(since, _)| since.elapsed() < PAUSE) {
            return Err(self.unreachable(why));
        }
        // a server that does not answer would delay the waiting sessions
        let asked = tokio::time::timeout(ANSWER, asking.login(&self.maker, name)).await;
        let found = asked.unwrap_or_else(|_| {
            let why = format!("no answer in {} s", ANSWER.as_secs());
            Err(PgError::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why)))
        });
        match found {
            Ok(Some(oid)) => Ok(oid),
            Ok(None) => Err(PgError::Server(Box::new(Notice {
                severity: "ERROR".into(),
                sqlstate: "28000".into(),
                message: format!("Node {} has no login {name}, nothing was written.", self.name),
                hint: "ringlog init makes logins on nodes that lack them.".into(),
                ..Notice::default()
            }))),
            Err(error) => {
                let why = error.to_string();
                *asking = Asking { open: None, failed: Some((Instant::now(), why.clone())) };
                Err(self.unreachable(&why))
            }
        }
    }

    fn unreachable(&self, why: &str) -> PgError {
        not_written(format!("Node {} cannot be reached, nothing was written: {why}", self.name))
    }
}

impl Asking {
    async fn login(&mut self, maker: &Maker, name: &str) -> Result<Option<u32>, PgError> {
        if let Some(open) = &mut self.open {
            if open.has_ended().await {
                self.open = None;
            }
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let words = "ringlog logins";
                let opened =
                    Connection::open_own(&maker.address, &maker.user, &maker.password, words, &[]).await?;
                self.failed = None;
                self.open.insert(opened)
            }
        };
        let sql = format!(
            "select oid from pg_catalog.pg_roles where rolname = {} \
             and pg_catalog.pg_has_role(oid, '{}')",
            literal(name),
            privilege_to_act(open)
        );
        let rows = open.query_text(&sql).await?;
        Ok(rows.into_iter().flatten().next().flatten().and_then(|oid| oid.parse().ok()))
    }
}
