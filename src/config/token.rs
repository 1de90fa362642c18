//! What `leasehold token` says.

use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::value::{AGES, duration};
use crate::access::Scope;
use crate::http::auth::NewToken;

/// What a token is to say.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The secret of the service that is to accept it
    #[arg(long, env = "LEASEHOLD_JWT_HS256_SECRET", hide_env_values = true)]
    pub secret: SecretString,
    /// The userId that the token is for
    #[arg(long)]
    sub: String,
    /// The id of a room that it reaches, taken as it is; repeat for several
    #[arg(long = "room")]
    rooms: Vec<String>,
    /// How the ids of rooms begin that it reaches, like team-a-; repeat for several, empty for all rooms
    #[arg(long = "room-prefix")]
    room_prefixes: Vec<String>,
    /// What it lets its holder do: member, observer or admin
    #[arg(long, default_value = "member", value_parser = scope)]
    scope: Scope,
    /// A JSON object that is shown beside its holder's metadata
    #[arg(long, value_parser = info)]
    info: Option<Map<String, Value>>,
    /// How many members a room may have for its holder to join it
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    max_members: Option<i32>,
    /// Whom it is for: the first audience of the service that is to accept it
    #[arg(long, env = "LEASEHOLD_JWT_AUDIENCE", value_delimiter = ',')]
    audience: Vec<String>,
    /// Whom it is of: the first issuer that this service trusts
    #[arg(long, env = "LEASEHOLD_JWT_ISSUER", value_delimiter = ',')]
    issuer: Vec<String>,
    /// How long it holds, like 1h
    #[arg(long, default_value = "1h", value_parser = duration("--expires-in", AGES))]
    expires_in: Duration,
}

impl TokenArgs {
    /// What it says.
    pub fn claims(&self) -> NewToken {
        NewToken {
            subject: self.sub.clone(),
            room_ids: self.rooms.clone(),
            room_prefixes: self.room_prefixes.clone(),
            scope: self.scope,
            info: self.info.clone(),
            max_members: self.max_members,
            audience: self.audience.first().cloned(),
            issuer: self.issuer.first().cloned(),
            lifetime: self.expires_in,
        }
    }
}

fn scope(word: &str) -> Result<Scope, String> {
    Scope::parse(word).ok_or_else(|| "a scope is member, observer or admin".to_owned())
}

fn info(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|_| "info must be a JSON object".to_owned())
}
