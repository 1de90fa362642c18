//! Leasehold: presence as a fact in Postgres.
//!
//! The rules of membership are SQL functions in `migrations/`; this crate owns the
//! traffic. Modules stand on floors, and each uses only those below it: `FLOORS` in
//! `tests/it/structure.rs` lists them.

#![forbid(unsafe_code)]

pub mod access;
pub mod app;
pub mod cells;
pub mod cli;
pub mod coalesce;
pub mod config;
pub mod descriptors;
pub mod domain;
pub mod http;
pub mod jobs;
pub mod presence;
pub mod store;
pub mod stream;
pub mod telemetry;
pub mod wake;
pub mod webhooks;
pub mod wire;
