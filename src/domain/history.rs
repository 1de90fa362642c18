//! What was: lifetimes of rooms, and sessions.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Decision, DeviceId, EndReason, RoomId, UserId};

/// One lifetime of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetime {
    /// Its number.
    pub generation: i64,
    /// The instant of the first join.
    pub opened_at: DateTime<Utc>,
    /// `None` while a member lives.
    pub closed_at: Option<DateTime<Utc>>,
    /// How the last session ended; `None` while a member lives.
    pub close_reason: Option<EndReason>,
    /// The most members at a time.
    pub peak_members: Option<i32>,
    /// Sessions that ended until then may be purged; `None` where all are kept.
    pub purged_until: Option<DateTime<Utc>>,
}

/// A time in which no instance served, or the database's clock jumped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The place among them.
    pub number: i64,
    /// The last beat before; after the end where the clock was set back.
    pub began_at: DateTime<Utc>,
    /// The first beat after.
    pub ended_at: DateTime<Utc>,
    /// For how many milliseconds leases stood still.
    pub paused_ms: i64,
}

/// For how long history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// After the end of a session.
    pub older_than: Duration,
    /// And so much longer where a webhook has yet to deliver it.
    pub webhooks_wait: Duration,
}

impl Retention {
    /// So long after the end of a session, and a week longer for webhooks.
    pub fn of(older_than: Duration) -> Self {
        Self {
            older_than,
            webhooks_wait: Duration::from_hours(7 * 24),
        }
    }
}

/// What an erasure did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// How many sessions are nobody's now.
    pub sessions: i32,
    /// The room of each session that it ended.
    pub room_ids: Vec<RoomId>,
}

/// One epoch's life, over or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSession {
    /// The room.
    pub room_id: RoomId,
    /// The number of the room's lifetime.
    pub generation: i64,
    /// Whose.
    pub user_id: UserId,
    /// On which device.
    pub device_id: DeviceId,
    /// The number of the join.
    pub epoch: i64,
    /// The instant of the join.
    pub joined_at: DateTime<Utc>,
    /// `None` while it lives.
    pub ended_at: Option<DateTime<Utc>>,
    /// `None` while it lives.
    pub end_reason: Option<EndReason>,
    /// Who ended it and why, where somebody did and said so.
    pub decision: Decision,
    /// The last heartbeat, or the join; `None` where the row of a live session is just being replaced.
    pub last_seen_at: Option<DateTime<Utc>>,
    /// The room's version at the join: the place within a lifetime.
    pub joined_version: i64,
    /// The place among joins of the same instant.
    pub joined_event_id: i64,
}

/// Of what is listed, that which was under way at some instant of `from` to `to`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Period {
    /// From the oldest where `None`.
    pub from: Option<DateTime<Utc>>,
    /// To the newest where `None`.
    pub to: Option<DateTime<Utc>>,
}

/// Where a page of a user's sessions continues: the last one that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinPlace {
    /// The instant of its join.
    pub joined_at: DateTime<Utc>,
    /// The place among joins of the same instant.
    pub event_id: i64,
}
