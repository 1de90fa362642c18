//! Clients, instances, the network and Postgres under faults; a history of it all, and its check.

mod checker;
mod checker_tests;
mod clock;
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
