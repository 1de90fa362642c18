//! A request to be in a room, and what comes of it.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{DeviceId, Lease, NoPlace, RoomId, StaleReason, UserId};

/// What a join does where the user is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfPresent {
    /// Take the place of the session on the same device.
    #[default]
    Replace,
    /// Change nothing where the user has a live session on another device.
    Reject,
}

impl IfPresent {
    /// The word that SQL uses for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Reject => "reject",
        }
    }
}

/// A request to be in a room.
#[derive(Debug, Clone)]
pub struct Join {
    /// The room to be in.
    pub room_id: RoomId,
    /// Who.
    pub user_id: UserId,
    /// On which device; a session that is there already on it is replaced.
    pub device_id: DeviceId,
    /// What it lives on from now on.
    pub lease: Lease,
    /// What others are shown beside the member.
    pub metadata: Option<Value>,
    /// Where the member's pointer is.
    pub cursor: Option<Value>,
    /// What to do where the user is there already.
    pub if_present: IfPresent,
    /// What the caller vouches for, shown beside the metadata.
    pub info: Option<Value>,
    /// What its caller calls this join: asked again, it is not another one.
    pub join_id: Option<String>,
    /// How many members the room may have for this join to be granted, beside [`JoinLimits`].
    pub capacity: Option<i32>,
}

/// How many there may be; a join that would exceed one is refused. No limit where `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct JoinLimits {
    /// Members of a room.
    pub members_per_room: Option<i32>,
    /// Devices of a member in a room.
    pub devices_per_member: Option<i32>,
    /// Rooms in the database; joins that open rooms at the same moment may exceed it by their number.
    pub rooms: Option<i32>,
}

/// A session that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Higher than that of every earlier join of this user in this room.
    pub epoch: i64,
    /// Which lifetime of the room it belongs to.
    pub generation: i64,
    /// Since when the user has been in the room, over reconnects.
    pub arrived_at: DateTime<Utc>,
    /// When the lease ends unless it is renewed.
    pub lease_expires_at: DateTime<Utc>,
    /// The instant of the join.
    pub as_of: DateTime<Utc>,
}

/// A session that is in the way of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// On which device.
    pub device_id: DeviceId,
    /// The number of its join.
    pub epoch: i64,
    /// When its lease ends unless it is renewed.
    pub lease_expires_at: DateTime<Utc>,
}

/// A block that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// When it ends.
    pub until: DateTime<Utc>,
    /// The instant at which it was found.
    pub as_of: DateTime<Utc>,
}

/// Why a join changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinRefusal {
    /// [`IfPresent::Reject`], and the user has a live session on another device: the newest of them.
    AlreadyPresent(Elsewhere),
    /// The user, or everybody, was put out of the room until then.
    Blocked(Blocked),
    /// There is none.
    NoPlace(NoPlace),
    /// It was asked again, and the session that it had begun is over.
    Over(StaleReason),
}

/// What became of a join.
pub type JoinOutcome = Result<Joined, JoinRefusal>;
