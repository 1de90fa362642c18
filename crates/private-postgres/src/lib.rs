//! A private PostgreSQL server in one call.
//!
//! `leasehold dev` and the integration tests need a real server, and neither
//! may ask anybody to install, configure or start one first. [`Cluster::start`]
//! takes a directory, makes a cluster in it the first time, starts `postgres`
//! as a child of this process and returns when it answers.
//!
//! The server is private in every sense: it listens on no network address, only
//! on a Unix socket in a directory that one user may enter; it ends with this
//! process, however this process ends (on Linux); and nobody else's server is
//! ever taken for it. Started by root, it runs as the `postgres` user, because
//! PostgreSQL refuses to run as root.
//!
//! In the directory:
//!
//! | name | is |
//! |---|---|
//! | `data/` | PostgreSQL's own data directory |
//! | `run/` | where the socket is, unless its path would be too long |
//! | `postgres.log` | what the server wrote |
//! | `lock` | locked while a process supervises the cluster; holds its pid |

mod cluster;
mod directory;
mod error;
mod log;
mod options;
mod postmaster;
mod programs;
mod server;
mod socket;
mod standby;
#[cfg(test)]
mod tests;
mod users;

pub use cluster::Cluster;
pub use directory::default_data_dir;
pub use error::{ClusterError, OLDEST_MAJOR};
pub use options::{ClusterOptions, Durability};
pub use programs::Programs;
