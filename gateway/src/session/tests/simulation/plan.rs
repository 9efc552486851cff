//! The plan of a run, made from its seed: everything that happens, so that a part can be taken out and the rest stays.

use std::time::Duration;

pub const SESSIONS: usize = 8;
/// Procedures, each of one table.
pub const PROCEDURES: u32 = 3;

#[derive(Clone, Debug)]
pub struct Plan {
    /// The steps of each session, one after another.
    pub sessions: Vec<Vec<Step>>,
    pub faults: Vec<Fault>,
    /// Bytes that a connection to PostgreSQL, and one of a client, holds on its way.
    pub buffers: [usize; 2],
    /// How long PostgreSQL's answers take.
    pub latency: Duration,
}

/// Calls of a client, after a pause.
#[derive(Clone, Debug)]
pub struct Step {
    pub pause: Duration,
    pub calls: Vec<Call>,
    /// How their transaction ends. None: each has its own, shared with others.
    pub ends: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    Rollback,
}

#[derive(Clone, Debug)]
pub struct Call {
    /// Its parameter, and the status that it returns: no other call has it.
    pub id: i32,
    pub procedure: u32,
    pub meets: Meets,
    pub client: Conduct,
}

/// What PostgreSQL does with a call; unless noted, when it runs for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    Nothing,
    /// It runs as long.
    Takes(Duration),
    /// Each time: it waits for a lock of somebody else as long.
    Waits(Duration),
    /// Each time: an error with this SQLSTATE.
    Error(&'static str),
    /// An error with this SQLSTATE, which another try does not have.
    ErrorOnce(&'static str),
    /// Each time: more messages than a shared transaction may send.
    Talks,
    /// The connection ends before the call has run, or after it.
    EndsBefore,
    EndsAfter,
    /// The connection ends at COMMIT, before or after the rows are stored.
    EndsUnstored,
    EndsStored,
    /// The rows are stored, and the connection ends after as many bytes of the answer.
    Cut(usize),
    /// COMMIT fails.
    CommitFails,
    /// COMMIT does not wait for the standby any longer.
    Unconfirmed,
}

/// The action of the client while it waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    Waits,
    Cancels(Duration),
    Leaves(Duration),
    /// Sends as many bytes of the call, and the rest later.
    Splits(usize, Duration),
    /// Leaves after as many bytes of the call.
    LeavesHalf(usize),
}

