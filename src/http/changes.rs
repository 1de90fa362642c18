//! The history as a feed for backends: long-polled or streamed, from a position on.

use std::time::Duration;

use actix_web::web::{Bytes, Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::unfold;
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use utoipa::IntoParams;

use super::events::answer;
use super::rooms::check_prefix;
use super::{Access, Api, ApiError};
use crate::domain::{Changes, ChangesFilter, ChangesOutcome, Position, RoomId};
use crate::wire::{ChangesAnswer, Code, ErrorBody, ServerSentEvent, write_changes};

const DEFAULT_LIMIT: i32 = 100;
const MAX_LIMIT: i32 = 1_000;
const MAX_WAIT_MS: u64 = 60_000;

/// Between two reads for one reader, also while committed changes wait for an older transaction to end.
const PAUSE: Duration = Duration::from_millis(20);

/// Between two tries while the database does not answer a stream.
const RETRY: Duration = Duration::from_secs(1);

/// From where, and which.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FeedQuery {
    /// `latest`, or a `next` or `position` of an earlier answer; the oldest kept if left out.
    after: Option<String>,
    /// Only this room's.
    room: Option<String>,
    /// Only those of rooms whose id starts like this.
    prefix: Option<String>,
    /// Only these: `room_opened`, `joined`, `ended`, `room_closed`, several with commas between them.
    kinds: Option<String>,
}

/// How many, and for how long to wait.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct PageQuery {
    /// 100 if left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<i32>,
    /// 0 if left out.
    #[param(maximum = 60000)]
    wait_ms: Option<u64>,
}

impl FeedQuery {
    /// The filter, for who administers what it lets through.
    fn filter(&self, access: &Access) -> Result<ChangesFilter, ApiError> {
        let room_id = self.room.as_deref().map(RoomId::parse).transpose()?;
        if let Some(prefix) = &self.prefix {
            check_prefix(prefix)?;
        }
        match (&room_id, &self.prefix) {
            (Some(room_id), _) => access.admin_of(room_id)?,
            (None, Some(prefix)) => access.admin_of_all(prefix)?,
            (None, None) => access.admin()?,
        }
        let kinds = self.kinds.as_deref().map(|kinds| {
            let kinds = kinds.split(',').map(|kind| {
                kind.parse().map_err(|_| {
                    ApiError::invalid("kinds must be of room_opened, joined, ended and room_closed, with commas between them")
                })
            });
            kinds.collect::<Result<Vec<_>, _>>()
        });
        Ok(ChangesFilter {
            room_id,
            prefix: self.prefix.clone(),
            kinds: kinds.transpose()?,
        })
    }
}

/// Read the history as a feed
///
/// What happened after a position, at once or when it has; docs/live.md says what to rely on. Needs a server key
/// or an admin of all rooms, or of those that are asked for.
#[utoipa::path(
    get,
    path = "/changes",
    tag = "live",
    params(FeedQuery, PageQuery),
    responses(
        (status = 200, body = ChangesAnswer),
        (status = 410, body = ErrorBody, description = "`position_expired`"),
    )
)]
pub(crate) async fn changes(
    api: Data<Api>,
    access: Access,
    Query(feed): Query<FeedQuery>,
    Query(page): Query<PageQuery>,
) -> Result<HttpResponse, ApiError> {
    let filter = feed.filter(&access)?;
    let limit = page.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid(format!(
            "limit must be from 1 to {MAX_LIMIT}"
        )));
    }
    let wait_ms = page.wait_ms.unwrap_or(0);
    if wait_ms > MAX_WAIT_MS {
        return Err(ApiError::invalid(format!(
            "waitMs must be from 0 to {MAX_WAIT_MS}"
        )));
    }
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let after = start(&api, feed.after.as_deref()).await?;
    let page = read(&api, after, &filter, limit, deadline).await?;
    Ok(HttpResponse::Ok().json(ChangesAnswer::new(&page)))
}

