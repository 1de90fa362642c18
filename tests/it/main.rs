//! Every integration test, in one binary: each against a real Postgres with a database of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

mod access;
mod bad_input;
mod batches;
mod commands;
mod contract;
mod disconnect;
mod documents;
mod expiry;
mod injection;
mod isolation;
mod leases;
mod limits;
mod listing;
mod model;
mod moderation;
mod openapi;
mod processes;
mod purge;
mod races;
mod rolling_deployment;
mod sequences;
mod tokens;
