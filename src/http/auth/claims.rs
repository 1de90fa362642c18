//! What a token says, once its signature is right: whether it holds now and here, and what it grants.

use std::sync::Once;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::access::{Grant, MAX_INFO_BYTES, RoomPattern, Scope};
use crate::domain::UserId;
use crate::wire::holds_nul;

/// The claims of a token.
pub(crate) type Claims = Map<String, Value>;

/// Where tokens end that claim to hold for longer: in the year 5138. Beyond it seconds lose their fraction.
const LATEST: f64 = 1e11;

/// What every token must say, whoever signed it.
#[derive(Debug, Clone)]
pub struct ClaimRules {
    /// A token must be for one of them; for anybody where there is none.
    pub audiences: Vec<String>,
    /// A token must be of one of them; of anybody where there is none.
    pub issuers: Vec<String>,
    /// By how much the clocks of this host and of the signer may differ.
    pub leeway: Duration,
    /// Whether what ends in `*` in the claim `rooms` is a prefix. Otherwise it is an id as any other.
    pub room_patterns: bool,
}

impl Default for ClaimRules {
    fn default() -> Self {
        Self {
            audiences: Vec::new(),
            issuers: Vec::new(),
            leeway: Duration::from_secs(10),
            room_patterns: true,
        }
    }
}

impl ClaimRules {
    /// What the claims grant, and when that ends, in Unix time and with the leeway.
    ///
    /// # Errors
    /// A sentence that says why they do not hold, and nothing of what they say.
    pub(crate) fn read(
        &self,
        claims: &Claims,
        now: Duration,
    ) -> Result<(Grant, Duration), &'static str> {
        let ends = self.holds(claims, now)?;
        if !names_one(claims.get("aud"), &self.audiences) {
            return Err("the token's aud names no audience of this service");
        }
        if !names_one(claims.get("iss"), &self.issuers) {
            return Err("the token's iss is no issuer that this service trusts");
        }
        Ok((self.grant(claims)?, ends))
    }

    /// When it ends. An `iat` in the future is none of RFC 7519's reasons to refuse a token: that is `nbf`.
    fn holds(&self, claims: &Claims, now: Duration) -> Result<Duration, &'static str> {
        let not_a_time = "the token's exp, nbf and iat must be numbers of seconds since 1970";
        let instant = |claim| instant(claims.get(claim)).ok_or(not_a_time);
        let (exp, nbf) = (instant("exp")?, instant("nbf")?);
        instant("iat")?;
        let ends = exp.ok_or("the token must have an exp")? + self.leeway;
        if now >= ends {
            return Err("the token has expired");
        }
        if nbf.is_some_and(|nbf| now + self.leeway < nbf) {
            return Err("the token does not hold yet");
        }
        Ok(ends)
    }

    fn grant(&self, claims: &Claims) -> Result<Grant, &'static str> {
        let subject = text(claims.get("sub")).and_then(|sub| UserId::parse(sub).ok());
        let scopes = match given(claims, "scope") {
            None => vec![Scope::Member],
            // Other words may be meant for other services.
            Some(Value::String(words)) => {
                words.split_whitespace().filter_map(Scope::parse).collect()
            }
            Some(_) => return Err("the token's scope must be a string"),
        };
        Ok(Grant {
            subject: subject.ok_or("the token's sub must be a valid userId")?,
            scopes,
            rooms: self.rooms(claims)?,
            info: info(claims)?,
            max_members: given(claims, "maxMembers").map(capacity).transpose()?,
        })
    }

    /// All that the three claims name; `None` where there is none of them.
    fn rooms(&self, claims: &Claims) -> Result<Option<Vec<RoomPattern>>, &'static str> {
        let ids = list(claims, "roomIds", |id| RoomPattern::Exact(id.to_owned()))?;
        let prefixes = list(claims, "roomPrefixes", |prefix| {
            RoomPattern::Prefix(prefix.to_owned())
        })?;
        let rooms = list(claims, "rooms", |room| match self.room_patterns {
            true => RoomPattern::parse(room),
            false => RoomPattern::Exact(room.to_owned()),
        })?;
        let is_prefix = |room: &RoomPattern| matches!(room, RoomPattern::Prefix(_));
        if rooms.iter().flatten().any(is_prefix) {
            warn_of_patterns();
        }
        let named = [ids, prefixes, rooms];
        let is_named = named.iter().any(Option::is_some);
        Ok(is_named.then(|| named.into_iter().flatten().flatten().collect()))
    }
}

