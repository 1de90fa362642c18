//! From the fields of a request to validated values; each error names the field and what is allowed.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Code, InvalidRequest};
use crate::access::MAX_INFO_BYTES;
use crate::domain::{DeviceId, Lease, LeaseRules, RoomId, SessionKey, UserId};

/// What the fields of a request may be.
#[derive(Debug, Clone, Copy)]
pub struct FieldRules {
    /// Which lengths a lease may have.
    pub leases: LeaseRules,
    /// The largest metadata, in bytes of JSON.
    pub max_metadata_bytes: usize,
    /// The largest cursor, in bytes of JSON.
    pub max_cursor_bytes: usize,
}

impl FieldRules {
    /// A `leaseMs` within the server's bounds, if one was sent.
    pub(super) fn lease(&self, field: Option<i64>) -> Result<Option<Lease>, InvalidRequest> {
        let Some(asked) = field else { return Ok(None) };
        let (min, max) = (self.leases.min_ms, self.leases.max_ms);
        match u32::try_from(asked) {
            Ok(lease_ms) if (min..=max).contains(&lease_ms) => {
                Ok(Some(self.leases.lease(lease_ms)))
            }
            _ => Err(InvalidRequest::new(format!(
                "leaseMs must be from {min} to {max}"
            ))),
        }
    }

    /// A `cursor` within the server's limit, or `null`.
    pub(super) fn cursor(
        &self,
        raw: Option<Box<RawValue>>,
    ) -> Result<Option<Value>, InvalidRequest> {
        object("cursor", raw, self.max_cursor_bytes, Code::CursorTooLarge)
    }

    /// A `metadata` within the server's limit, or `null`.
    pub(super) fn metadata(
        &self,
        raw: Option<Box<RawValue>>,
    ) -> Result<Option<Value>, InvalidRequest> {
        object(
            "metadata",
            raw,
            self.max_metadata_bytes,
            Code::MetadataTooLarge,
        )
    }
}

/// An `info` within the limit, or `null`.
pub(super) fn info(raw: Option<Box<RawValue>>) -> Result<Option<Value>, InvalidRequest> {
    object("info", raw, MAX_INFO_BYTES, Code::InvalidRequest)
}

/// An object of the shape `T`; the error names the field.
///
/// # Errors
/// Where the text is not JSON in UTF-8, not an object, or a field has another type.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, InvalidRequest> {
    // Serde would not look into the fields that it skips.
    let text =
        str::from_utf8(bytes).map_err(|_| InvalidRequest::new("the body must be JSON in UTF-8"))?;
    // Serde reads a struct from an array too, by position.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(InvalidRequest::new("the body must be a JSON object"));
    }
    serde_json::from_str(text).map_err(|_| {
        // Only a failure pays for knowing the field.
        let mut deserializer = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Err(error) if error.inner().is_data() => InvalidRequest::new(error.to_string()),
            Err(error) => InvalidRequest::new(format!("the body is not JSON: {}", error.inner())),
            Ok(_) => InvalidRequest::new("the body is not JSON: something follows the object"),
        }
    })
}

/// A field where `null` means something else than leaving it out.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A required `roomId`.
pub(super) fn room_id(field: Option<String>) -> Result<RoomId, InvalidRequest> {
    Ok(RoomId::parse(field.ok_or_else(|| {
        InvalidRequest::new("roomId is required")
    })?)?)
}

/// A required `userId`.
pub(super) fn user_id(field: Option<String>) -> Result<UserId, InvalidRequest> {
    Ok(UserId::parse(field.ok_or_else(|| {
        InvalidRequest::new("userId is required")
    })?)?)
}

/// An optional `deviceId`: the unnamed device where it is left out.
pub(super) fn device_id(field: Option<String>) -> Result<DeviceId, InvalidRequest> {
    Ok(field.map_or(Ok(DeviceId::unnamed()), DeviceId::parse)?)
}

/// The session that a request names in these fields.
pub(super) fn session(
    room_id: RoomId,
    user: Option<String>,
    device: Option<String>,
    epoch: Option<i64>,
) -> Result<SessionKey, InvalidRequest> {
    let key = SessionKey {
        room_id,
        user_id: user_id(user)?,
        device_id: device_id(device)?,
        epoch: epoch.ok_or_else(|| InvalidRequest::new("epoch is required"))?,
    };
    if key.epoch < 0 {
        return Err(InvalidRequest::new("epoch must not be negative"));
    }
    Ok(key)
}

/// A JSON object of at most so many bytes that Postgres can store, or `null`.
fn object(
    field: &'static str,
    raw: Option<Box<RawValue>>,
    max_bytes: usize,
    too_large: Code,
) -> Result<Option<Value>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    if raw.get().len() > max_bytes {
        let message = format!("{field} must be at most {max_bytes} bytes of JSON");
        return Err(InvalidRequest::over_limit(too_large, message));
    }
    let value: Value = serde_json::from_str(raw.get())
        .map_err(|error| InvalidRequest::new(format!("{field} is not JSON: {error}")))?;
    if !value.is_object() {
        return Err(InvalidRequest::new(format!(
            "{field} must be a JSON object or null"
        )));
    }
    if holds_nul(&value) {
        return Err(InvalidRequest::new(format!(
            "{field} must not contain the character U+0000"
        )));
    }
    Ok(Some(value))
}

/// Whether the value has a NUL anywhere. Postgres has no text with one in it, not even within JSON.
pub fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
