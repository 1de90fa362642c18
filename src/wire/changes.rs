//! The feed.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::{Change, Changes, EndReason, Position};

/// A page of the feed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangesAnswer<'a> {
    changes: Vec<ChangeAnswer<'a>>,
    /// Where to go on; always usable.
    next: &'a str,
}

impl<'a> ChangesAnswer<'a> {
    /// As it was read.
    pub fn new(page: &'a Changes) -> Self {
        Self {
            changes: page.changes.iter().map(ChangeAnswer::new).collect(),
            next: page.next.as_str(),
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
    position: &'a str,
    /// `room_opened`, `joined`, `ended` or `room_closed`.
    kind: &'static str,
    room_id: &'a str,
    generation: i64,
    version: i64,
    user_id: Option<&'a str>,
    device_id: Option<&'a str>,
    epoch: Option<i64>,
    /// What the signer of the session's token, or the server that joined it, says of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<&'a Value>,
    reason: Option<&'static str>,
    /// How many members the room has after it.
    member_count: i32,
    /// Who removed somebody or closed the room, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    /// Why, in their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// On an `ended`: when the session was last heard of.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_ms: Option<i64>,
    at_ms: i64,
}

impl<'a> ChangeAnswer<'a> {
    fn new(change: &'a Change) -> Self {
        let session = change.session.as_ref();
        Self {
            position: change.position.as_str(),
            kind: change.kind.as_str(),
            room_id: change.room_id.as_str(),
            generation: change.generation,
            version: change.version,
            user_id: session.map(|session| session.user_id.as_str()),
            device_id: session.and_then(|session| session.device_id.name()),
            epoch: session.map(|session| session.epoch),
            info: session.and_then(|session| session.info.as_ref()),
            reason: change.reason.map(EndReason::as_str),
            member_count: change.member_count,
            by: change.decision.by(),
            note: change.decision.reason.as_deref(),
            last_seen_ms: change.last_seen_at.map(|at| at.timestamp_millis()),
            at_ms: change.at.timestamp_millis(),
        }
    }
}

/// The items of a page as server-sent events, each with its position as `id`; where the page has none but goes
/// on elsewhere, that alone, so that a reader who comes back need not look through what was left out again.
pub fn write_changes(page: &Changes, after: Option<&Position>) -> String {
    let mut text = String::new();
    for change in &page.changes {
        let body = change_json(change).expect("strings, numbers and JSON are JSON");
        let (id, event) = (change.position.as_str(), change.kind.as_str());
        write!(text, "id: {id}\nevent: {event}\ndata: {body}\n\n")
            .expect("a string takes whatever is written to it");
    }
    if page.changes.is_empty() && after != Some(&page.next) {
        write!(text, "id: {}\n\n", page.next.as_str())
            .expect("a string takes whatever is written to it");
    }
    text
}
