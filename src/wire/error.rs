//! What an error looks like: `{"error": "a sentence", "code": "machine_code"}`.

use serde::Serialize;
use utoipa::ToSchema;

use super::Code;
use crate::domain::InvalidId;

/// Every answer other than success.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    /// A sentence for people; it may change.
    pub error: &'a str,
    /// What a program tells apart; one of those in docs/errors.md.
    pub code: &'a str,
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
