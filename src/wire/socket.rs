//! Messages of a socket that are no events: requests, their answers, and the news that a session is stale.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Code, ErrorBody, InvalidRequest};
use crate::domain::{RoomId, SessionKey, UserId};

/// What every request on a socket has, beside the fields of the HTTP body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SocketRequest)]
pub struct Request {
    /// `join`, `heartbeat`, `cursor`, `leave`, `subscribe`, `unsubscribe` or `authenticate`.
    #[schema(required, nullable = false)]
    pub r#type: Option<String>,
    /// Comes back with the answer.
    #[serde(default)]
    pub request_id: Value,
    /// The room; that of the socket's address where it is left out. Not for `authenticate`.
    #[serde(default)]
    #[schema(value_type = String, min_length = 1, max_length = 256)]
    room_id: Value,
    /// Of `subscribe`: `count` for how many they are; everybody where it is left out.
    #[schema(nullable = false)]
    pub view: Option<String>,
    /// Of `subscribe`, in place of a room: the people to follow from now on, 200 at most; none to follow nobody.
    #[schema(nullable = false, max_items = 200)]
    users: Option<Vec<String>>,
}

impl Request {
    /// The people that it names, if it names any.
    ///
    /// # Errors
    /// Where one of them is no valid id.
    pub fn users(&self) -> Result<Option<Vec<UserId>>, InvalidRequest> {
        let Some(ids) = &self.users else {
            return Ok(None);
        };
        let users = ids.iter().map(|id| UserId::parse(id.as_str()));
        Ok(Some(users.collect::<Result<_, _>>()?))
    }

    /// The room that it names, if it names one.
    ///
    /// # Errors
    /// Where it is no valid id.
    pub fn room(&self) -> Result<Option<RoomId>, InvalidRequest> {
        match &self.room_id {
            Value::Null => Ok(None),
            Value::String(id) => Ok(Some(RoomId::parse(id.as_str())?)),
            _ => Err(InvalidRequest::new("roomId must be a string")),
        }
    }
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

/// A room is not followed any longer, as the socket's credential does not allow it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SocketUnsubscribed)]
pub struct Unsubscribed<'a> {
    /// `unsubscribed`
    r#type: &'static str,
    room_id: &'a str,
    /// `forbidden`
    code: &'static str,
}

impl<'a> Unsubscribed<'a> {
    /// From this room.
    pub fn new(room_id: &'a RoomId) -> Self {
        Self {
            r#type: "unsubscribed",
            room_id: room_id.as_str(),
            code: Code::Forbidden.as_str(),
        }
    }
}

/// A message as its text.
pub fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("texts and numbers")
}
