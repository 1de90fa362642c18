//! HTTP: the only module that names actix, but for `app`, which runs its server.

mod access_log;
mod api;
pub mod auth;
mod batches;
mod body;
mod changes;
mod cors;
mod crowd;
mod docs;
mod drain;
mod error;
mod events;
mod health;
mod history;
mod members;
mod metrics;
mod moderation;
mod openapi;
mod page;
mod path;
mod peer;
mod pulse;
mod rooms;
mod routes;
mod server;
mod socket;
mod users;

pub use api::Api;
pub use auth::Access;
pub use body::BodyLimits;
pub use drain::Drain;
pub use error::ApiError;
pub use openapi::document_text;
pub use pulse::Pulse;
pub use routes::table;
pub use server::{ServerSettings, server};
