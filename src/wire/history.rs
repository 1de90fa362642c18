//! What was: the lifetimes of a room, and sessions.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{EndReason, Lifetime, Outage, PastSession, RoomId};

/// The lives of a room.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationsAnswer<'a> {
    room_id: &'a str,
    /// Newest first.
    generations: Vec<GenerationAnswer>,
    next: Option<String>,
}

impl<'a> GenerationsAnswer<'a> {
    /// A page, with the page token of the next.
    pub fn new(room_id: &'a RoomId, lifetimes: &[Lifetime], next: Option<String>) -> Self {
        Self {
            room_id: room_id.as_str(),
            generations: lifetimes.iter().map(GenerationAnswer::new).collect(),
            next,
        }
    }
}

/// One life of a room.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Generation)]
struct GenerationAnswer {
    generation: i64,
    opened_at_ms: i64,
    /// Null while a member lives.
    closed_at_ms: Option<i64>,
    /// How the last member ended: `left`, `expired`, `removed`, `room_closed` or `moved`.
    close_reason: Option<&'static str>,
    /// The most persons at a time.
    peak_members: Option<i32>,
    /// Sessions that ended until then may be purged; absent where all are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    purged_until_ms: Option<i64>,
}

impl GenerationAnswer {
    fn new(lifetime: &Lifetime) -> Self {
        Self {
            generation: lifetime.generation,
            opened_at_ms: lifetime.opened_at.timestamp_millis(),
            closed_at_ms: lifetime.closed_at.map(|at| at.timestamp_millis()),
            close_reason: lifetime.close_reason.map(EndReason::as_str),
            peak_members: lifetime.peak_members,
            purged_until_ms: lifetime.purged_until.map(|at| at.timestamp_millis()),
        }
    }
}

/// Times in which nobody served.
#[derive(Debug, Serialize, ToSchema)]
pub struct OutagesAnswer {
    /// Newest first.
    outages: Vec<OutageAnswer>,
    next: Option<String>,
}

impl OutagesAnswer {
    /// A page, with the page token of the next.
    pub fn new(outages: &[Outage], next: Option<String>) -> Self {
        let outages = outages.iter().map(|outage| OutageAnswer {
            began_at_ms: outage.began_at.timestamp_millis(),
            ended_at_ms: outage.ended_at.timestamp_millis(),
            paused_ms: outage.paused_ms,
        });
        Self {
            outages: outages.collect(),
            next,
        }
    }
}

/// A time in which no instance served, or in which the database's clock jumped.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Outage)]
struct OutageAnswer {
    /// The last sign of an instance before; after `endedAtMs` where the clock was set back.
    began_at_ms: i64,
    /// The first sign after.
    ended_at_ms: i64,
    /// For how long leases stood still.
    paused_ms: i64,
}

/// What became of a person's history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErasedAnswer {
    /// How many sessions are nobody's now.
    pub sessions_erased: i32,
}

/// Sessions that were, or still are.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionsAnswer<'a> {
    sessions: Vec<PastSessionAnswer<'a>>,
    next: Option<String>,
}

impl<'a> SessionsAnswer<'a> {
    /// A page, with the page token of the next.
    pub fn new(sessions: &'a [PastSession], next: Option<String>) -> Self {
        Self {
            sessions: sessions.iter().map(PastSessionAnswer::new).collect(),
            next,
        }
    }
}

/// One epoch's life.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PastSession)]
struct PastSessionAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    user_id: &'a str,
    /// Null for the unnamed device.
    device_id: Option<&'a str>,
    epoch: i64,
    joined_at_ms: i64,
    /// Null while it lives.
    ended_at_ms: Option<i64>,
    /// `left`, `expired`, `superseded`, `removed`, `room_closed` or `moved`.
    end_reason: Option<&'static str>,
    /// The last heartbeat, or the join.
    last_seen_ms: Option<i64>,
    /// Who removed it or closed the room, where somebody did and said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    /// Why, in their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> PastSessionAnswer<'a> {
    fn new(session: &'a PastSession) -> Self {
        Self {
            room_id: session.room_id.as_str(),
            generation: session.generation,
            user_id: session.user_id.as_str(),
            device_id: session.device_id.name(),
            epoch: session.epoch,
            joined_at_ms: session.joined_at.timestamp_millis(),
            ended_at_ms: session.ended_at.map(|at| at.timestamp_millis()),
            end_reason: session.end_reason.map(EndReason::as_str),
            last_seen_ms: session.last_seen_at.map(|at| at.timestamp_millis()),
            by: session.decision.by(),
            reason: session.decision.reason.as_deref(),
        }
    }
}
