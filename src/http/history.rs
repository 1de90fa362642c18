//! What a room was: its generations, and the sessions of each.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{self, Page};
use super::request::{GenerationPath, RoomPath};
use super::{Access, Api, ApiError};
use crate::store::PastSession;

/// The lives of a room.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationsAnswer<'a> {
    room_id: &'a str,
    /// Newest first.
    generations: Vec<GenerationAnswer<'a>>,
    next: Option<String>,
}

/// One life of a room.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Generation)]
struct GenerationAnswer<'a> {
    generation: i64,
    opened_at_ms: i64,
    /// Null while a member lives.
    closed_at_ms: Option<i64>,
    /// How the last member ended: `left`, `expired`, `removed` or `room_closed`.
    close_reason: Option<&'a str>,
    /// The most persons at a time.
    peak_members: Option<i32>,
}

/// Sessions that were, or still are.
#[derive(Serialize, ToSchema)]
pub struct SessionsAnswer<'a> {
    sessions: Vec<PastSessionAnswer<'a>>,
    next: Option<String>,
}

/// One epoch's life.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PastSession)]
struct PastSessionAnswer<'a> {
    room_id: &'a str,
    generation: i64,
    user_id: &'a str,
    /// Null for the unnamed device.
    device_id: Option<&'a str>,
    epoch: i64,
    joined_at_ms: i64,
    /// Null while it lives.
    ended_at_ms: Option<i64>,
    /// `left`, `expired`, `superseded`, `removed` or `room_closed`.
    end_reason: Option<&'a str>,
}

impl<'a> SessionsAnswer<'a> {
    pub fn new(sessions: &'a [PastSession], next: Option<String>) -> Self {
        let sessions = sessions
            .iter()
            .map(|session| PastSessionAnswer {
                room_id: &session.room_id,
                generation: session.generation,
                user_id: &session.user_id,
                device_id: Some(session.device_id.as_str()).filter(|name| !name.is_empty()),
                epoch: session.epoch,
                joined_at_ms: session.joined_at.timestamp_millis(),
                ended_at_ms: session.ended_at.map(|at| at.timestamp_millis()),
                end_reason: session.end_reason.as_deref(),
            })
            .collect();
        Self { sessions, next }
    }
}

/// List the generations of a room
///
/// Newest first. Needs an admin or a server key.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/generations",
    tag = "history",
    params(("roomId" = String, Path, min_length = 1, max_length = 256), Page),
    responses((status = 200, body = GenerationsAnswer))
)]
pub async fn generations(
    api: Data<Api>,
    access: Access,
    RoomPath(room_id): RoomPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    let before = page.after_number()?;
    let limit = page.limit()?;
    let whose = room_id.clone();
    let mut found = api
        .presence
        .alone(move |store| {
            let whose = whose.clone();
            async move { store.lifetimes(&whose, before, limit + 1).await }
        })
        .await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[&last.generation.to_string()])
    });
    let generations = found
        .iter()
        .map(|life| GenerationAnswer {
            generation: life.generation,
            opened_at_ms: life.opened_at.timestamp_millis(),
            closed_at_ms: life.closed_at.map(|at| at.timestamp_millis()),
            close_reason: life.close_reason.as_deref(),
            peak_members: life.peak_members,
        })
        .collect();
    Ok(HttpResponse::Ok().json(GenerationsAnswer {
        room_id: room_id.as_str(),
        generations,
        next,
    }))
}

/// List the sessions of one generation of a room
///
/// In order of their joins; none where there was no such generation. Needs an admin or a server key.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/generations/{generation}/sessions",
    tag = "history",
    params(
        ("roomId" = String, Path, min_length = 1, max_length = 256),
        ("generation" = i64, Path),
        Page,
    ),
    responses((status = 200, body = SessionsAnswer))
)]
pub async fn generation_sessions(
    api: Data<Api>,
    access: Access,
    GenerationPath(room_id, generation): GenerationPath,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin_of(&room_id)?;
    let after = page.after_number()?.unwrap_or(0);
    let limit = page.limit()?;
    let mut found = api
        .presence
        .alone(move |store| {
            let room_id = room_id.clone();
            async move {
                store
                    .generation_sessions(&room_id, generation, after, limit + 1)
                    .await
            }
        })
        .await?;
    let next = page::cut(&mut found, limit, |last| {
        page::write(&[&last.joined_version.to_string()])
    });
    Ok(HttpResponse::Ok().json(SessionsAnswer::new(&found, next)))
}
