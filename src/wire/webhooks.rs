//! Endpoints of webhooks: what an admin sends, and how they stand.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::InvalidRequest;
use crate::domain::{
    ChangeKind, ChangesFilter, InvalidPosition, Position, RoomId, WebhookName, WebhookOrder,
    WebhookPlace, WebhookSecret, WebhookState,
};

/// The longest address, in bytes.
const MAX_URL_BYTES: usize = 2_048;

/// An endpoint as it is to be.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookBody {
    /// Where deliveries are sent: `https://` or `http://`, without a user or a fragment.
    #[schema(max_length = 2048, required, nullable = false)]
    url: Option<String>,
    /// `whsec_` and the base64 of 24 to 64 random bytes; left out, that of the endpoint stays.
    #[schema(nullable = false)]
    secret: Option<String>,
    /// Only changes of this room.
    #[schema(min_length = 1, max_length = 256)]
    room: Option<String>,
    /// Only changes of rooms whose ids start so; not beside `room`.
    #[schema(max_length = 256)]
    prefix: Option<String>,
    /// Only changes of these kinds: `room_opened`, `joined`, `ended`, `room_closed`.
    #[schema(min_items = 1)]
    kinds: Option<Vec<String>>,
    /// Where a new endpoint begins: `latest` (also if left out), `oldest` (kept), or a position of the feed.
    #[schema(nullable = false)]
    after: Option<String>,
}

impl WebhookBody {
    /// The order that it is.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn read(self, name: WebhookName) -> Result<WebhookOrder, InvalidRequest> {
        let url = self
            .url
            .ok_or_else(|| InvalidRequest::new("url is required"))?;
        if url.len() > MAX_URL_BYTES || url.contains('\0') {
            return Err(InvalidRequest::new(format!(
                "url must be at most {MAX_URL_BYTES} bytes"
            )));
        }
        if self.room.is_some() && self.prefix.is_some() {
            return Err(InvalidRequest::new(
                "room and prefix exclude each other: send one of them",
            ));
        }
        let secret = self.secret.as_deref().map(WebhookSecret::parse);
        Ok(WebhookOrder {
            name,
            url,
            secret: secret
                .transpose()
                .map_err(|error| InvalidRequest::new(error.to_string()))?,
            filter: ChangesFilter {
                room_id: self.room.map(room).transpose()?,
                prefix: self.prefix.map(prefix).transpose()?,
                kinds: self.kinds.map(kinds).transpose()?,
            },
            begin: self.after.map_or(Ok(WebhookPlace::Latest), webhook_place)?,
        })
    }
}

fn room(id: String) -> Result<RoomId, InvalidRequest> {
    RoomId::parse(id).map_err(|_| {
        InvalidRequest::new("room must be 1 to 256 characters without control characters")
    })
}

fn prefix(text: String) -> Result<String, InvalidRequest> {
    // As an id but for its length: an empty one is all rooms.
    if text.is_empty() || RoomId::parse(text.clone()).is_ok() {
        return Ok(text);
    }
    Err(InvalidRequest::new(
        "prefix must be at most 256 characters without control characters",
    ))
}

fn kinds(words: Vec<String>) -> Result<Vec<ChangeKind>, InvalidRequest> {
    let kinds: Result<Vec<ChangeKind>, _> = words.iter().map(|word| word.parse()).collect();
    kinds.ok().filter(|kinds| !kinds.is_empty()).ok_or_else(|| {
        let words: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.as_str()).collect();
        InvalidRequest::new(format!(
            "kinds must be a list of at least one of {}",
            words.join(", ")
        ))
    })
}

/// `latest`, `oldest` or a position.
///
/// # Errors
/// Where it is none of them.
pub fn webhook_place(after: String) -> Result<WebhookPlace, InvalidRequest> {
    match after.as_str() {
        "latest" => Ok(WebhookPlace::Latest),
        "oldest" => Ok(WebhookPlace::Oldest),
        _ => match Position::parse(after) {
            Ok(position) => Ok(WebhookPlace::After(position)),
            Err(InvalidPosition) => Err(no_webhook_place()),
        },
    }
}

