//! From bytes to validated values: ids in the path, JSON bodies and their fields.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::web::{BytesMut, Data};
use actix_web::{FromRequest, HttpRequest};
use futures_util::StreamExt;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Api, ApiError, Code};
use crate::domain::{DeviceId, RoomId, UserId};

/// The room of `/rooms/{roomId}/…`.
pub struct RoomPath(pub RoomId);

impl FromRequest for RoomPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(segment(request, 2, "roomId").and_then(|id| Ok(Self(RoomId::parse(id)?))))
    }
}

/// The user of `/users/{userId}/…`.
pub struct UserPath(pub UserId);

impl FromRequest for UserPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(segment(request, 2, "userId").and_then(|id| Ok(Self(UserId::parse(id)?))))
    }
}

/// Both of `/rooms/{roomId}/participants/{userId}`.
pub struct ParticipantPath(pub RoomId, pub UserId);

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
pub struct GenerationPath(pub RoomId, pub i64);

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

/// A JSON object of the shape `T`.
pub struct Json<T>(pub T);

/// The same, also where it is labelled `text/plain`: what a page can send while it unloads.
pub struct JsonOrText<T>(pub T);

/// The same of many items, which may be as large as a batch.
pub struct BatchJson<T>(pub T);

type Reading<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

macro_rules! body {
    ($name:ident, $accepted:literal, $limit:ident) => {
        impl<T: DeserializeOwned + 'static> FromRequest for $name<T> {
            type Error = ApiError;
            type Future = Reading<Self>;

            fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
                let Some(api) = request.app_data::<Data<Api>>() else {
                    return Box::pin(ready(Err(ApiError::unavailable(
                        "the service is not set up",
                    ))));
                };
                let bytes = read(
                    request,
                    payload.take(),
                    $accepted,
                    api.$limit,
                    api.body_timeout,
                );
                Box::pin(async move { parse(&bytes.await?).map(Self) })
            }
        }
    };
}

body!(Json, "application/json", body_limit);
body!(JsonOrText, "application/json or text/plain", body_limit);
body!(BatchJson, "application/json", batch_body_limit);

/// Reads the body where its content type is one of those named, or none is given, for a bounded time.
fn read(
    request: &HttpRequest,
    mut payload: Payload,
    accepted: &'static str,
    limit: usize,
    patience: Duration,
) -> impl Future<Output = Result<BytesMut, ApiError>> + use<> {
    let content_type = request.headers().get(header::CONTENT_TYPE).map(|value| {
        let text = value.to_str().unwrap_or("");
        text.split(';')
            .next()
            .unwrap_or("")
            .trim()
            .to_ascii_lowercase()
    });
    let is_accepted =
        content_type.is_none_or(|found| accepted.split(" or ").any(|accepted| accepted == found));
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    async move {
        if !is_accepted {
            return Err(ApiError::unsupported_media_type(accepted));
        }
        if announced.is_some_and(|length| length > limit) {
            return Err(ApiError::too_large(limit));
        }
        let reading = async {
            let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0));
            while let Some(chunk) = payload.next().await {
                let chunk = chunk.map_err(|error| {
                    ApiError::invalid(format!("the body cannot be read: {error}"))
                })?;
                if bytes.len() + chunk.len() > limit {
                    return Err(ApiError::too_large(limit));
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        };
        tokio::time::timeout(patience, reading)
            .await
            .unwrap_or_else(|_| Err(ApiError::too_slow()))
    }
}

/// An object of the shape `T`; the error names the field.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // Serde would not look into the fields that it skips.
    let text =
        str::from_utf8(bytes).map_err(|_| ApiError::invalid("the body must be JSON in UTF-8"))?;
    // Serde reads a struct from an array too, by position.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    serde_json::from_str(text).map_err(|_| {
        // Only a failure pays for knowing the field.
        let mut deserializer = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Err(error) if error.inner().is_data() => ApiError::invalid(error.to_string()),
            Err(error) => ApiError::invalid(format!("the body is not JSON: {}", error.inner())),
            Ok(_) => ApiError::invalid("the body is not JSON: something follows the object"),
        }
    })
}

/// A field where `null` means something else than leaving it out.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A required `roomId`.
pub fn room_id(field: Option<String>) -> Result<RoomId, ApiError> {
    Ok(RoomId::parse(
        field.ok_or_else(|| ApiError::invalid("roomId is required"))?,
    )?)
}

/// A required `userId`.
pub fn user_id(field: Option<String>) -> Result<UserId, ApiError> {
    Ok(UserId::parse(
        field.ok_or_else(|| ApiError::invalid("userId is required"))?,
    )?)
}

/// An optional `deviceId`: the unnamed device where it is left out.
pub fn device_id(field: Option<String>) -> Result<DeviceId, ApiError> {
    Ok(field.map_or(Ok(DeviceId::unnamed()), DeviceId::parse)?)
}

/// A required `epoch`.
pub fn epoch(field: Option<i64>) -> Result<i64, ApiError> {
    let epoch = field.ok_or_else(|| ApiError::invalid("epoch is required"))?;
    if epoch < 0 {
        return Err(ApiError::invalid("epoch must not be negative"));
    }
    Ok(epoch)
}

/// A `cursor` within the server's limit, or `null`.
pub fn cursor(api: &Api, raw: Option<Box<RawValue>>) -> Result<Option<Value>, ApiError> {
    object("cursor", raw, api.max_cursor_bytes, Code::CursorTooLarge)
}

/// A `metadata` within the server's limit, or `null`.
pub fn metadata(api: &Api, raw: Option<Box<RawValue>>) -> Result<Option<Value>, ApiError> {
    object(
        "metadata",
        raw,
        api.max_metadata_bytes,
        Code::MetadataTooLarge,
    )
}

/// A JSON object of at most so many bytes that Postgres can store, or `null`.
fn object(
    field: &'static str,
    raw: Option<Box<RawValue>>,
    max_bytes: usize,
    otherwise: Code,
) -> Result<Option<Value>, ApiError> {
    let Some(raw) = raw else { return Ok(None) };
    if raw.get().len() > max_bytes {
        let message = format!("{field} must be at most {max_bytes} bytes of JSON");
        return Err(ApiError::over_limit(otherwise, message));
    }
    let value: Value = serde_json::from_str(raw.get())
        .map_err(|error| ApiError::invalid(format!("{field} is not JSON: {error}")))?;
    if !value.is_object() {
        return Err(ApiError::invalid(format!(
            "{field} must be a JSON object or null"
        )));
    }
    if holds_nul(&value) {
        return Err(ApiError::invalid(format!(
            "{field} must not contain the character U+0000"
        )));
    }
    Ok(Some(value))
}

/// Postgres has no text with a NUL in it, not even within JSON.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
