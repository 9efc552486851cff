//! A simulation of the commit path: sessions and group commit as they are, with a simulated PostgreSQL, streams in
//! memory and a clock that jumps to the next event. A seed decides all that happens (`plan.rs`), and afterwards the
//! promises are checked (`promises.rs`).

mod client;
mod connection;
mod plan;
mod promises;
mod server;
mod statements;

use client::{Client, Known};
use plan::Plan;
use server::{Row, Server};
use std::env;
use std::str::FromStr;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout, Instant};
use tokio_util::sync::CancellationToken;

/// Nothing that a plan contains takes as long.
const FOR_EVER: Duration = Duration::from_secs(3600);
/// After it connections that are no longer needed are closed.
const QUIET: Duration = Duration::from_secs(150);
/// Seeds of a usual test, of which it runs as many each time.
const SEEDS: u64 = 300;
/// Seeds that found errors: 2187 a cancel that nobody answered when PostgreSQL was lost after it.
const FOUND: [u64; 1] = [2187];

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    rows: Vec<Row>,
    known: Vec<(i32, Known)>,
    /// Groups that were rolled back, and procedures that were moved to a lane of their own.
    split: u64,
    moved: u64,
    time: Duration,
}

/// Runs a plan. An error is a promise that was not kept.
fn run(plan: &Plan) -> Result<Trace, String> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let ran = timeout(FOR_EVER, run_clients(plan)).await;
        ran.unwrap_or_else(|_| Err(String::from("something waits for ever")))
    })
}

async fn run_clients(plan: &Plan) -> Result<Trace, String> {
    let (server, address) = Server::start(plan);
    let stopping = CancellationToken::new();
    let gateway = loop {
        match super::start(address.clone(), stopping.clone()).await {
            Ok(gateway) => break gateway,
            // PostgreSQL restarts meanwhile
            Err(error) if error.is_fatal() => sleep(Duration::from_millis(100)).await,
            Err(error) => return Err(error.to_string()),
        }
    };
    let begin = Instant::now();
    let started = |(number, steps): (usize, &Vec<plan::Step>)| {
        let (server, gateway) = (server.clone(), gateway.clone());
        let (known, together) = (Vec::new(), Vec::new());
        let client = Client { server, gateway, number, buffer: plan.buffers[1], known, together };
        tokio::spawn(client.run(steps.clone()))
    };
    let clients: Vec<_> = plan.sessions.iter().enumerate().map(started).collect();
    let mut done = Vec::new();
    for client in clients {
        done.push(client.await.map_err(|error| error.to_string())??);
    }
    let time = begin.elapsed();
    sleep(QUIET).await;
    promises::check(&server, &gateway, &done)?;
    let known = done.into_iter().flat_map(|client| client.known).collect();
    let (split, moved) = (gateway.metrics.split_groups.get(), gateway.metrics.quarantines.get());
    Ok(Trace { rows: server.rows(), known, split, moved, time })
}

/// The smallest plan found that fails, with its failure.
fn reduced(mut plan: Plan, mut failure: String) -> (Plan, String) {
    loop {
        let next = plan.simpler().into_iter().find_map(|simpler| Some((run(&simpler).err()?, simpler)));
        match next {
            Some((error, simpler)) => (plan, failure) = (simpler, error),
            None => return (plan, failure),
        }
    }
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

/// SIMULATION_SEED is the first seed, SIMULATION_SECONDS the time for as many as it allows.
#[test]
fn the_commit_path_keeps_its_promises() {
    let first: u64 = setting("SIMULATION_SEED").unwrap_or(1);
    let time = setting("SIMULATION_SECONDS").map(Duration::from_secs);
    for seed in FOUND {
        run(&Plan::of(seed)).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    let begin = std::time::Instant::now();
    let mut seed = first;
    let (mut written, mut not_written, mut unknown, mut split, mut moved) = (0, 0, 0, 0, 0);
    while time.map_or(seed - first < SEEDS, |time| begin.elapsed() < time) {
        let plan = Plan::of(seed);
        let trace = run(&plan).unwrap_or_else(|failure| {
            let (plan, failure) = reduced(plan, failure);
            panic!("SIMULATION_SEED={seed}: {failure}\n{plan:#?}");
        });
        let of = |known| trace.known.iter().filter(|(_, found)| *found == known).count();
        written += of(Known::Written);
        not_written += of(Known::NotWritten);
        unknown += of(Known::Nothing);
        split += trace.split;
        moved += trace.moved;
        seed += 1;
    }
    println!(
        "simulation: {} seeds from {first} in {:?}; calls: {written} written, {not_written} not, {unknown} unknown; \
         {split} groups rolled back, {moved} procedures moved",
        seed - first,
        begin.elapsed()
    );
    assert!(written > 0 && not_written > 0 && unknown > 0 && split > 0 && moved > 0);
}

#[test]
fn a_seed_does_the_same_each_time() {
    for seed in 1..=20 {
        let plan = Plan::of(seed);
        assert_eq!(run(&plan), run(&plan), "{seed}");
    }
}
