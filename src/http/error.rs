//! The one place where failures become answers: `{"error": "a sentence", "code": "machine_code"}`.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use chrono::{DateTime, Utc};

use crate::coalesce::NoAnswer;
use crate::domain::{InvalidId, JoinRefusal, NoPlace, StaleReason};
use crate::store::StoreError;
use crate::stream::NoSeat;
use crate::wire::{Code, ErrorBody, ErrorDetails, InvalidRequest};

/// Seconds after which a client that was refused for lack of capacity may try again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// An answer other than success.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    message: String,
    header: Option<(HeaderName, HeaderValue)>,
    details: Option<Box<ErrorDetails>>,
}

impl ApiError {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            header: None,
            details: None,
        }
    }

    fn with(self, name: HeaderName, value: HeaderValue) -> Self {
        Self {
            header: Some((name, value)),
            ..self
        }
    }

    /// 400: the request cannot be understood; the message says which field and what is allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// 401: nobody, or somebody who cannot prove who they are. Says why without repeating the credential.
    pub fn unauthorized(message: &'static str, challenge: &'static str) -> Self {
        Self::new(Code::Unauthorized, message)
            .with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// 403: known, and not allowed to do this.
    pub fn forbidden(message: &'static str) -> Self {
        Self::new(Code::Forbidden, message)
    }

    /// 403: the user was put out of the room until then, or nobody may open it. `now` is the
    /// database's, as `until` is.
    pub fn blocked(until: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let left = (until - now).num_milliseconds().max(0).cast_unsigned();
        let error = Self::new(
            Code::Blocked,
            "the user was put out and may not be here yet",
        )
        .with(RETRY_AFTER, HeaderValue::from(left.div_ceil(1_000).max(1)));
        Self {
            details: Some(Box::new(ErrorDetails::blocked(until))),
            ..error
        }
    }

    /// 404: the person is not in the room.
    pub fn member_not_found() -> Self {
        Self::new(Code::MemberNotFound, "the person is not in the room")
    }

    /// 404: nobody made it, or somebody deleted it.
    pub fn webhook_not_found() -> Self {
        Self::new(
            Code::WebhookNotFound,
            "there is no webhook of this name; PUT makes one",
        )
    }

    /// 404: no such address.
    pub fn unknown_route() -> Self {
        Self::new(Code::NotFound, "there is nothing at this address")
    }

    /// 404: nobody is in the room.
    pub fn room_not_found() -> Self {
        Self::new(
            Code::RoomNotFound,
            "the room does not exist: nobody is in it",
        )
    }

    /// 405, naming the methods that the address has.
    pub fn method_not_allowed(allow: &str) -> Self {
        let error = Self::new(
            Code::MethodNotAllowed,
            format!("this address answers only {allow}"),
        );
        match HeaderValue::from_str(allow) {
            Ok(methods) => error.with(ALLOW, methods),
            Err(_) => error,
        }
    }

    /// 408: the body did not come in time.
    pub fn too_slow() -> Self {
        Self::new(Code::RequestTimeout, "the body did not arrive in time")
    }

    /// 410: history that the reader has not seen is gone, or never was of this database.
    pub fn position_expired() -> Self {
        Self::new(
            Code::PositionExpired,
            "what follows this position cannot be told without a gap: it is purged in part, or the position is of another database or of a history that was rolled back; take stock anew, and go on from latest or from the oldest kept",
        )
    }

    /// 413: the body is larger than the server reads.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body must be at most {limit} bytes");
        Self::new(Code::PayloadTooLarge, message)
    }

    /// 415: the body is said to be something else.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!("the content type must be {accepted}");
        Self::new(Code::UnsupportedMediaType, message)
    }

    /// 421: the room is another database's.
    pub fn misdirected() -> Self {
        Self::new(
            Code::Misdirected,
            "another cell has this room; ask again through the proxy, and if that sends it here again, correct its map of slots",
        )
        .with(RETRY_AFTER, RETRY_AFTER_SECONDS)
    }

    /// 429: more requests than this client may make; they may go on after so many seconds.
    pub fn rate_limited(seconds: u64) -> Self {
        Self::new(
            Code::RateLimited,
            format!("too many requests; try again in {seconds} s"),
        )
        .with(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// 503: nothing is wrong with the request; the service cannot answer it now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message).with(RETRY_AFTER, RETRY_AFTER_SECONDS)
    }

    /// After how many seconds to try again, where that is known.
    pub fn retry_after(&self) -> Option<u64> {
        let header = self.header.as_ref();
        let (_, value) = header.filter(|(name, _)| *name == RETRY_AFTER)?;
        value.to_str().ok()?.parse().ok()
    }

    /// As it is sent.
    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            error: &self.message,
            code: self.code.as_str(),
            details: self.details.as_deref(),
        }
    }

    /// Whether it says of a session that it is not current here: asking again here changes nothing.
    pub fn is_of_the_session(&self) -> bool {
        matches!(self.code.status(), 409 | 421)
    }

    /// What a program tells apart.
    pub fn code(&self) -> Code {
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
        StatusCode::from_u16(self.code.status())
            .expect("a status of the table of codes is one of HTTP")
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        if let Some(header) = &self.header {
            response.insert_header(header.clone());
        }
        response.json(self.body())
    }
}

