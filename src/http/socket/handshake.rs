//! From a request to an open socket.

use std::rc::Rc;

use actix_web::http::header;
use actix_web::web::{Data, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use utoipa::IntoParams;

use super::connection::Connection;
use super::inward::Meter;
use super::log::Log;
use super::request::Asker;
use super::sessions::Sessions;
use crate::domain::{RoomId, View};
use crate::http::admission::require_reader;
use crate::http::auth::Gate;
use crate::http::path::RoomPath;
use crate::http::peer::Peer;
use crate::http::{Access, Api, ApiError};
use crate::wire::view;

/// How much of the room.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ViewQuery {
    /// `count`: how many they are, as the event `count`.
    view: Option<String>,
}

/// Take part in a room over a WebSocket
///
/// The events as messages, and inwards what a member does; docs/live.md says how.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/socket",
    tag = "live",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), ViewQuery),
    responses((status = 101, description = "The WebSocket is open"))
)]
pub(crate) async fn socket(
    api: Data<Api>,
    gate: Data<Gate>,
    access: Access,
    request: HttpRequest,
    payload: Payload,
    RoomPath(room_id): RoomPath,
    Query(query): Query<ViewQuery>,
) -> Result<HttpResponse, ApiError> {
    require_reader(&api, &access, &room_id).await?;
    let first = Some((room_id, view(query.view.as_deref())?));
    open(api, gate, access, &request, payload, first).await
}

/// Take part in several rooms over a WebSocket
///
/// In none at first: the client subscribes, and each request names its `roomId`.
#[utoipa::path(
    get,
    path = "/socket",
    tag = "live",
    responses((status = 101, description = "The WebSocket is open"))
)]
pub(crate) async fn open_socket(
    api: Data<Api>,
    gate: Data<Gate>,
    access: Access,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    open(api, gate, access, &request, payload, None).await
}

async fn open(
    api: Data<Api>,
    gate: Data<Gate>,
    access: Access,
    request: &HttpRequest,
    payload: Payload,
    first: Option<(RoomId, View)>,
) -> Result<HttpResponse, ApiError> {
    if !request.headers().contains_key(header::UPGRADE) {
        return Err(ApiError::invalid(
            "this address is a WebSocket; for server-sent events ask for /events",
        ));
    }
    let asker = Asker {
        client: access.client(request),
        room_id: first.as_ref().map(|(room_id, _)| room_id.clone()),
        sessions: Sessions::new(api.holders.clone()),
        subscriptions: Rc::default(),
        gate,
        access,
        api,
    };
    let snapshot = match first {
        Some((room_id, view)) => Some(asker.follow(&room_id, view).await?),
        None => None,
    };
    let api = &asker.api;
    let (meter, payload) = Meter::attach(request, payload, api.max_message_bytes).await?;
    let (response, out, messages) = actix_ws::handle(request, payload)
        .map_err(|error| ApiError::invalid(format!("no WebSocket handshake: {error}")))?;
    let inward = meter.messages(messages);
    let connection = Connection::new(asker, Peer::of(request), out, Log::new(request));
    actix_web::rt::spawn(connection.run(snapshot, inward));
    Ok(response)
}
