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
    places: RwLock<Places>,
}

#[derive(Default)]
struct Places {
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
                places: RwLock::default(),
            }
        })
    }

    /// The queue for a statement's call of this many bytes.
    pub fn queue(&self, statement: &Statement, bytes: usize) -> Queue {
        let procedure = statement.procedure;
        let is_long = bytes >= LONG;
        let fits = |place: &&Route| !(is_long && place.is_short);
        if let Some(place) = self.places.read().by_procedure.get(&procedure).filter(fits) {
            return place.queue.clone();
        }
        let mut places = self.places.write();
        if let Some(place) = places.by_procedure.get(&procedure).filter(fits) {
            return place.queue.clone();
        }
        let was_long = places.long.contains_key(&procedure);
        let is_short = !(is_long || was_long);
        let queue = if is_short {
            let next = places.dealt.len() % self.own.len().max(1);
            self.own.get(*places.dealt.entry(procedure).or_insert(next))
        } else {
            let next = places.long.len() % LONG_LANES;
            self.long.get(*places.long.entry(procedure).or_insert(next))
        };
        let queue = queue.cloned().unwrap_or_else(|| self.maker.lane(LaneKind::Quick, self.itself.clone()));
        places.by_procedure.insert(procedure, Route { queue: queue.clone(), is_short });
        queue
    }
}

impl Elsewhere for Routes {
    fn quarantine(&self, procedure: u32) -> Queue {
        let mut places = self.places.write();
        let known = places.quarantines.iter().find(|lane| lane.procedures.contains_key(&procedure));
        if let Some(lane) = known {
            return lane.queue.clone();
        }
        let count = places.quarantines.len();
        let fewest = places.quarantines.iter_mut().min_by_key(|lane| lane.procedures.len());
        let queue = match fewest {
            Some(lane) if lane.procedures.is_empty() || count >= MOST_QUARANTINES => {
                lane.procedures.insert(procedure, Instant::now());
                lane.queue.clone()
            }
            _ => {
                let queue = self.maker.lane(LaneKind::Quarantine, self.itself.clone());
                let procedures = HashMap::from([(procedure, Instant::now())]);
                places.quarantines.push(Quarantine { queue: queue.clone(), procedures });
                queue
            }
        };
        self.maker.metrics.quarantines.inc();
        places.by_procedure.insert(procedure, Route { queue: queue.clone(), is_short: false });
        queue
    }

    fn release(&self, procedure: u32, slow: Instant) {
        if slow.elapsed() < PROBATION {
            return;
        }
        let mut places = self.places.write();
        for lane in &mut places.quarantines {
            if lane.procedures.get(&procedure).is_some_and(|since| since.elapsed() >= PROBATION) {
                lane.procedures.remove(&procedure);
                // the next call chooses its lane anew
                places.by_procedure.remove(&procedure);
                return;
            }
        }
    }
}
