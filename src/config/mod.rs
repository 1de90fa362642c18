//! The settings of `leasehold serve`: flags, each with an environment variable, refused at start where wrong.
//!
//! One file a group; each turns itself into the settings of the module that it is about.

mod auth;
mod coalescing;
mod database;
mod edge;
mod healthcheck;
mod leases;
mod limits;
mod live;
mod logs;
mod pages;
mod purge;
mod serve;
mod token;
mod value;
mod webhooks;

pub use auth::AuthArgs;
pub use coalescing::CoalesceArgs;
pub use database::{ConnectionArgs, DatabaseArgs};
pub use edge::EdgeArgs;
pub use healthcheck::HealthcheckArgs;
pub use leases::{InvalidSetting, LeaseArgs};
pub use limits::LimitArgs;
pub use live::LiveArgs;
pub use logs::LogArgs;
pub use pages::PageArgs;
pub use purge::PurgeArgs;
pub use serve::ServeArgs;
pub use token::TokenArgs;
pub use value::{AGES, duration};
pub use webhooks::{ReachArgs, WebhookArgs};
