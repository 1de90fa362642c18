//! Clients, instances, the network and Postgres under faults; a history of it all, and its check.

mod checker;
mod checker_tests;
mod clock;
mod disk;
mod faults;
mod history;
mod leaks;
mod lives;
mod readers;
mod servers;
mod sockets;
mod trial;
mod workload;
mod world;

use std::env;
use std::time::Duration;

/// How long each of the three long trials takes: its share of `CHAOS_SECONDS`, or of ten minutes.
fn long_run() -> Duration {
    let seconds: u64 = env::var("CHAOS_SECONDS").map_or(600, |seconds| seconds.parse().unwrap());
    Duration::from_secs(seconds) / 3
}