/// The refusal of a place in the feed that is none.
pub fn no_webhook_place() -> InvalidRequest {
    InvalidRequest::new(
        "after must be latest, oldest, or the next or a position of an answer of the feed",
    )
}

/// What `LEASEHOLD_WEBHOOKS_FILE` holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhooksFile {
    webhooks: Vec<NamedWebhook>,
}

#[derive(Deserialize)]
struct NamedWebhook {
    name: String,
    #[serde(flatten)]
    body: WebhookBody,
}

impl WebhooksFile {
    /// The orders that it is, in its order.
    ///
    /// # Errors
    /// Names the endpoint and the field.
    pub fn read(self) -> Result<Vec<WebhookOrder>, InvalidRequest> {
        let webhooks = self.webhooks.into_iter();
        webhooks
            .map(|webhook| {
                let name = WebhookName::parse(webhook.name)?;
                let said = |error: InvalidRequest| {
                    InvalidRequest::new(format!("of the webhook {name}: {}", error.message))
                };
                webhook.body.read(name.clone()).map_err(said)
            })
            .collect()
    }
}

/// Endpoints in order of name.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhooksAnswer<'a> {
    webhooks: Vec<WebhookAnswer<'a>>,
    next: Option<String>,
}

impl<'a> WebhooksAnswer<'a> {
    /// A page, with the page token of the next.
    pub fn new(webhooks: &'a [WebhookState], next: Option<String>) -> Self {
        Self {
            webhooks: webhooks.iter().map(WebhookAnswer::new).collect(),
            next,
        }
    }
}

/// How an endpoint stands; its secrets are shown to nobody.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub struct WebhookAnswer<'a> {
    name: &'a str,
    url: &'a str,
    room: Option<&'a str>,
    prefix: Option<&'a str>,
    kinds: Option<Vec<&'static str>>,
    /// `active`, `disabled`, `failed`, `gone` or `expired`.
    status: &'static str,
    /// Up to here everything is delivered or pending; null is before the oldest kept.
    position: Option<&'a str>,
    /// Deliveries that wait, and changes in them.
    pending_deliveries: i64,
    pending_changes: i64,
    /// Since when the oldest of them waits.
    oldest_pending_ms: Option<i64>,
    /// Deliveries that failed since the last that did not.
    failures: i64,
    last_success_ms: Option<i64>,
    last_failure_ms: Option<i64>,
    /// Why the last one failed that did.
    last_failure: Option<&'a str>,
    /// Until when a secret that was replaced signs beside the new one.
    previous_secret_until_ms: Option<i64>,
}

impl<'a> WebhookAnswer<'a> {
    /// As it was read.
    pub fn new(webhook: &'a WebhookState) -> Self {
        let filter = &webhook.filter;
        let kinds = filter.kinds.as_ref();
        Self {
            name: webhook.name.as_str(),
            url: &webhook.url,
            room: filter.room_id.as_ref().map(RoomId::as_str),
            prefix: filter.prefix.as_deref(),
            kinds: kinds.map(|kinds| kinds.iter().map(|kind| kind.as_str()).collect()),
            status: webhook.status.as_str(),
            position: webhook.position.as_ref().map(Position::as_str),
            pending_deliveries: webhook.pending_deliveries,
            pending_changes: webhook.pending_changes,
            oldest_pending_ms: webhook.oldest_pending_at.map(|at| at.timestamp_millis()),
            failures: webhook.failures,
            last_success_ms: webhook.last_success_at.map(|at| at.timestamp_millis()),
            last_failure_ms: webhook.last_failure_at.map(|at| at.timestamp_millis()),
            last_failure: webhook.last_failure.as_deref(),
            previous_secret_until_ms: webhook
                .previous_secret_until
                .map(|at| at.timestamp_millis()),
        }
    }
}