/// Hear of the history as a feed
///
/// The items of `GET /changes` as server-sent events, each with its position as `id` and its kind as name, and
/// `stale` while the database does not answer. A reader that comes back with `Last-Event-ID` goes on where it was.
/// `position_expired` is the last event of a reader that what it had to read next was purged under.
#[utoipa::path(
    get,
    path = "/changes/events",
    tag = "live",
    params(FeedQuery, ("Last-Event-ID" = Option<String>, Header, description = "In place of `after`.")),
    responses(
        (status = 200, body = ServerSentEvent, content_type = "text/event-stream"),
        (status = 410, body = ErrorBody, description = "`position_expired`"),
    )
)]
pub(crate) async fn change_events(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    Query(feed): Query<FeedQuery>,
) -> Result<HttpResponse, ApiError> {
    let filter = feed.filter(&access)?;
    let last = request.headers().get("last-event-id");
    let last = last.map(|id| id.to_str().unwrap_or_default());
    let after = start(&api, last.or(feed.after.as_deref())).await?;
    // What can be refused is refused before the stream begins.
    let first = read(&api, after.clone(), &filter, DEFAULT_LIMIT, Instant::now()).await?;
    let greeting = write_changes(&first, after.as_ref());
    let reader = Reader {
        api: api.clone(),
        filter,
        after: Some(first.next),
        is_stale: false,
    };
    let rest = unfold(Some(reader), |reader| async { reader?.next().await });
    Ok(answer(
        &api,
        &access,
        &request,
        greeting.as_bytes(),
        Box::pin(rest),
    ))
}

/// Who hears of the feed.
struct Reader {
    api: Data<Api>,
    filter: ChangesFilter,
    after: Option<Position>,
    /// It was told that the database does not answer.
    is_stale: bool,
}

impl Reader {
    /// What it is told next, and who is told what comes then.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        // Where the service stops, reads no longer wait.
        while !self.api.stop.is_cancelled() {
            let deadline = Instant::now() + self.api.keep_alive;
            let page = read(
                &self.api,
                self.after.clone(),
                &self.filter,
                DEFAULT_LIMIT,
                deadline,
            )
            .await;
            match page {
                Ok(page) => {
                    let text = write_changes(&page, self.after.as_ref());
                    self.after = Some(page.next);
                    self.is_stale = false;
                    if !text.is_empty() {
                        return Some((text.into(), Some(self)));
                    }
                }
                Err(error) if error.code() == Code::PositionExpired => {
                    let text = "event: position_expired\ndata: {}\n\n";
                    return Some((Bytes::from_static(text.as_bytes()), None));
                }
                Err(_) => {
                    sleep(RETRY).await;
                    if !self.is_stale {
                        self.is_stale = true;
                        let text = "event: stale\ndata: {}\n\n";
                        return Some((Bytes::from_static(text.as_bytes()), Some(self)));
                    }
                }
            }
        }
        None
    }
}

/// Where a reader begins; `None` is the oldest that is kept.
async fn start(api: &Api, after: Option<&str>) -> Result<Option<Position>, ApiError> {
    match after {
        None => Ok(None),
        Some("latest") => Ok(Some(api.presence.latest_change().await?)),
        Some(text) => Ok(Some(Position::parse(text).map_err(|_| no_position())?)),
    }
}

fn no_position() -> ApiError {
    ApiError::invalid("after must be latest, or the next or a position of an earlier answer")
}

/// Reads until there is something or the time is over.
async fn read(
    api: &Api,
    mut after: Option<Position>,
    filter: &ChangesFilter,
    limit: i32,
    deadline: Instant,
) -> Result<Changes, ApiError> {
    let mut wakes = api.wakes.feed();
    loop {
        wakes.mark_unchanged();
        let page = match api.presence.changes(after, filter, limit).await? {
            ChangesOutcome::Page(page) => page,
            ChangesOutcome::PositionExpired => return Err(ApiError::position_expired()),
            ChangesOutcome::NoPosition => return Err(no_position()),
        };
        if !page.changes.is_empty() || Instant::now() >= deadline || api.stop.is_cancelled() {
            return Ok(page);
        }
        after = Some(page.next);
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
