//! From a request to an open socket.

use actix_web::http::header;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::connection::Connection;
use super::inward::Meter;
use super::log::Log;
use super::request::Asker;
use super::sessions::Sessions;
use crate::http::auth::Gate;
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
    gate: Data<Gate>,
    access: Access,
    request: HttpRequest,
    payload: Payload,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    access.may_read(&room_id)?;
    if !request.headers().contains_key(header::UPGRADE) {
        return Err(ApiError::invalid(
            "this address is a WebSocket; for server-sent events ask for /events",
        ));
    }
    let client = access.client(&request);
    let mut subscription = api.live.subscribe(&room_id, client.clone())?;
    let snapshot = first(&mut subscription, api.timeout).await?;
    let (meter, payload) = Meter::attach(&request, payload, api.max_message_bytes).await?;
    let (response, out, messages) = actix_ws::handle(&request, payload)
        .map_err(|error| ApiError::invalid(format!("no WebSocket handshake: {error}")))?;
    let inward = meter.messages(messages);
    let asker = Asker {
        client,
        room_id,
        sessions: Sessions::new(api.holders.clone()),
        gate,
        access,
        api,
    };
    let connection = Connection::new(asker, Peer::of(&request), out, Log::new(&request));
    actix_web::rt::spawn(connection.run(snapshot, subscription, inward));
    Ok(response)
}
