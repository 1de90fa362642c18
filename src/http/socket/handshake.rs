//! From a request to an open socket.

use actix_web::http::header;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::connection::Connection;
use super::log::Log;
use crate::http::admission::require_reader;
use crate::http::events::first;
use crate::http::path::RoomPath;
use crate::http::peer::Peer;
use crate::http::{Access, Api, ApiError};

/// Take part in a room over a WebSocket
///
/// The events as messages, and inwards what a member does; docs/live.md says how.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/socket",
    tag = "live",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 101, description = "The WebSocket is open"))
)]
pub(crate) async fn socket(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    payload: Payload,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    require_reader(&api, &access, &room_id).await?;
    if !request.headers().contains_key(header::UPGRADE) {
        return Err(ApiError::invalid(
            "this address is a WebSocket; for server-sent events ask for /events",
        ));
    }
    let mut subscription = api.live.subscribe(
        &room_id,
        access.client(&request),
        access.reader_of(&room_id).cloned(),
    )?;
    let snapshot = first(&mut subscription, api.timeout).await?;
    let (response, out, inward) = actix_ws::handle(&request, payload)
        .map_err(|error| ApiError::invalid(format!("no WebSocket handshake: {error}")))?;
    let inward = inward
        .max_frame_size(api.max_message_bytes)
        .aggregate_continuations()
        .max_continuation_size(api.max_message_bytes);
    let peer = Peer::of(&request);
    let connection = Connection::new(api, access, peer, room_id, out, Log::new(&request));
    actix_web::rt::spawn(connection.run(snapshot, subscription, inward));
    Ok(response)
}