/// An event of the server.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub at: Duration,
    pub event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// PostgreSQL ends all connections, and takes no new ones as long.
    Restarts(Duration),
    /// It ends the connection with this index among those that are open.
    Ends(usize),
    /// It notifies of a change of the catalogue: all connections of group commit are replaced.
    Notifies,
}

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Often short, sometimes long: 0 to about 2 s.
    fn time(&mut self) -> Duration {
        let most = self.pick(&[1, 1, 10, 100, 400, 2000]);
        Duration::from_millis(self.below(most) as u64)
    }
}

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let mut random = Random(seed);
        let mut next = 0;
        // quiet runs have many calls in a group, wild ones many faults
        let wildness = random.pick(&[2, 10, 30]);
        let transactions = random.pick(&[0, 10, 50]);
        let procedures = random.pick(&[1, 1, PROCEDURES]);
        let sessions = (0..1 + random.below(SESSIONS))
            .map(|_| {
                let steps = 0..1 + random.below(3);
                steps.map(|_| Step::of(&mut random, &mut next, wildness, transactions, procedures)).collect()
            })
            .collect();
        let faults = (0..random.below(5))
            .map(|_| Fault {
                at: random.time(),
                event: match random.below(4) {
                    0 | 1 => Event::Restarts(random.time()),
                    2 => Event::Ends(random.below(8)),
                    _ => Event::Notifies,
                },
            })
            .collect();
        let buffers = [random.pick(&[100, 4096, 65536, 65536]), random.pick(&[16, 4096, 4096])];
        let latency = Duration::from_millis(random.pick(&[0, 1, 1, 20]));
        Plan { sessions, faults, buffers, latency }
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.sessions.iter().flatten().flat_map(|step| &step.calls)
    }

    /// The plans with one part less, or with one that is simpler.
    pub fn simpler(&self) -> Vec<Plan> {
        let mut plans = Vec::new();
        let mut with = |change: &dyn Fn(&mut Plan)| {
            let mut plan = self.clone();
            change(&mut plan);
            plans.push(plan);
        };
        for index in 0..self.sessions.len() {
            with(&|plan| _ = plan.sessions.remove(index));
        }
        for index in 0..self.faults.len() {
            with(&|plan| _ = plan.faults.remove(index));
        }
        for (session, steps) in self.sessions.iter().enumerate() {
            for (index, step) in steps.iter().enumerate() {
                with(&|plan| _ = plan.sessions[session].remove(index));
                if !step.pause.is_zero() {
                    with(&|plan| plan.sessions[session][index].pause = Duration::ZERO);
                }
                for (number, call) in step.calls.iter().enumerate() {
                    if step.calls.len() > 1 {
                        with(&|plan| _ = plan.sessions[session][index].calls.remove(number));
                    }
                    if call.meets != Meets::Nothing {
                        with(&|plan| plan.sessions[session][index].calls[number].meets = Meets::Nothing);
                    }
                    if call.client != Conduct::Waits {
                        with(&|plan| plan.sessions[session][index].calls[number].client = Conduct::Waits);
                    }
                }
            }
        }
        plans
    }
}

impl Step {
    /// `wildness` and `transactions`: per cent of calls, and of steps.
    fn of(
        random: &mut Random,
        next: &mut i32,
        wildness: usize,
        transactions: usize,
        procedures: u32,
    ) -> Step {
        let is_transaction = random.below(100) < transactions;
        let ends = is_transaction.then(|| random.pick(&[End::Commit, End::Commit, End::Rollback]));
        let calls = 1 + random.below(if ends.is_some() { 3 } else { 2 });
        let calls = (0..calls).map(|_| Call::of(random, next, wildness, procedures)).collect();
        Step { pause: random.time(), calls, ends }
    }
}

impl Call {
    fn of(random: &mut Random, next: &mut i32, wildness: usize, procedures: u32) -> Call {
        *next += 1;
        let (meets, client) = (random.below(100) < wildness, random.below(100) < wildness);
        Call {
            id: *next,
            procedure: random.below(procedures as usize) as u32,
            meets: if meets { Meets::of(random) } else { Meets::Nothing },
            client: if client { Conduct::of(random) } else { Conduct::Waits },
        }
    }
}

impl Meets {
    fn of(random: &mut Random) -> Meets {
        match random.below(50) {
            0 => Meets::Talks,
            1..5 => Meets::Takes(random.time()),
            5..11 => Meets::Waits(random.time()),
            11..16 => Meets::Error(random.pick(&["23505", "22012", "42501", "P0001"])),
            // a deadlock, a plan for columns that have changed, and a damaged page
            16..21 => Meets::ErrorOnce(random.pick(&["40P01", "0A000", "XX001"])),
            21..25 => Meets::EndsBefore,
            25..29 => Meets::EndsAfter,
            29..33 => Meets::EndsUnstored,
            33..38 => Meets::EndsStored,
            38..42 => Meets::Cut(random.below(120)),
            42..46 => Meets::CommitFails,
            _ => Meets::Unconfirmed,
        }
    }
}

impl Conduct {
    fn of(random: &mut Random) -> Conduct {
        match random.below(8) {
            0..4 => Conduct::Cancels(random.time()),
            4 => Conduct::Leaves(random.time()),
            5 => Conduct::LeavesHalf(random.below(60)),
            _ => Conduct::Splits(random.below(60), random.time()),
        }
    }
}
