//! Leasehold: presence as a fact in Postgres.
//!
//! `cli → app → {http, jobs, stream} → presence → {coalesce, wake} → store → domain`:
//! each module uses those to its right. The rules of membership are SQL functions in
//! `migrations/`; this crate owns the traffic.

pub mod access;
pub mod app;
pub mod cli;
pub mod coalesce;
pub mod config;
pub mod dev;
pub mod domain;
pub mod http;
pub mod jobs;
pub mod presence;
pub mod store;
pub mod stream;
pub mod telemetry;
pub mod wake;
