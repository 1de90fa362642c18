//! The history as a feed for backends: long-polled, with a cursor.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout_at};
use utoipa::{IntoParams, ToSchema};

use super::{Access, Api, ApiError, ErrorBody};
use crate::store::{Change, Changes, ChangesOutcome, Position, StoreError};

const DEFAULT_LIMIT: i32 = 100;
const MAX_LIMIT: i32 = 1_000;
const MAX_WAIT_MS: u64 = 60_000;

/// Between two reads for one reader, also while committed changes wait for an older transaction to end.
const PAUSE: Duration = Duration::from_millis(20);

/// From where, how many, and for how long to wait.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub struct ChangesQuery {
    /// `latest`, or a `next` or `cursor` of an earlier answer; the oldest kept if left out.
    after: Option<String>,
    /// 100 if left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<i32>,
    /// 0 if left out.
    #[param(maximum = 60000)]
    wait_ms: Option<u64>,
}

/// A page of the feed.
#[derive(Serialize, ToSchema)]
pub struct ChangesAnswer<'a> {
    changes: Vec<ChangeAnswer<'a>>,
    /// Where to go on; always usable.
    next: String,
}

/// One thing that happened.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Change)]
struct ChangeAnswer<'a> {
    cursor: String,
    /// `room_opened`, `joined`, `ended` or `room_closed`.
    kind: &'a str,
    room_id: &'a str,
    generation: i64,
    version: i64,
    user_id: Option<&'a str>,
    device_id: Option<&'a str>,
    epoch: Option<i64>,
    reason: Option<&'a str>,
    at_ms: i64,
}

impl<'a> From<&'a Change> for ChangeAnswer<'a> {
    fn from(change: &'a Change) -> Self {
        Self {
            cursor: change.position.to_string(),
            kind: &change.kind,
            room_id: &change.room_id,
            generation: change.generation,
            version: change.version,
            user_id: change.user_id.as_deref(),
            device_id: change.device_id.as_deref().filter(|name| !name.is_empty()),
            epoch: change.epoch,
            reason: change.reason.as_deref(),
            at_ms: change.at.timestamp_millis(),
        }
    }
}

/// Read the history as a feed
///
/// What happened after a cursor, at once or when it has; docs/live.md says what to rely on.
#[utoipa::path(
    get,
    path = "/changes",
    tag = "live",
    params(ChangesQuery),
    responses(
        (status = 200, body = ChangesAnswer),
        (status = 410, body = ErrorBody, description = "`cursor_expired`"),
    )
)]
pub async fn changes(
    api: Data<Api>,
    access: Access,
    Query(query): Query<ChangesQuery>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid(format!(
            "limit must be from 1 to {MAX_LIMIT}"
        )));
    }
    let wait_ms = query.wait_ms.unwrap_or(0);
    if wait_ms > MAX_WAIT_MS {
        return Err(ApiError::invalid(format!(
            "waitMs must be from 0 to {MAX_WAIT_MS}"
        )));
    }
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let after = match query.after.as_deref() {
        None => Position::default(),
        Some("latest") => in_time(&api, api.store.latest_change()).await?,
        Some(text) => text.parse().map_err(|_| {
            ApiError::invalid("after must be latest, or the next or a cursor of an earlier answer")
        })?,
    };
    let page = read(&api, after, limit, deadline).await?;
    Ok(HttpResponse::Ok().json(ChangesAnswer {
        changes: page.changes.iter().map(ChangeAnswer::from).collect(),
        next: page.next.to_string(),
    }))
}

/// Reads until there is something or the time is over.
async fn read(
    api: &Api,
    after: Position,
    limit: i32,
    deadline: Instant,
) -> Result<Changes, ApiError> {
    let mut wakes = api.wakes.feed();
    let mut after = after;
    loop {
        wakes.mark_unchanged();
        let page = match in_time(api, api.store.changes(after, limit)).await? {
            ChangesOutcome::Page(page) => page,
            ChangesOutcome::CursorExpired => return Err(ApiError::cursor_expired()),
        };
        if !page.changes.is_empty() || Instant::now() >= deadline || api.stop.is_cancelled() {
            return Ok(page);
        }
        after = page.next;
        let now = Instant::now();
        let woken = async {
            sleep_until(deadline.min(now + PAUSE)).await;
            if !page.more_is_coming {
                let _ = timeout_at(deadline.min(now + api.poll), wakes.changed()).await;
            }
        };
        // However it ends, it is read again.
        api.stop.run_until_cancelled(woken).await;
    }
}

async fn in_time<T>(
    api: &Api,
    reading: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(api.timeout, reading).await {
        Ok(outcome) => outcome.map_err(|error| ApiError::from(&error)),
        Err(_) => Err(ApiError::unavailable(
            "the database did not answer in time; try again",
        )),
    }
}
