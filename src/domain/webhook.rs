//! Webhooks: what an endpoint is, how it stands, and what its owner is to do.

use chrono::{DateTime, Utc};

use super::word::words;
use super::{ChangesFilter, Position, RoomId, WebhookName, WebhookSecret};

words! {
    /// Whether an endpoint is delivered to.
    WebhookStatus {
        /// It is.
        Active => "active",
        /// Somebody switched it off.
        Disabled => "disabled",
        /// A delivery failed for too long.
        Failed => "failed",
        /// It answered 410.
        Gone => "gone",
        /// Its position was purged, or is of another history.
        Expired => "expired",
    }
}

/// A place in the feed to begin at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookPlace {
    /// Now.
    Latest,
    /// The oldest kept.
    Oldest,
    /// After this position.
    After(Position),
}

/// An endpoint as somebody wants it.
#[derive(Debug, Clone)]
pub struct WebhookOrder {
    /// Its name.
    pub name: WebhookName,
    /// Where to.
    pub url: String,
    /// Left out, the one that is there stays.
    pub secret: Option<WebhookSecret>,
    /// Which changes.
    pub filter: ChangesFilter,
    /// Where a new one begins.
    pub begin: WebhookPlace,
}

/// What came of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookChange {
    /// It is new.
    Created,
    /// It was there.
    Changed,
}

/// Why an endpoint cannot be as it was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookUnset {
    /// A new one needs a secret.
    NoSecret,
    /// There is no endpoint of this name.
    Unknown,
    /// The text is not a position.
    NoPosition,
    /// The history after the position is gone, or another one's.
    PositionExpired,
}

/// How an endpoint stands. Without its secrets.
#[derive(Debug, Clone)]
pub struct WebhookState {
    /// Its name.
    pub name: WebhookName,
    /// Where to.
    pub url: String,
    /// Which changes.
    pub filter: ChangesFilter,
    /// Whether it is delivered to.
    pub status: WebhookStatus,
    /// Up to where it was read for; `None` before the oldest kept.
    pub position: Option<Position>,
    /// Deliveries that failed since the last that did not.
    pub failures: i64,
    /// When one was last taken.
    pub last_success_at: Option<DateTime<Utc>>,
    /// When one last failed.
    pub last_failure_at: Option<DateTime<Utc>>,
    /// Why.
    pub last_failure: Option<String>,
    /// Until when a secret that was replaced signs along.
    pub previous_secret_until: Option<DateTime<Utc>>,
    /// Deliveries that wait.
    pub pending_deliveries: i64,
    /// Changes in them.
    pub pending_changes: i64,
    /// Since when the oldest of them waits.
    pub oldest_pending_at: Option<DateTime<Utc>>,
}

/// An endpoint that this instance came to own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTerm {
    /// Which.
    pub name: WebhookName,
    /// Numbers its owners.
    pub epoch: i64,
}

/// What the owner is to do, as of its last renewal.
#[derive(Debug, Clone)]
pub struct Due {
    /// Of the endpoint's settings.
    pub revision: i64,
    /// Where to.
    pub url: String,
    /// What signs: the current one, and the one before while it still does.
    pub secrets: Vec<WebhookSecret>,
    /// Which changes.
    pub filter: ChangesFilter,
    /// Up to where the feed was read for it.
    pub position: Option<Position>,
}

/// Changes of one room that follow one another, as JSON separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whose.
    pub room_id: RoomId,
    /// The changes.
    pub items: String,
    /// How many.
    pub changes: i32,
}

/// A delivery that is to be sent now.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    /// Its place in the outbox.
    pub seq: i64,
    /// The same for every try.
    pub id: String,
    /// Whose changes.
    pub room_id: RoomId,
    /// The changes as JSON, separated by commas.
    pub items: String,
    /// The database's clock, for the signature.
    pub as_of: DateTime<Utc>,
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Its place in the outbox.
    pub seq: i64,
    /// Why it failed; `None` where it was taken.
    pub failure: Option<String>,
    /// How long the receiver wants it to wait, in milliseconds.
    pub retry_ms: Option<i64>,
}

/// How the endpoints of one status stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebhookFigures {
    /// The status.
    pub status: WebhookStatus,
    /// How many.
    pub endpoints: i64,
    /// Deliveries that wait for them.
    pub pending: i64,
    /// For how long the oldest.
    pub lag_seconds: f64,
}
