//! Ids in the path.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use percent_encoding::percent_decode_str;

use super::ApiError;
use crate::domain::{RoomId, UserId, WebhookName};

/// The room of `/rooms/{roomId}/…`.
pub(crate) struct RoomPath(pub RoomId);

impl FromRequest for RoomPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(segment(request, 2, "roomId").and_then(|id| Ok(Self(RoomId::parse(id)?))))
    }
}

/// The user of `/users/{userId}/…`.
pub(crate) struct UserPath(pub UserId);

impl FromRequest for UserPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(segment(request, 2, "userId").and_then(|id| Ok(Self(UserId::parse(id)?))))
    }
}

/// The endpoint of `/webhooks/{name}`.
pub(crate) struct WebhookPath(pub WebhookName);

impl FromRequest for WebhookPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(segment(request, 2, "name").and_then(|name| Ok(Self(WebhookName::parse(name)?))))
    }
}

/// Both of `/rooms/{roomId}/participants/{userId}`.
pub(crate) struct ParticipantPath(pub RoomId, pub UserId);

impl FromRequest for ParticipantPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let room = segment(request, 2, "roomId").and_then(|id| Ok(RoomId::parse(id)?));
        let user = segment(request, 4, "userId").and_then(|id| Ok(UserId::parse(id)?));
        ready(room.and_then(|room| Ok(Self(room, user?))))
    }
}

/// Both of `/rooms/{roomId}/generations/{generation}/sessions`.
pub(crate) struct GenerationPath(pub RoomId, pub i64);

impl FromRequest for GenerationPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let room = segment(request, 2, "roomId").and_then(|id| Ok(RoomId::parse(id)?));
        let generation = segment(request, 4, "generation").and_then(|text| {
            let number = text.parse().ok();
            number.ok_or_else(|| ApiError::invalid("generation must be a whole number"))
        });
        ready(room.and_then(|room| Ok(Self(room, generation?))))
    }
}

/// Decodes a part of the path as it was sent: the router's own decoding would replace bytes that are not UTF-8.
fn segment(request: &HttpRequest, place: usize, field: &'static str) -> Result<String, ApiError> {
    let part = request.uri().path().split('/').nth(place).unwrap_or("");
    match percent_decode_str(part).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(ApiError::invalid(format!(
            "{field} must be percent-encoded UTF-8"
        ))),
    }
}
