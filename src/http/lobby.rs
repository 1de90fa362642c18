//! Which rooms open, close and fill, as server-sent events.

use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};

use super::events::stream;
use super::page::Page;
use super::rooms::RoomsQuery;
use super::{Access, Api, ApiError};
use crate::domain::Lobby;
use crate::wire::ServerSentEvent;

/// Hear which rooms open, close and fill
///
/// Server-sent events: a `snapshot` of the first 1,000 rooms in order of id, then `room_opened`, `room_changed`,
/// `room_closed` and `stale`; docs/live.md says what they carry. A client follows only a prefix that its token names.
#[utoipa::path(
    get,
    path = "/lobby/events",
    tag = "live",
    params(
        RoomsQuery,
        ("after" = Option<String>, Query, description = "The `next` of a `snapshot`: the rooms after those."),
    ),
    responses((status = 200, body = ServerSentEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn lobby_events(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    Query(rooms): Query<RoomsQuery>,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    let prefix = rooms.prefix()?;
    access.may_list(&prefix)?;
    let after = page.after_room()?;
    let lobby = Lobby { prefix, after };
    stream(&api, &access, &request, |client| {
        Ok(vec![api.live.subscribe_to_lobby(lobby, client)?])
    })
    .await
}
