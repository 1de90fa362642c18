//! How many there may be, and how large.

use clap::Args;

use super::value::whole;
use crate::domain::JoinLimits;

/// Bounds of rooms and of requests.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// The most members of one room
    #[arg(long, env = "LEASEHOLD_MAX_MEMBERS_PER_ROOM", default_value = "10000",
          value_parser = whole::<i32>("LEASEHOLD_MAX_MEMBERS_PER_ROOM", 1..=i32::MAX))]
    pub max_members_per_room: i32,

    /// The most devices of one member in one room
    #[arg(long, env = "LEASEHOLD_MAX_DEVICES_PER_MEMBER", default_value = "16",
          value_parser = whole::<i32>("LEASEHOLD_MAX_DEVICES_PER_MEMBER", 1..=10_000))]
    pub max_devices_per_member: i32,

    /// The most rooms at a time; unlimited if left out
    #[arg(long, env = "LEASEHOLD_MAX_ROOMS",
          value_parser = whole::<i32>("LEASEHOLD_MAX_ROOMS", 1..=i32::MAX))]
    pub max_rooms: Option<i32>,

    /// The largest metadata, in bytes of JSON
    #[arg(long, env = "LEASEHOLD_MAX_METADATA_BYTES", default_value = "4096",
          value_parser = whole::<usize>("LEASEHOLD_MAX_METADATA_BYTES", 2..=1_048_576))]
    pub max_metadata_bytes: usize,

    /// The largest cursor, in bytes of JSON
    #[arg(long, env = "LEASEHOLD_MAX_CURSOR_BYTES", default_value = "1024",
          value_parser = whole::<usize>("LEASEHOLD_MAX_CURSOR_BYTES", 2..=1_048_576))]
    pub max_cursor_bytes: usize,

    /// The largest body of a request about one member, in bytes
    #[arg(long, env = "LEASEHOLD_MAX_BODY_BYTES", default_value = "16384",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BODY_BYTES", 1_024..=16_777_216))]
    pub max_body_bytes: usize,

    /// The most items in one call of /heartbeats or /leaves
    #[arg(long, env = "LEASEHOLD_MAX_BATCH_ITEMS", default_value = "1000",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BATCH_ITEMS", 1..=100_000))]
    pub max_batch_items: usize,

    /// The largest body of a call of /heartbeats or /leaves, in bytes
    #[arg(long, env = "LEASEHOLD_MAX_BATCH_BYTES", default_value = "4194304",
          value_parser = whole::<usize>("LEASEHOLD_MAX_BATCH_BYTES", 1_024..=1_073_741_824))]
    pub max_batch_bytes: usize,
}

impl LimitArgs {
    /// What joins are measured by.
    pub fn joins(&self) -> JoinLimits {
        JoinLimits {
            members_per_room: Some(self.max_members_per_room),
            devices_per_member: Some(self.max_devices_per_member),
            rooms: self.max_rooms,
        }
    }
}
