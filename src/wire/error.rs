//! What an error looks like: `{"error": "a sentence", "code": "machine_code"}`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::Code;
use crate::domain::{Elsewhere, InvalidId};

/// Every answer other than success.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    /// A sentence for people; it may change.
    pub error: &'a str,
    /// What a program tells apart; one of those in docs/errors.md.
    pub code: &'a str,
    /// What goes with the code.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ErrorDetails)]
    pub details: Option<&'a ErrorDetails>,
}

/// What goes with some of the codes, and is left out with the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetails {
    /// With `blocked`: when the block ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    blocked_until_ms: Option<i64>,
    /// With `already_present`: the number of the join of the session that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    epoch: Option<i64>,
    /// With `already_present`: the device of that session, null for the unnamed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, required = false)]
    device_id: Option<Option<String>>,
    /// With `already_present`: when the lease of that session ends unless it is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at_ms: Option<i64>,
}

impl ErrorDetails {
    /// A block that ends then.
    pub fn blocked(until: DateTime<Utc>) -> Self {
        Self {
            blocked_until_ms: Some(until.timestamp_millis()),
            ..Self::default()
        }
    }

    /// A session in the way.
    pub fn already_present(elsewhere: &Elsewhere) -> Self {
        Self {
            epoch: Some(elsewhere.epoch),
            device_id: Some(elsewhere.device_id.name().map(str::to_owned)),
            expires_at_ms: Some(elsewhere.lease_expires_at.timestamp_millis()),
            ..Self::default()
        }
    }
}

/// A request that cannot be understood: a 400 that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidRequest {
    /// `invalid_request`, or the code of the limit that is exceeded.
    pub code: Code,
    /// Which field, and what is allowed.
    pub message: String,
}

impl InvalidRequest {
    /// A field that is missing or wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self::over_limit(Code::InvalidRequest, message)
    }

    /// A limit on a part of the request, with a code of its own.
    pub fn over_limit(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<InvalidId> for InvalidRequest {
    fn from(error: InvalidId) -> Self {
        Self::new(error.to_string())
    }
}
