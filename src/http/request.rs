//! From bytes to validated values: ids in the path, JSON bodies and their fields.

use std::future::{Ready, ready};
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::{StatusCode, header};
use actix_web::web::{Bytes, Data};
use actix_web::{FromRequest, HttpRequest};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Api, ApiError};
use crate::domain::{DeviceId, RoomId, UserId};

/// The room of `/rooms/{roomId}/…`.
pub struct RoomPath(pub RoomId);

impl FromRequest for RoomPath {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    /// Decodes the path as it was sent: the router's own decoding would replace bytes that are not UTF-8.
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let segment = request.uri().path().split('/').nth(2).unwrap_or("");
        ready(match percent_decode_str(segment).decode_utf8() {
            Ok(id) => RoomId::parse(id).map(Self).map_err(ApiError::from),
            Err(_) => Err(ApiError::invalid("roomId must be percent-encoded UTF-8")),
        })
    }
}

/// A JSON object of the shape `T`.
pub struct Json<T>(pub T);

/// The same, also where it is labelled `text/plain`: what a page can send while it unloads.
pub struct JsonOrText<T>(pub T);

type Reading<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

impl<T: DeserializeOwned + 'static> FromRequest for Json<T> {
    type Error = ApiError;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = read(request, payload, "application/json");
        Box::pin(async move { parse(&bytes.await?).map(Self) })
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for JsonOrText<T> {
    type Error = ApiError;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = read(request, payload, "application/json or text/plain");
        Box::pin(async move { parse(&bytes.await?).map(Self) })
    }
}

/// Reads the body where its content type is one of those named, or none is given.
fn read(
    request: &HttpRequest,
    payload: &mut Payload,
    accepted: &'static str,
) -> impl Future<Output = Result<Bytes, ApiError>> + use<> {
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
    let limit = request
        .app_data::<Data<Api>>()
        .map_or(0, |api| api.body_limit);
    let bytes = Bytes::from_request(request, payload);
    async move {
        if !is_accepted {
            return Err(ApiError::unsupported_media_type(accepted));
        }
        bytes
            .await
            .map_err(|error| match error.as_response_error().status_code() {
                StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large(limit),
                _ => ApiError::invalid(format!("the body cannot be read: {error}")),
            })
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
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

/// A JSON object of at most so many bytes that Postgres can store, or `null`.
pub fn object(
    field: &'static str,
    raw: Option<Box<RawValue>>,
    max_bytes: usize,
) -> Result<Option<Value>, ApiError> {
    let Some(raw) = raw else { return Ok(None) };
    if raw.get().len() > max_bytes {
        return Err(ApiError::invalid(format!(
            "{field} must be at most {max_bytes} bytes of JSON"
        )));
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
