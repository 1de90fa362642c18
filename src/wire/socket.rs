//! Messages of a socket that are no events: requests, their answers, and the news that a session is stale.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Code, ErrorBody};
use crate::domain::SessionKey;

/// What every request on a socket has, beside the fields of the HTTP body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SocketRequest)]
pub struct Request {
    /// `join`, `heartbeat`, `cursor`, `leave` or `authenticate`.
    #[schema(required, nullable = false)]
    pub r#type: Option<String>,
    /// Comes back with the answer.
    #[serde(default)]
    pub request_id: Value,
}

/// What a request of the type `authenticate` has beside.
#[derive(Deserialize, ToSchema)]
#[schema(as = SocketAuthenticate)]
pub struct Authenticate {
    /// A fresh credential of the same caller.
    #[schema(required, nullable = false)]
    pub token: Option<String>,
}

/// What a refused request is answered with.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SocketRefusal)]
pub struct Refusal<'a> {
    #[serde(flatten)]
    error: ErrorBody<'a>,
    /// The header `Retry-After` of the same answer over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl<'a> Refusal<'a> {
    /// To be tried again after so many seconds, where that is known.
    pub fn new(error: ErrorBody<'a>, retry_after: Option<u64>) -> Self {
        Self {
            error,
            retry_after_ms: retry_after.map(|seconds| seconds.saturating_mul(1_000)),
        }
    }
}

/// The answer to a request: status and body are those of HTTP.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SocketAnswer)]
pub struct Answer {
    /// `answer`
    r#type: &'static str,
    request_id: Value,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
}

impl Answer {
    /// To the request with this id.
    pub fn new(request_id: Value, status: u16, body: Option<Value>) -> Self {
        Self {
            r#type: "answer",
            request_id,
            status,
            body,
        }
    }
}

/// A session that this socket held is stale.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SocketStale)]
pub struct Stale<'a> {
    /// `stale`
    r#type: &'static str,
    room_id: &'a str,
    user_id: &'a str,
    epoch: i64,
    /// How it ended, as a 409 says it.
    code: &'static str,
}

impl<'a> Stale<'a> {
    /// Why this session is not current.
    pub fn new(session: &'a SessionKey, code: Code) -> Self {
        Self {
            r#type: "stale",
            room_id: session.room_id.as_str(),
            user_id: session.user_id.as_str(),
            epoch: session.epoch,
            code: code.as_str(),
        }
    }
}

/// A message as its text.
pub fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("texts and numbers")
}
