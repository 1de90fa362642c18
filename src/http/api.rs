//! What the handlers share.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::socket::Holders;
use super::{Drain, Pages};
use crate::presence::Presence;
use crate::stream::Live;
use crate::telemetry::Metrics;
use crate::wake::Wakes;
use crate::webhooks::Webhooks;
use crate::wire::FieldRules;

/// What the handlers share.
pub struct Api {
    /// For every question.
    pub presence: Presence,
    /// For who wants to hear of changes.
    pub live: Live,
    /// For who waits for the feed to grow.
    pub wakes: Wakes,
    /// Which addresses are delivered to, and where they may be.
    pub webhooks: Webhooks,
    /// What this instance's own beats are known by.
    pub pulse_key: String,
    /// What is counted here.
    pub metrics: Metrics,
    /// What the fields of a request may be.
    pub fields: FieldRules,
    /// The most items of a batch.
    pub max_batch_items: usize,
    /// The largest message of a socket, in bytes.
    pub max_message_bytes: usize,
    /// Which pages there are.
    pub pages: Pages,
    /// Which socket holds which session.
    pub holders: Holders,
    /// How often a stream without news shows that it lives.
    pub keep_alive: Duration,
    /// How long a peer may take nothing of what it is sent.
    pub stall_timeout: Duration,
    /// How often the feed is read where nothing wakes its reader.
    pub poll: Duration,
    /// How often the sweep runs; `None` where others run it.
    pub sweep_interval: Option<Duration>,
    /// Whether this instance is about to stop.
    pub drain: Drain,
    /// The longest that a stream waits for its first snapshot.
    pub timeout: Duration,
    /// Done when the service stops: what would go on for ever ends.
    pub stop: CancellationToken,
}
