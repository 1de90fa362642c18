//! Every integration test, in one binary: each against a real Postgres with a database of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

mod bad_input;
mod commands;
mod contract;
mod documents;
mod expiry;
mod isolation;
mod leases;
mod model;
mod moderation;
mod processes;
mod races;
mod rolling_deployment;
mod sequences;
