//! Every integration test, in one binary: each against a real Postgres with a database of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(unreachable_pub, reason = "nothing is outside of this binary")]

mod support;

mod access;
mod bad_input;
mod batches;
mod changes;
mod commands;
mod contract;
mod crowd;
mod database_away;
mod defaults;
mod disconnect;
mod documents;
mod drain;
mod expiry;
mod failover;
mod faults;
mod feed_after_purge;
mod gateway;
mod grants;
mod held_rooms;
mod injection;
mod isolation;
mod leases;
mod limits;
mod listing;
mod live;
mod live_processes;
mod migrations;
mod model;
mod moderation;
mod openapi;
mod outages;
mod peers;
mod pooler;
mod processes;
mod purge;
mod races;
mod reconnecting;
mod rolling_deployment;
mod schema;
mod sequences;
mod shutdown;
mod socket;
mod socket_access;
mod stalled_reads;
mod start_behind_locks;
mod structure;
mod sweep;
mod tokens;
mod verify;
mod wakes;
