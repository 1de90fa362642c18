//! The feed.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{Change, Changes, EndReason};

/// A page of the feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangesAnswer<'a> {
    changes: Vec<ChangeAnswer<'a>>,
    /// Where to go on; always usable.
    next: String,
}

impl<'a> ChangesAnswer<'a> {
    /// As it was read.
    pub fn new(page: &'a Changes) -> Self {
        Self {
            changes: page.changes.iter().map(ChangeAnswer::new).collect(),
            next: page.next.to_string(),
        }
    }
}

/// A change as the feed shows it, and a webhook.
pub(super) fn change_json(change: &Change) -> Result<String, serde_json::Error> {
    serde_json::to_string(&ChangeAnswer::new(change))
}

/// One thing that happened.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Change)]
struct ChangeAnswer<'a> {
    position: String,
    /// `room_opened`, `joined`, `ended` or `room_closed`.
    kind: &'static str,
    room_id: &'a str,
    generation: i64,
    version: i64,
    user_id: Option<&'a str>,
    device_id: Option<&'a str>,
    epoch: Option<i64>,
    reason: Option<&'static str>,
    /// How many members the room has after it.
    member_count: i32,
    /// Who removed somebody or closed the room, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    /// Why, in their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    at_ms: i64,
}

impl<'a> ChangeAnswer<'a> {
    fn new(change: &'a Change) -> Self {
        let session = change.session.as_ref();
        Self {
            position: change.position.to_string(),
            kind: change.kind.as_str(),
            room_id: change.room_id.as_str(),
            generation: change.generation,
            version: change.version,
            user_id: session.map(|session| session.user_id.as_str()),
            device_id: session.and_then(|session| session.device_id.name()),
            epoch: session.map(|session| session.epoch),
            reason: change.reason.map(EndReason::as_str),
            member_count: change.member_count,
            by: change.decision.by(),
            note: change.decision.reason.as_deref(),
            at_ms: change.at.timestamp_millis(),
        }
    }
}
