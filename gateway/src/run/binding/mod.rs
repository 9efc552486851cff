//! The binding of texts and queries to the declarations of the objects that they name. Work that depends on these is
//! done again with those that it has named, until it names no other.

pub(super) mod demanded;
pub(super) mod outdated;
pub(super) mod written;

use crate::backend::Backend;
use crate::client::Client;
use crate::program::Asking;
use crate::tds::tokens::message::ServerMessage;
use std::future::Future;
use std::sync::Arc;

/// How often the declarations of one text's tables are read: once, unless the text has an error.
const MOST_ROUNDS: usize = 100;

/// Does the work. After a failure all declarations are read anew, once, since others may have changed them.
/// `has_globals`: global temporary tables are known too.
pub async fn under_schema<T, F: Future<Output = Result<T, ServerMessage>>>(
    backend: &mut Backend,
    client: &mut Client,
    has_globals: bool,
    work: impl Fn(Arc<Asking>) -> F,
) -> Result<T, ServerMessage> {
    let mut snapshot = backend.snapshot().map_err(|error| backend.message_of(&error, client))?;
    let mut is_new = false;
    for _ in 0..MOST_ROUNDS {
        let schema = Asking::new(snapshot, has_globals);
        let done = work(schema.clone()).await;
        snapshot = if schema.has_missing() {
            let read = backend.read_declarations(&schema.missing()).await;
            read.map_err(|error| backend.message_of(&error, client))?
        } else if done.is_err() && schema.is_used() && !is_new {
            is_new = true;
            backend.forget_tables();
            Arc::default()
        } else {
            return done;
        };
    }
    Err(ServerMessage::error(8623, 16, "The batch names more tables than can be looked for."))
}