impl From<InvalidRequest> for ApiError {
    fn from(error: InvalidRequest) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<InvalidId> for ApiError {
    fn from(error: InvalidId) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<StaleReason> for ApiError {
    fn from(reason: StaleReason) -> Self {
        match reason {
            StaleReason::Misdirected => Self::misdirected(),
            reason => Self::new(reason.into(), "stale session"),
        }
    }
}

impl From<JoinRefusal> for ApiError {
    fn from(refusal: JoinRefusal) -> Self {
        let message = match &refusal {
            JoinRefusal::AlreadyPresent(_) => "the user is in the room already",
            JoinRefusal::Blocked(block) => return Self::blocked(block.until, block.as_of),
            JoinRefusal::NoPlace(NoPlace::RoomFull) => "the room is full",
            JoinRefusal::NoPlace(NoPlace::RoomLocked) => "the room is locked",
            JoinRefusal::NoPlace(NoPlace::TooManyDevices) => {
                "the user has too many devices in the room"
            }
            JoinRefusal::NoPlace(NoPlace::TooManyRooms) => "there are too many rooms",
            JoinRefusal::Over(reason) => return (*reason).into(),
        };
        let details = match &refusal {
            JoinRefusal::AlreadyPresent(elsewhere) => {
                Some(Box::new(ErrorDetails::already_present(elsewhere)))
            }
            _ => None,
        };
        Self {
            details,
            ..Self::new((&refusal).into(), message)
        }
    }
}

impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Rejected(_) => {
                tracing::warn!(%error, "the database refused a value that validation let through");
                Self::invalid("the database cannot store a value of this request")
            }
            StoreError::Misdirected => Self::misdirected(),
            StoreError::Unavailable(_)
            | StoreError::ReadOnly(_)
            | StoreError::Conflict(_)
            | StoreError::Locked
            | StoreError::WaitedInVain(_) => {
                tracing::warn!(%error, "no answer from the database");
                Self::unavailable("the database is not available; try again")
            }
            StoreError::Schema(_)
            | StoreError::BadUrl(_)
            | StoreError::CellRefused(_)
            | StoreError::Distributed(_)
            | StoreError::Unexpected(_) => {
                tracing::error!(%error, "the database does not answer as it should");
                Self::unavailable("the service cannot answer; its log says why")
            }
        }
    }
}

impl From<NoSeat> for ApiError {
    fn from(refusal: NoSeat) -> Self {
        let code = match refusal {
            NoSeat::InstanceFull(_)
            | NoSeat::RoomFull(_)
            | NoSeat::LobbyFull(_)
            | NoSeat::ClientFull(_) => Code::TooManySubscribers,
            NoSeat::Stopping => Code::Unavailable,
        };
        Self::new(code, format!("{refusal}; try again later"))
            .with(RETRY_AFTER, RETRY_AFTER_SECONDS)
    }
}

impl From<NoAnswer> for ApiError {
    fn from(error: NoAnswer) -> Self {
        match error {
            NoAnswer::Failed(error) => Self::from(&*error),
            NoAnswer::Overloaded | NoAnswer::TimedOut(_) | NoAnswer::Held | NoAnswer::Stopping => {
                Self::unavailable(format!("{error}; try again"))
            }
        }
    }
}
