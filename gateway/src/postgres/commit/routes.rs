//! Chooses the lane of a procedure's calls: always the same one, so that rows of one table are never contended and a
//! statement is planned once. Procedures are distributed over a few lanes, and those with long calls over others, so
//! that short calls do not wait for them. A slow procedure is in quarantine until it has been fast for a while.

use super::call::Statement;
use super::lane::{Elsewhere, LaneKind, Maker, Queue};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Lanes of quarantine; procedures that would need more share them.
const MOST_QUARANTINES: usize = 8;
/// Lanes for procedures that have been called with at least this many bytes, for waveforms.
const LONG_LANES: usize = 2;
const LONG: usize = 32 << 10;
/// A procedure leaves quarantine when no call there has been slow for this time.
const PROBATION: Duration = Duration::from_secs(10);

pub struct Routes {
    maker: Arc<Maker>,
    own: Vec<Queue>,
    long: Vec<Queue>,
    itself: Weak<Routes>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    by_procedure: HashMap<u32, Route>,
    /// The lane number of each procedure, and likewise of those with long calls.
    dealt: HashMap<u32, usize>,
    long: HashMap<u32, usize>,
    quarantines: Vec<Quarantine>,
}

struct Route {
    queue: Queue,
    /// A lane for short calls only.
    is_short: bool,
}

struct Quarantine {
    queue: Queue,
    /// With the time of each procedure's arrival.
    procedures: HashMap<u32, Instant>,
}

impl Routes {
    /// `lanes`: those for short calls.
    pub fn new(maker: &Arc<Maker>, lanes: usize) -> Arc<Routes> {
        Arc::new_cyclic(|itself: &Weak<Routes>| {
            let lane = |_| {
                let routes: Weak<Routes> = itself.clone();
                maker.lane(LaneKind::Quick, routes)
            };
            Routes {
                own: (0..lanes).map(lane).collect(),
                long: (0..LONG_LANES).map(lane).collect(),
                maker: maker.clone(),
                itself: itself.clone(),
                state: RwLock::default(),
            }
        })
    }

    /// The queue for a statement's call of this many bytes.
    pub fn queue(&self, statement: &Statement, bytes: usize) -> Queue {
        let procedure = statement.procedure;
        let is_long = bytes >= LONG;
        let fits = |route: &&Route| !(is_long && route.is_short);
        if let Some(route) = self.state.read().by_procedure.get(&procedure).filter(fits) {
            return route.queue.clone();
        }
        let mut state = self.state.write();
        if let Some(route) = state.by_procedure.get(&procedure).filter(fits) {
            return route.queue.clone();
        }
        let was_long = state.long.contains_key(&procedure);
        let is_short = !(is_long || was_long);
        let queue = if is_short {
            let next = state.dealt.len() % self.own.len().max(1);
            self.own.get(*state.dealt.entry(procedure).or_insert(next))
        } else {
            let next = state.long.len() % LONG_LANES;
            self.long.get(*state.long.entry(procedure).or_insert(next))
        };
        let queue = queue.cloned().unwrap_or_else(|| self.maker.lane(LaneKind::Quick, self.itself.clone()));
        state.by_procedure.insert(procedure, Route { queue: queue.clone(), is_short });
        queue
    }
}

impl Elsewhere for Routes {
    fn quarantine(&self, procedure: u32) -> Queue {
        let mut state = self.state.write();
        let existing = state.quarantines.iter().find(|lane| lane.procedures.contains_key(&procedure));
        if let Some(lane) = existing {
            return lane.queue.clone();
        }
        let count = state.quarantines.len();
        let fewest = state.quarantines.iter_mut().min_by_key(|lane| lane.procedures.len());
        let queue = match fewest {
            Some(lane) if lane.procedures.is_empty() || count >= MOST_QUARANTINES => {
                lane.procedures.insert(procedure, Instant::now());
                lane.queue.clone()
            }
            _ => {
                let queue = self.maker.lane(LaneKind::Quarantine, self.itself.clone());
                let procedures = HashMap::from([(procedure, Instant::now())]);
                state.quarantines.push(Quarantine { queue: queue.clone(), procedures });
                queue
            }
        };
        self.maker.metrics.quarantines.inc();
        state.by_procedure.insert(procedure, Route { queue: queue.clone(), is_short: false });
        queue
    }

    fn release(&self, procedure: u32, slow: Instant) {
        if slow.elapsed() < PROBATION {
            return;
        }
        let mut state = self.state.write();
        for lane in &mut state.quarantines {
            if lane.procedures.get(&procedure).is_some_and(|since| since.elapsed() >= PROBATION) {
                lane.procedures.remove(&procedure);
                // the next call chooses its lane anew
                state.by_procedure.remove(&procedure);
                return;
            }
        }
    }
}
