//! Every integration test, in one binary: each against a real Postgres with a database of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

mod bad_input;
mod batches;
mod commands;
mod contract;
mod crowd;
mod documents;
mod expiry;
mod faults;
mod isolation;
mod leases;
mod migrations;
mod model;
mod processes;
mod races;
mod rolling_deployment;
mod schema;
mod sequences;
mod structure;
mod sweep;
mod verify;
