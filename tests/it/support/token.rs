//! Client tokens as the service mints them.

use std::time::Duration;

use leasehold::access::Scope;
use leasehold::http::auth::{self, NewToken};
use secrecy::SecretString;

/// A token with nothing special; what ends in `*` in `rooms` is a prefix.
pub fn mint(
    secret: &SecretString,
    subject: String,
    rooms: Option<Vec<String>>,
    scope: Scope,
    seconds: u64,
) -> anyhow::Result<String> {
    let (prefixes, ids): (Vec<_>, Vec<_>) = rooms
        .unwrap_or_default()
        .into_iter()
        .partition(|room| room.ends_with('*'));
    let token = NewToken {
        subject,
        room_ids: ids,
        room_prefixes: prefixes
            .iter()
            .map(|prefix| prefix.trim_end_matches('*').to_owned())
            .collect(),
        scope,
        info: None,
        max_members: None,
        audience: None,
        issuer: None,
        lifetime: Duration::from_secs(seconds),
    };
    auth::mint(secret, &token)
}
