//! Who is in rooms and what changes, as server-sent events; and how any such stream is answered.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::{Bytes, BytesMut, Data, Query};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use futures_util::future::try_join_all;
use futures_util::stream::select_all;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout};

use super::admission::require_reader;
use super::path::RoomPath;
use super::peer::Peer;
use super::{Access, Api, ApiError};
use crate::domain::RoomId;
use crate::stream::{Batch, Client, MAX_ROOMS, NoSeat, Subscription};
use crate::wire::{ServerSentEvent, view};

/// Hear of a room's changes
///
/// Server-sent events: a `snapshot`, then `joined`, `updated`, `left`, `room_closed` and `stale`; docs/live.md says what they carry.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/events",
    tag = "live",
    params(
        ("roomId" = String, Path, min_length = 1, max_length = 256),
        ("view" = Option<String>, Query, description = "`count`: how many they are, as the event `count`."),
    ),
    responses((status = 200, body = ServerSentEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<HttpResponse, ApiError> {
    stream_rooms(&api, &access, &request, vec![room_id], &query).await
}

/// Hear of the changes of several rooms
///
/// The events of each of them on one connection, a `snapshot` for each first; every event has its `roomId`.
#[utoipa::path(
    get,
    path = "/events",
    tag = "live",
    params(("room" = Vec<String>, Query, description = "Once for each of 1 to 100 rooms.",
            explode = true, min_items = 1, max_items = 100),
           ("view" = Option<String>, Query, description = "`count`: how many they are, as the event `count`.")),
    responses((status = 200, body = ServerSentEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events_of_rooms(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<HttpResponse, ApiError> {
    let rooms = query.iter().filter(|(name, _)| name == "room");
    let rooms: Vec<RoomId> = rooms
        .map(|(_, id)| RoomId::parse(id.as_str()))
        .collect::<Result<_, _>>()?;
    let distinct: HashSet<&RoomId> = rooms.iter().collect();
    if distinct.len() < rooms.len() || !(1..=MAX_ROOMS).contains(&rooms.len()) {
        return Err(ApiError::invalid(format!(
            "room must be given 1 to {MAX_ROOMS} times, and no room twice"
        )));
    }
    stream_rooms(&api, &access, &request, rooms, &query).await
}

async fn stream_rooms(
    api: &Api,
    access: &Access,
    request: &HttpRequest,
    rooms: Vec<RoomId>,
    query: &[(String, String)],
) -> Result<HttpResponse, ApiError> {
    let readable = rooms.iter().map(|room| require_reader(api, access, room));
    try_join_all(readable).await?;
    let asked = query.iter().find(|(name, _)| name == "view");
    let view = view(asked.map(|(_, view)| view.as_str()))?;
    let subscribe = |client: Client| {
        let subscriptions = rooms.iter().map(|room_id| {
            let reader = access.reader_of(room_id).cloned();
            api.live.subscribe(room_id, view, client.clone(), reader)
        });
        subscriptions.collect()
    };
    stream(api, access, request, subscribe).await
}

/// Answers with what these subscriptions tell, their snapshots first.
pub(super) async fn stream(
    api: &Api,
    access: &Access,
    request: &HttpRequest,
    subscribe: impl FnOnce(Client) -> Result<Vec<Subscription>, NoSeat>,
) -> Result<HttpResponse, ApiError> {
    if request.method() == Method::HEAD {
        return Ok(head().finish());
    }
    let mut subscriptions = subscribe(access.client(request))?;
    let snapshots = subscriptions.iter_mut().map(|s| first(s, api.timeout));
    let mut greeting = BytesMut::new();
    for snapshot in try_join_all(snapshots).await? {
        greeting.extend_from_slice(&snapshot.sse());
    }
    let batches = select_all(subscriptions).map(|batch| batch.sse());
    Ok(answer(api, access, request, &greeting, batches))
}

fn head() -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache, no-transform"))
        // A reverse proxy must not collect events before it passes them on.
        .insert_header(("x-accel-buffering", "no"));
    response
}

/// Answers with how soon to come back, this greeting, and then these events, to the end of the credential or of
/// the instance.
pub(super) fn answer(
    api: &Api,
    access: &Access,
    request: &HttpRequest,
    greeting: &[u8],
    batches: impl Stream<Item = Bytes> + Unpin + 'static,
) -> HttpResponse {
    if request.method() == Method::HEAD {
        return head().finish();
    }
    let mut keep_alive = interval(api.keep_alive);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    keep_alive.reset();
    // Those who lose their connection together should not all come back together.
    let retry_ms = rand::random_range(1_000..3_000);
    let greeting = [format!("retry: {retry_ms}\n\n").as_bytes(), greeting].concat();
    let credential_ends = access.expires_in().map(|left| Instant::now() + left);
    let peer = Peer::of(request);
    peer.stream_until(credential_ends);
    let drain = api.drain.clone();
    head().streaming(EventStream {
        peer,
        batches,
        keep_alive,
        greeting: Some(greeting.into()),
        end: Box::pin(async move {
            tokio::select! {
                () = until(credential_ends) => {}
                () = drain.turn() => {}
            }
        }),
    })
}

/// The first snapshot of a subscription, without which there is no stream.
pub(crate) async fn first(
    subscription: &mut Subscription,
    wait: Duration,
) -> Result<Arc<Batch>, ApiError> {
    match timeout(wait, subscription.next()).await {
        Ok(Some(last)) if last.is_misdirected() => Err(ApiError::misdirected()),
        Ok(Some(snapshot)) => Ok(snapshot),
        Ok(None) => Err(ApiError::unavailable("the service is shutting down")),
        Err(_) => Err(ApiError::unavailable(
            "the first snapshot could not be read in time; try again",
        )),
    }
}

/// Never where there is no such instant.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

struct EventStream<S> {
    peer: Rc<Peer>,
    batches: S,
    keep_alive: Interval,
    /// What is told before all else.
    greeting: Option<Bytes>,
    /// Of the credential that opened the stream, or of the instance.
    end: Pin<Box<dyn Future<Output = ()>>>,
}

impl<S: Stream<Item = Bytes> + Unpin> Stream for EventStream<S> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // The server polls when it has read something, be it the end.
        if this.peer.has_left() {
            return Poll::Ready(None);
        }
        if let Some(greeting) = this.greeting.take() {
            return Poll::Ready(Some(Ok(greeting)));
        }
        if this.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut this.batches).poll_next(context) {
            Poll::Ready(Some(batch)) => {
                this.keep_alive.reset();
                return Poll::Ready(Some(Ok(batch)));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        this.keep_alive
            .poll_tick(context)
            .map(|_| Some(Ok(Bytes::from_static(b": still here\n\n"))))
    }
}

impl<S> Drop for EventStream<S> {
    fn drop(&mut self) {
        self.peer.stream_until(None);
    }
}
