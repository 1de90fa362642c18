//! What a handler knows of who asks.

use std::time::Duration;

use actix_web::HttpRequest;

use super::token;
use crate::access::Caller;
use crate::domain::{RoomId, SessionKey, UserId};
use crate::http::ApiError;
use crate::stream::Client;

/// Who asks, proven, and within their rate. A handler that takes this is not public.
#[derive(Debug, Clone)]
pub struct Access {
    caller: Caller,
    /// In seconds of Unix time, by this host's clock.
    expires_at: Option<u64>,
}

impl Access {
    /// By a credential that does not end.
    pub(super) fn unlimited(caller: Caller) -> Self {
        Self {
            caller,
            expires_at: None,
        }
    }

    /// By one that ends then.
    pub(super) fn until(caller: Caller, expires_at: u64) -> Self {
        Self {
            caller,
            expires_at: Some(expires_at),
        }
    }

    /// As whom this request is counted.
    pub fn client(&self, request: &HttpRequest) -> Client {
        match &self.caller {
            Caller::Anyone => Client::at(request.peer_addr().map(|address| address.ip())),
            Caller::Server => Client::Server,
            Caller::Client(grant) => Client::Subject(grant.subject.clone()),
        }
    }

    /// Whether both are by credentials of the same caller, whatever these let them do.
    pub fn is_of_same_caller(&self, other: &Self) -> bool {
        match (&self.caller, &other.caller) {
            (Caller::Client(one), Caller::Client(another)) => one.subject == another.subject,
            (one, another) => one == another,
        }
    }

    /// Whether the caller may renew and end this session.
    ///
    /// # Errors
    /// 403 where the caller may not be this user in this room.
    pub fn may_act_for(&self, session: &SessionKey) -> Result<(), ApiError> {
        self.may_act_as(&session.user_id, &session.room_id)
    }

    /// # Errors
    /// 403 where the caller may not be this user in this room.
    pub fn may_act_as(&self, user: &UserId, room: &RoomId) -> Result<(), ApiError> {
        allow(
            self.caller.may_act_as(user, room),
            "this credential does not let you act as this user in this room",
        )
    }

    /// # Errors
    /// 403 where the caller may not see who is in this room.
    pub fn may_read(&self, room: &RoomId) -> Result<(), ApiError> {
        allow(
            self.caller.may_read(room),
            "this credential does not let you read this room",
        )
    }

    /// # Errors
    /// 403 where the caller may not see which rooms there are that start like this.
    pub fn may_list(&self, prefix: &str) -> Result<(), ApiError> {
        allow(
            self.caller.may_list(prefix),
            "this credential does not let you list rooms with this prefix",
        )
    }

    /// # Errors
    /// 403 where the caller may not see where this user is.
    pub fn may_locate(&self, user: &UserId) -> Result<(), ApiError> {
        allow(
            self.caller.may_locate(user),
            "this credential does not let you see where this user is",
        )
    }

    /// # Errors
    /// 403 where the caller is no admin of this room.
    pub fn admin_of(&self, room: &RoomId) -> Result<(), ApiError> {
        allow(
            self.caller.may_administer(room),
            "this needs a server key or a token with the scope admin for this room",
        )
    }

    /// # Errors
    /// 403 where the caller is no admin of all rooms.
    pub fn admin(&self) -> Result<(), ApiError> {
        allow(
            self.caller.is_admin(),
            "this needs a server key or a token with the scope admin for all rooms",
        )
    }

    /// How long the credential still holds; `None` where it does not end. A stream ends with it.
    pub fn expires_in(&self) -> Option<Duration> {
        self.expires_at
            .map(|at| Duration::from_secs(at.saturating_sub(token::unix_time())))
    }
}

fn allow(is_allowed: bool, otherwise: &'static str) -> Result<(), ApiError> {
    if is_allowed {
        Ok(())
    } else {
        Err(ApiError::forbidden(otherwise))
    }
}