/// Once: whether such a token means what it says only its signer knows.
fn warn_of_patterns() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "a token has a room that ends in * in its rooms, and opens all that begin like it; if that can \
             be the id of a room, sign it as roomIds, and if not, as roomPrefixes, and set \
             LEASEHOLD_JWT_ROOM_PATTERNS=off"
        );
    });
}

fn list(
    claims: &Claims,
    name: &str,
    reading: impl Fn(&str) -> RoomPattern,
) -> Result<Option<Vec<RoomPattern>>, &'static str> {
    let Some(list) = given(claims, name) else {
        return Ok(None);
    };
    let items = list.as_array().and_then(|items| {
        let items = items.iter().map(|item| item.as_str().map(&reading));
        items.collect()
    });
    let items = items.ok_or("the token's rooms, roomIds and roomPrefixes must be lists of strings");
    items.map(Some)
}

/// Null is how some signers leave a claim out.
fn given<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    claims.get(name).filter(|value| !value.is_null())
}

fn text(claim: Option<&Value>) -> Option<String> {
    claim?.as_str().map(str::to_owned)
}

/// A `NumericDate`, which may have a fraction: `Some(None)` where it is left out, `None` where it is none.
fn instant(claim: Option<&Value>) -> Option<Option<Duration>> {
    match claim {
        None | Some(Value::Null) => Some(None),
        Some(claim) => {
            let seconds = claim.as_f64()?.min(LATEST);
            Duration::try_from_secs_f64(seconds).ok().map(Some)
        }
    }
}

/// Whether the claim, a string or a list of them, has one of those that are asked for, if any are.
fn names_one(claim: Option<&Value>, wanted: &[String]) -> bool {
    let is_wanted = |value: &Value| {
        let value = value.as_str();
        value.is_some_and(|value| wanted.iter().any(|wanted| wanted == value))
    };
    wanted.is_empty()
        || match claim {
            Some(Value::Array(values)) => values.iter().any(is_wanted),
            Some(value) => is_wanted(value),
            None => false,
        }
}

fn info(claims: &Claims) -> Result<Option<Value>, &'static str> {
    let Some(info) = given(claims, "info") else {
        return Ok(None);
    };
    if !info.is_object() || info.to_string().len() > MAX_INFO_BYTES {
        return Err("the token's info must be a JSON object of at most 4096 bytes");
    }
    if holds_nul(info) {
        return Err("the token's info must not contain the character U+0000");
    }
    Ok(Some(info.clone()))
}

fn capacity(claim: &Value) -> Result<i32, &'static str> {
    let members = claim.as_i64().and_then(|n| i32::try_from(n).ok());
    members
        .filter(|members| *members >= 1)
        .ok_or("the token's maxMembers must be a whole number from 1 to 2147483647")
}

/// Now, by this host's clock: tokens are judged by it, leases never.
#[expect(
    clippy::disallowed_methods,
    reason = "the end of a token is an instant of its signer's clock, not of the database's"
)]
pub(crate) fn unix_time() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 is one that was never set; no token holds by it that has an end.
    now.unwrap_or(Duration::from_secs(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_signer_says_of_the_holder_is_granted() {
        let rules = ClaimRules::default();
        let now = Duration::from_secs(1_000);
        let claims = json!({
            "sub": "alice", "exp": 1_000.5, "info": { "name": "Alice" }, "maxMembers": 5,
            "roomIds": ["*"], "roomPrefixes": ["*"], "rooms": null,
        });
        let (grant, ends) = rules.read(claims.as_object().unwrap(), now).unwrap();
        assert_eq!(ends, Duration::from_millis(1_010_500));
        assert_eq!(grant.info, Some(json!({ "name": "Alice" })));
        assert_eq!(grant.max_members, Some(5));
        let star = || "*".to_owned();
        assert_eq!(
            grant.rooms,
            Some(vec![
                RoomPattern::Exact(star()),
                RoomPattern::Prefix(star())
            ])
        );
        let bare = json!({ "sub": "alice", "exp": 1_000, "info": null, "maxMembers": null });
        let (grant, _) = rules.read(bare.as_object().unwrap(), now).unwrap();
        assert_eq!(
            (grant.rooms, grant.info, grant.max_members),
            (None, None, None)
        );
    }
}
