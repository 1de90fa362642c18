//! Who is let into a room, and who may look at it.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use futures_util::future::try_join;

use super::page::{self, Page};
use super::path::RoomPath;
use super::{Access, Api, ApiError};
use crate::coalesce::NoAnswer;
use crate::domain::{RoomId, UserId};
use crate::wire::{BlocksAnswer, ErrorBody};

/// Lock a room
///
/// Those inside stay, and may join again while they are; nobody else comes in. The next generation
/// begins unlocked. Needs an admin of the room or a server key.
#[utoipa::path(
    put,
    path = "/rooms/{roomId}/lock",
    tag = "moderation",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses(
        (status = 204, description = "Locked"),
        (status = 404, body = ErrorBody, description = "`room_not_found`: nobody is in it"),
    )
)]
pub(crate) async fn lock(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    match api.presence.lock_door(room_id, true).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(ApiError::room_not_found()),
    }
}

/// Unlock a room
///
/// 204 also where it was not locked, or nobody is in it. Needs an admin of the room or a server key.
#[utoipa::path(
    delete,
    path = "/rooms/{roomId}/lock",
    tag = "moderation",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 204, description = "Not locked"))
)]
pub(crate) async fn unlock(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    api.presence.lock_door(room_id, false).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// List who may not join a room
///
/// In order of user; what keeps everybody out comes first. Needs an admin of the room or a server key.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/blocks",
    tag = "moderation",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), Page),
    responses((status = 200, body = BlocksAnswer))
)]
pub(crate) async fn blocks(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    let after = page.after()?.map(|[user]| user);
    let limit = page.limit()?;
    let mut found = api.presence.blocks(room_id, after, limit + 1).await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[last.user_id.as_ref().map_or("", UserId::as_str)])
    });
    Ok(HttpResponse::Ok().json(BlocksAnswer::new(&found, next)))
}

/// What is answered to a reader of the room: asked at the same time as whether the caller may be one.
///
/// # Errors
/// As [`require_reader`], or where there is no answer.
pub(crate) async fn read<T>(
    api: &Api,
    access: &Access,
    room_id: &RoomId,
    question: impl Future<Output = Result<T, NoAnswer>>,
) -> Result<T, ApiError> {
    let question = async { Ok(question.await?) };
    let ((), answer) = try_join(require_reader(api, access, room_id), question).await?;
    Ok(answer)
}

/// That the caller may see who is in the room now.
///
/// # Errors
/// 403: by what the credential says, or because its holder was put out for a time.
pub(crate) async fn require_reader(
    api: &Api,
    access: &Access,
    room_id: &RoomId,
) -> Result<(), ApiError> {
    access.may_read(room_id)?;
    let Some(reader) = access.reader_of(room_id) else {
        return Ok(());
    };
    let blocked = api
        .presence
        .readers_blocked(room_id.clone(), vec![reader.clone()]);
    match blocked.await?.first() {
        Some(Some(blocked)) => Err(ApiError::blocked(blocked.until, blocked.as_of)),
        _ => Ok(()),
    }
}
