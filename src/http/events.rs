//! Who is in a room and what changes, as server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::Stream;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout};

use super::admission::require_reader;
use super::path::RoomPath;
use super::peer::Peer;
use super::{Access, Api, ApiError};
use crate::stream::{Batch, Subscription};

/// Hear of a room's changes
///
/// Server-sent events: a `snapshot`, then `joined`, `updated`, `left`, `room_closed` and `stale`; docs/live.md says what they carry.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/events",
    tag = "live",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    require_reader(&api, &access, &room_id).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache, no-transform"))
        // A reverse proxy must not collect events before it passes them on.
        .insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let mut subscription = api.live.subscribe(
        &room_id,
        access.client(&request),
        access.reader_of(&room_id).cloned(),
    )?;
    let snapshot = first(&mut subscription, api.timeout).await?;
    let mut keep_alive = interval(api.keep_alive);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    keep_alive.reset();
    // Those who lose their connection together should not all come back together.
    let retry_ms = rand::random_range(1_000..3_000);
    let greeting = [format!("retry: {retry_ms}\n\n").into(), snapshot.sse()].concat();
    let credential_ends = access.expires_in().map(|left| Instant::now() + left);
    let peer = Peer::of(&request);
    peer.stream_until(credential_ends);
    let drain = api.drain.clone();
    Ok(response.streaming(EventStream {
        peer,
        subscription,
        keep_alive,
        greeting: Some(greeting.into()),
        end: Box::pin(async move {
            tokio::select! {
                () = until(credential_ends) => {}
                () = drain.turn() => {}
            }
        }),
    }))
}

/// The first snapshot of a subscription, without which there is no stream.
pub(crate) async fn first(
    subscription: &mut Subscription,
    wait: Duration,
) -> Result<Arc<Batch>, ApiError> {
    match timeout(wait, subscription.next()).await {
        Ok(Some(snapshot)) => Ok(snapshot),
        Ok(None) => Err(ApiError::unavailable("the service is shutting down")),
        Err(_) => Err(ApiError::unavailable(
            "the room could not be read in time; try again",
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

struct EventStream {
    peer: Rc<Peer>,
    subscription: Subscription,
    keep_alive: Interval,
    /// How soon to come back, and the first snapshot.
    greeting: Option<Bytes>,
    /// Of the credential that opened the stream, or of the instance.
    end: Pin<Box<dyn Future<Output = ()>>>,
}

impl Stream for EventStream {
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
        match this.subscription.poll_next(context) {
            Poll::Ready(Some(batch)) => {
                this.keep_alive.reset();
                Poll::Ready(Some(Ok(batch.sse())))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match this.keep_alive.poll_tick(context) {
                Poll::Ready(_) => Poll::Ready(Some(Ok(Bytes::from_static(b": still here\n\n")))),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.peer.stream_until(None);
    }
}
