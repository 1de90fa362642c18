//! Every integration test, in one binary: each against a real Postgres with a database of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

mod documents;
mod isolation;
mod rolling_deployment;
mod sequences;
