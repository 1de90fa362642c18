//! Event streams and sockets.

use std::time::Duration;

use clap::Args;

use super::value::{millis, on_or_off, whole};
use crate::stream::LiveSettings;

/// How changes reach those who subscribe.
#[derive(Debug, Clone, Args)]
pub struct LiveArgs {
    /// How long a change can stay unseen by subscribers where no hint tells of it
    #[arg(long = "poll-ms", env = "LEASEHOLD_POLL_MS", default_value = "1s",
          value_parser = millis("LEASEHOLD_POLL_MS", 50..=60_000))]
    pub poll: Duration,

    /// How often an event stream or socket without news shows that it lives
    #[arg(long = "keep-alive-ms", env = "LEASEHOLD_KEEP_ALIVE_MS", default_value = "15s",
          value_parser = millis("LEASEHOLD_KEEP_ALIVE_MS", 100..=300_000))]
    pub keep_alive: Duration,

    /// The most subscriptions to rooms, by event streams and sockets, that this instance serves at a time
    #[arg(long, env = "LEASEHOLD_MAX_SUBSCRIBERS", default_value = "20000",
          value_parser = whole::<usize>("LEASEHOLD_MAX_SUBSCRIBERS", 0..=1_000_000))]
    pub max_subscribers: usize,

    /// The most of them for one view of one room, or for one lobby
    #[arg(long, env = "LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM", default_value = "5000",
          value_parser = whole::<usize>("LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM", 0..=1_000_000))]
    pub max_subscribers_per_room: usize,

    /// The most of them for one subject, for server keys, or without authentication for one address;
    /// three quarters of all if left out
    #[arg(long, env = "LEASEHOLD_MAX_SUBSCRIBERS_PER_CLIENT",
          value_parser = whole::<usize>("LEASEHOLD_MAX_SUBSCRIBERS_PER_CLIENT", 1..=1_000_000))]
    pub max_subscribers_per_client: Option<usize>,

    /// Whether instances tell each other of changes by NOTIFY; without, the poll finds them
    #[arg(long, env = "LEASEHOLD_HINTS", default_value = "on", value_parser = on_or_off("LEASEHOLD_HINTS"),
          action = clap::ArgAction::Set)]
    pub hints: bool,
}

impl LiveArgs {
    /// How subscriptions are served, where there may be so many.
    pub fn settings(&self, max_subscribers: usize) -> LiveSettings {
        LiveSettings {
            poll: self.poll,
            max_subscribers,
            max_subscribers_per_room: self.max_subscribers_per_room,
            // A proxy or a company may be one address to an instance, so no more is kept from it
            // than others need to get in.
            max_subscribers_per_client: self
                .max_subscribers_per_client
                .unwrap_or((max_subscribers * 3).div_ceil(4)),
        }
    }
}
