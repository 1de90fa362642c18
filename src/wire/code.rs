//! Every error code, in one table: what `docs/errors.md` lists and a test compares.

use crate::domain::{JoinRefusal, StaleReason};

macro_rules! codes {
    ($($status:literal { $($variant:ident => $word:literal, $meaning:literal;)+ })+) => {
        /// What a program tells apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $meaning] $variant,)+)+ }

        impl Code {
            /// Every one of them, by status.
            pub const ALL: &[Self] = &[$($(Self::$variant,)+)+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($(Self::$variant => $word,)+)+ }
            }

            /// The HTTP status that it comes with.
            pub const fn status(self) -> u16 {
                match self { $($(Self::$variant)|+ => $status,)+ }
            }

            /// What it means to a client, and what to do about it.
            pub const fn meaning(self) -> &'static str {
                match self { $($(Self::$variant => $meaning,)+)+ }
            }
        }
    };
}

codes! {
    400 {
        InvalidRequest => "invalid_request", "The request cannot be understood; the sentence names the field and what is allowed.";
        MetadataTooLarge => "metadata_too_large", "The metadata has more bytes of JSON than `LEASEHOLD_MAX_METADATA_BYTES`.";
        CursorTooLarge => "cursor_too_large", "The cursor has more bytes of JSON than `LEASEHOLD_MAX_CURSOR_BYTES`.";
        BatchTooLarge => "batch_too_large", "A batch has more items than `LEASEHOLD_MAX_BATCH_ITEMS`; send several.";
    }
    401 {
        Unauthorized => "unauthorized", "There is no credential, or it does not hold: unknown, expired, not yet valid, wrongly signed.";
    }
    403 {
        Forbidden => "forbidden", "The credential holds and does not allow this.";
        Blocked => "blocked", "The user was removed from the room and may not join it yet.";
    }
    404 {
        NotFound => "not_found", "There is nothing at this address.";
        RoomNotFound => "room_not_found", "Nobody is in the room, so it does not exist.";
    }
    405 {
        MethodNotAllowed => "method_not_allowed", "The address has other methods; the header `Allow` names them.";
    }
    408 {
        RequestTimeout => "request_timeout", "The body did not arrive within `LEASEHOLD_REQUEST_TIMEOUT_MS`.";
    }
    409 {
        AlreadyPresent => "already_present", "`ifPresent: \"reject\"`, and the user has a live session in the room.";
        RoomFull => "room_full", "The room has as many members as `LEASEHOLD_MAX_MEMBERS_PER_ROOM`.";
        TooManyDevices => "too_many_devices", "The user has as many devices in the room as `LEASEHOLD_MAX_DEVICES_PER_MEMBER`.";
        TooManyRooms => "too_many_rooms", "There are as many rooms as `LEASEHOLD_MAX_ROOMS`, and this one is not among them.";
        Superseded => "superseded", "Stale session: a later join on the same device took its place. Stop.";
        Expired => "expired", "Stale session: its lease ran out. Join again.";
        Left => "left", "Stale session: it left.";
        Removed => "removed", "Stale session: somebody removed it. Stop.";
        RoomClosed => "room_closed", "Stale session: somebody closed the room.";
        UnknownSession => "unknown_session", "Stale session: no such epoch is known on this device, or its history is purged.";
    }
    410 {
        PositionExpired => "position_expired", "The history after this position is purged in part, or it is another database's. Start from the oldest kept or from `latest`.";
    }
    413 {
        PayloadTooLarge => "payload_too_large", "The body is larger than `LEASEHOLD_MAX_BODY_BYTES`, for a batch `LEASEHOLD_MAX_BATCH_BYTES`.";
    }
    415 {
        UnsupportedMediaType => "unsupported_media_type", "The body's content type is not one that the address reads.";
    }
    429 {
        RateLimited => "rate_limited", "More requests than `LEASEHOLD_RATE_LIMIT` allows this client; wait for `Retry-After` seconds.";
    }
    503 {
        TooManySubscribers => "too_many_subscribers", "This instance serves as many subscriptions as `LEASEHOLD_MAX_SUBSCRIBERS`, or as many for the room as `LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM` or for the client as `LEASEHOLD_MAX_SUBSCRIBERS_PER_CLIENT`; try again later.";
        Unavailable => "unavailable", "Overload, or the database does not answer; try again after `Retry-After` seconds.";
    }
}

impl From<StaleReason> for Code {
    fn from(reason: StaleReason) -> Self {
        match reason {
            StaleReason::Superseded => Self::Superseded,
            StaleReason::Expired => Self::Expired,
            StaleReason::Left => Self::Left,
            StaleReason::Removed => Self::Removed,
            StaleReason::RoomClosed => Self::RoomClosed,
            StaleReason::UnknownSession => Self::UnknownSession,
        }
    }
}

impl From<JoinRefusal> for Code {
    fn from(refusal: JoinRefusal) -> Self {
        match refusal {
            JoinRefusal::AlreadyPresent => Self::AlreadyPresent,
            JoinRefusal::Blocked => Self::Blocked,
            JoinRefusal::RoomFull => Self::RoomFull,
            JoinRefusal::TooManyDevices => Self::TooManyDevices,
            JoinRefusal::TooManyRooms => Self::TooManyRooms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_domain_is_the_same_on_the_wire() {
        for reason in StaleReason::ALL {
            assert_eq!(Code::from(*reason).as_str(), reason.as_str());
        }
        for refusal in JoinRefusal::ALL {
            assert_eq!(Code::from(*refusal).as_str(), refusal.as_str());
        }
    }
}
