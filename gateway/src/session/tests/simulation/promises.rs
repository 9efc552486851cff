//! What holds after each run.

use super::client::{Client, Known};
use super::server::Server;
use super::statements::{login_of, role_of};
use crate::gateway::Gateway;
use std::collections::HashMap;

/// The connections of an idle gateway: of the catalogue, and of group commit for short calls and for long ones.
const CONNECTIONS: usize = 1 + 4 + 2;

pub fn check(server: &Server, gateway: &Gateway, clients: &[Client]) -> Result<(), String> {
    if let Some(wrong) = server.wrong() {
        return Err(wrong);
    }
    check_rows(server, clients)?;
    if server.locks.iter().any(|lock| lock.try_lock().is_err()) {
        return Err(String::from("a lock in PostgreSQL was not returned"));
    }
    if server.connections() != CONNECTIONS {
        return Err(format!("{} connections are open, not {CONNECTIONS}", server.connections()));
    }
    let shares = [&gateway.sessions, &gateway.connections, &gateway.logins];
    let idle = gateway.idle.available_permits();
    let connecting = gateway.connecting.available_permits();
    if shares.iter().any(|shares| !shares.is_unused()) || (idle, connecting) != (20, 8) {
        return Err(format!("slots were not returned: idle {idle}, connecting {connecting}, {shares:?}"));
    }
    Ok(())
}

fn check_rows(server: &Server, clients: &[Client]) -> Result<(), String> {
    let mut written: HashMap<i32, usize> = HashMap::new();
    for row in server.rows() {
        *written.entry(row.id).or_default() += 1;
        let caller = clients.iter().find(|client| client.known.iter().any(|(id, _)| *id == row.id));
        let number = caller.ok_or_else(|| format!("nobody has called {}", row.id))?.number;
        if row.role != role_of(&login_of(number)) {
            return Err(format!("call {} of session {number} ran as role {}", row.id, row.role));
        }
    }
    let times = |id: &i32| written.get(id).copied().unwrap_or_default();
    for (id, known) in clients.iter().flat_map(|client| &client.known) {
        match (known, times(id)) {
            (Known::Written, 1) | (Known::NotWritten, 0) | (Known::Nothing, 0 | 1) => {}
            (known, times) => return Err(format!("call {id} was committed {times} times: {known:?}")),
        }
    }
    for calls in clients.iter().flat_map(|client| &client.together) {
        if calls.iter().any(|id| times(id) != times(&calls[0])) {
            return Err(format!("of the transaction of calls {calls:?} a part was committed"));
        }
    }
    Ok(())
}
