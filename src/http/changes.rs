//! The history as a feed for backends: long-polled, from a position on.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until, timeout_at};
use utoipa::IntoParams;

use super::{Access, Api, ApiError};
use crate::domain::{Changes, ChangesOutcome, Position};
use crate::wire::{ChangesAnswer, ErrorBody};

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
    /// `latest`, or a `next` or `position` of an earlier answer; the oldest kept if left out.
    after: Option<String>,
    /// 100 if left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<i32>,
    /// 0 if left out.
    #[param(maximum = 60000)]
    wait_ms: Option<u64>,
}

/// Read the history as a feed
///
/// What happened after a position, at once or when it has; docs/live.md says what to rely on.
#[utoipa::path(
    get,
    path = "/changes",
    tag = "live",
    params(ChangesQuery),
    responses(
        (status = 200, body = ChangesAnswer),
        (status = 410, body = ErrorBody, description = "`position_expired`"),
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
        Some("latest") => api.presence.latest_change().await?,
        Some(text) => text.parse().map_err(|_| {
            ApiError::invalid(
                "after must be latest, or the next or a position of an earlier answer",
            )
        })?,
    };
    let page = read(&api, after, limit, deadline).await?;
    Ok(HttpResponse::Ok().json(ChangesAnswer::new(&page)))
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
        let page = match api.presence.changes(after, limit).await? {
            ChangesOutcome::Page(page) => page,
            ChangesOutcome::PositionExpired => return Err(ApiError::position_expired()),
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
