//! What a handler knows of who asks.

use std::time::Duration;

use actix_web::HttpRequest;

use super::claims;
use crate::access::{Caller, Grant};
use crate::domain::{Join, RoomId, SessionKey, UserId};
use crate::http::ApiError;
use crate::http::client_address::client_address;
use crate::stream::Client;

/// Who asks, proven, and within their rate. A handler that takes this is not public.
#[derive(Debug, Clone)]
pub struct Access {
    caller: Caller,
    /// In Unix time, by this host's clock.
    expires_at: Option<Duration>,
}

impl Access {
    /// By a credential that does not end.
    pub(super) fn unlimited(caller: Caller) -> Self {
        Self {
            caller,
            expires_at: None,
        }
    }

    /// By one that ends then, in Unix time.
    pub(super) fn until(caller: Caller, expires_at: Duration) -> Self {
        Self {
            caller,
            expires_at: Some(expires_at),
        }
    }

    /// As whom this request is counted.
    pub fn client(&self, request: &HttpRequest) -> Client {
        match &self.caller {
            Caller::Anyone => Client::at(client_address(request)),
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
    /// 403 where the caller may not administer every room with this prefix.
    pub fn admin_of_all(&self, prefix: &str) -> Result<(), ApiError> {
        allow(
            self.caller.may_administer_all(prefix),
            "this needs a server key or a token with the scope admin for all rooms with this prefix",
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
    /// 403 where the caller is no admin at all.
    pub fn admin_of_any(&self) -> Result<(), ApiError> {
        allow(
            self.caller.is_admin_of_any(),
            "this needs a server key or a token with the scope admin",
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

    /// The join with what vouches for it: the claims of the caller's token, or what a server key passed.
    ///
    /// # Errors
    /// 403 where the holder of a token passes what only its claims can say.
    pub fn vouch(&self, join: Join) -> Result<Join, ApiError> {
        let Some(grant) = self.grant() else {
            return Ok(join);
        };
        allow(
            join.info.is_none() && join.capacity.is_none(),
            "info and maxMembers are claims of the token; only a server key passes them in a join",
        )?;
        Ok(Join {
            // It speaks of the token's holder, whomever an admin lets in.
            info: grant.info.clone().filter(|_| grant.subject == join.user_id),
            capacity: grant.max_members,
            ..join
        })
    }

    /// Whom the token names; nobody by a server key.
    pub fn subject(&self) -> Option<&UserId> {
        self.grant().map(|grant| &grant.subject)
    }

    /// Who reads this room, where that is somebody who can be kept from it: admins of it cannot.
    pub fn reader_of(&self, room: &RoomId) -> Option<&UserId> {
        self.subject().filter(|_| !self.caller.may_administer(room))
    }

    fn grant(&self) -> Option<&Grant> {
        match &self.caller {
            Caller::Anyone | Caller::Server => None,
            Caller::Client(grant) => Some(grant),
        }
    }

    /// How long the credential still holds, leeway included; `None` where it does not end. A stream ends with it.
    pub fn expires_in(&self) -> Option<Duration> {
        self.expires_at
            .map(|at| at.saturating_sub(claims::unix_time()))
    }
}

fn allow(is_allowed: bool, otherwise: &'static str) -> Result<(), ApiError> {
    if is_allowed {
        Ok(())
    } else {
        Err(ApiError::forbidden(otherwise))
    }
}
