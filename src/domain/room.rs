//! Rooms and who is in them, as they were at one instant.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::value::RawValue;

use super::{DeviceId, RoomId, Status, UserId};

/// A room as it was at one instant.
#[derive(Debug)]
pub struct Participants {
    /// The instant, of the database's clock.
    pub as_of: DateTime<Utc>,
    /// `None` where the room does not exist: then there are no participants either.
    pub room: Option<RoomHead>,
    /// The members in order of arrival.
    pub participants: Vec<Participant>,
}

/// Which lifetime of the room, and how many changes of membership it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomHead {
    /// The number of the lifetime.
    pub generation: i64,
    /// The number of changes in it.
    pub version: i64,
    /// When the lifetime began.
    pub opened_at: DateTime<Utc>,
    /// Whether nobody is let in who is not inside.
    pub is_locked: bool,
}

/// A member, as others see them.
#[derive(Debug)]
pub struct Participant {
    /// Who.
    pub user_id: UserId,
    /// The room's version at which the member arrived: their place in the list.
    pub arrival: i64,
    /// Since when they have been here, over reconnects.
    pub arrived_at: DateTime<Utc>,
    /// Newest first, never empty.
    pub sessions: Vec<LiveSession>,
}

impl Participant {
    /// The best of their sessions: one connected device is enough.
    pub fn status(&self) -> Status {
        let is_connected = |session: &LiveSession| session.status == Status::Connected;
        match self.sessions.iter().any(is_connected) {
            true => Status::Connected,
            false => Status::Reconnecting,
        }
    }

    /// When any of their devices was last heard of.
    pub fn last_seen_at(&self) -> DateTime<Utc> {
        let first = self.sessions[0].last_seen_at;
        let sessions = self.sessions.iter();
        sessions.fold(first, |last, session| last.max(session.last_seen_at))
    }
}

impl LiveSession {
    /// When it starts to look lost, unless it is heard of before: one and a half of its intervals.
    pub fn reconnecting_after(&self) -> DateTime<Utc> {
        self.last_seen_at + TimeDelta::milliseconds(i64::from(self.heartbeat_ms) * 3 / 2)
    }
}

/// A session that holds a lease.
#[derive(Debug)]
pub struct LiveSession {
    /// On which device.
    pub device_id: DeviceId,
    /// The number of its join.
    pub epoch: i64,
    /// The instant of its join.
    pub joined_at: DateTime<Utc>,
    /// The last heartbeat, or the join.
    pub last_seen_at: DateTime<Utc>,
    /// How often it is to be heard of, in milliseconds.
    pub heartbeat_ms: u32,
    /// When the lease ends unless it is renewed.
    pub lease_expires_at: DateTime<Utc>,
    /// What its heartbeats say of its connection.
    pub status: Status,
    /// Its pointer.
    pub cursor: Option<Box<RawValue>>,
    /// What its join or a heartbeat said of it.
    pub metadata: Option<Box<RawValue>>,
    /// What the caller of its join vouched for.
    pub info: Option<Box<RawValue>>,
}

/// Which part of a room somebody follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// Everybody who is there.
    People,
    /// How many they are.
    Count,
}

/// How many were in a room at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomCount {
    /// The instant, of the database's clock.
    pub as_of: DateTime<Utc>,
    /// The number of the lifetime; `None` where the room does not exist.
    pub generation: Option<i64>,
    /// The number of changes in it.
    pub version: Option<i64>,
    /// Live persons.
    pub members: u32,
}

/// A room with a live member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSummary {
    /// The room.
    pub room_id: RoomId,
    /// The number of its lifetime.
    pub generation: i64,
    /// The number of changes in it.
    pub version: i64,
    /// When the lifetime began.
    pub opened_at: DateTime<Utc>,
    /// Whether nobody is let in who is not inside.
    pub is_locked: bool,
    /// Live members.
    pub member_count: i32,
}

/// A room that a user is in, with the newest of their sessions there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    /// The room.
    pub room_id: RoomId,
    /// The number of its lifetime.
    pub generation: i64,
    /// Of the newest session.
    pub epoch: i64,
    /// The instant of its join.
    pub joined_at: DateTime<Utc>,
    /// The last heartbeat, or the join.
    pub last_seen_at: DateTime<Utc>,
    /// When the lease ends unless it is renewed.
    pub lease_expires_at: DateTime<Utc>,
    /// What the user's heartbeats say of their connection: the best of their sessions.
    pub status: Status,
}

/// Where somebody is, or was last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Who.
    pub user_id: UserId,
    /// In order of the room's id.
    pub rooms: Vec<Whereabouts>,
    /// When they were last heard of, as far as the history is kept.
    pub last_seen_at: Option<DateTime<Utc>>,
}

impl Located {
    /// In no room, and never seen.
    pub fn nowhere(user_id: UserId) -> Self {
        Self {
            user_id,
            rooms: Vec::new(),
            last_seen_at: None,
        }
    }
}
