//! The one place where failures become answers: `{"error": "a sentence", "code": "machine_code"}`.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;

use crate::coalesce::NoAnswer;
use crate::domain::{InvalidId, JoinRefusal, StaleReason};
use crate::store::StoreError;

/// Seconds after which a client that was refused for lack of capacity may try again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// An answer other than success.
#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    allow: Option<&'static str>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    code: &'a str,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            allow: None,
        }
    }

    /// 400: the request cannot be understood; the message says which field and what is allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// 404: no such address.
    pub fn unknown_route() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "there is nothing at this address",
        )
    }

    /// 404: nobody is in the room.
    pub fn room_not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "room_not_found",
            "the room does not exist: nobody is in it",
        )
    }

    /// 405, naming the methods that the address has.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this address answers only {allow}");
        let error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            message,
        );
        Self {
            allow: Some(allow),
            ..error
        }
    }

    /// 413: the body is larger than the server reads.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body must be at most {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
    }

    /// 415: the body is said to be something else.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!("the content type must be {accepted}");
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            message,
        )
    }

    /// 503: nothing is wrong with the request; the service cannot answer it now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// What a program tells apart.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
        }
        if let Some(methods) = self.allow {
            response.insert_header((ALLOW, methods));
        }
        response.json(ErrorBody {
            error: &self.message,
            code: self.code,
        })
    }
}

impl From<InvalidId> for ApiError {
    fn from(error: InvalidId) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<StaleReason> for ApiError {
    fn from(reason: StaleReason) -> Self {
        Self::new(StatusCode::CONFLICT, reason.as_str(), "stale session")
    }
}

impl From<JoinRefusal> for ApiError {
    fn from(refusal: JoinRefusal) -> Self {
        let (status, message) = match refusal {
            JoinRefusal::AlreadyPresent => {
                (StatusCode::CONFLICT, "the user is in the room already")
            }
            JoinRefusal::Blocked => (
                StatusCode::FORBIDDEN,
                "the user was removed and may not join yet",
            ),
            JoinRefusal::RoomFull => (StatusCode::CONFLICT, "the room is full"),
            JoinRefusal::TooManyDevices => (
                StatusCode::CONFLICT,
                "the user has too many devices in the room",
            ),
            JoinRefusal::TooManyRooms => (StatusCode::CONFLICT, "there are too many rooms"),
        };
        Self::new(status, refusal.as_str(), message)
    }
}

impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Rejected(_) => {
                tracing::warn!(%error, "the database refused a value that validation let through");
                Self::invalid("the database cannot store a value of this request")
            }
            StoreError::Unavailable(_) | StoreError::Conflict(_) => {
                tracing::warn!(%error, "no answer from the database");
                Self::unavailable("the database is not available; try again")
            }
            StoreError::Schema(_) | StoreError::BadUrl | StoreError::Unexpected(_) => {
                tracing::error!(%error, "the database does not answer as it should");
                Self::unavailable("the service cannot answer; its log says why")
            }
        }
    }
}

impl From<NoAnswer> for ApiError {
    fn from(error: NoAnswer) -> Self {
        match error {
            NoAnswer::Failed(error) => Self::from(&*error),
            NoAnswer::Overloaded | NoAnswer::TimedOut(_) | NoAnswer::Stopping => {
                Self::unavailable(format!("{error}; try again"))
            }
        }
    }
}
