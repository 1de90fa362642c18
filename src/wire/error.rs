//! What an error looks like: `{"error": "a sentence", "code": "machine_code"}`.

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
    #[schema(inline)]
    pub details: Option<&'a ErrorDetails>,
}

/// What goes with some of the codes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ErrorDetails {
    /// `blocked`
    #[serde(rename_all = "camelCase")]
    Blocked {
        /// When the block ends.
        blocked_until_ms: i64,
    },
    /// `already_present`: the newest session on another device.
    #[serde(rename_all = "camelCase")]
    AlreadyPresent {
        /// The number of its join.
        epoch: i64,
        /// Null for the unnamed device.
        device_id: Option<String>,
        /// When its lease ends unless it is renewed.
        expires_at_ms: i64,
    },
}

impl From<&Elsewhere> for ErrorDetails {
    fn from(elsewhere: &Elsewhere) -> Self {
        Self::AlreadyPresent {
            epoch: elsewhere.epoch,
            device_id: elsewhere.device_id.name().map(str::to_owned),
            expires_at_ms: elsewhere.lease_expires_at.timestamp_millis(),
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
