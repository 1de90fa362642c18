//! Every error code, in one table: what `docs/errors.md` lists and a test compares.

use crate::domain::{JoinRefusal, NoPlace, StaleReason};

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
        Unauthorized => "unauthorized", "There is no credential, or it does not hold: unknown, expired, not yet valid, wrongly signed, for somebody else, with claims that cannot be.";
    }
    403 {
        Forbidden => "forbidden", "The credential holds and does not allow this; or the request is of a page whose origin `LEASEHOLD_CORS_ORIGINS` does not name, or, without authentication, for a name other than this machine's own.";
        Blocked => "blocked", "The user was put out of the room, or the room is closed for a time: no join, and for who was put out no reading, before `blockedUntilMs`. Stop until then.";
        RoomLocked => "room_locked", "The room lets nobody in who is not inside.";
    }
    404 {
        NotFound => "not_found", "There is nothing at this address.";
        RoomNotFound => "room_not_found", "Nobody is in the room, so it does not exist.";
        MemberNotFound => "member_not_found", "The person is not in the room.";
        WebhookNotFound => "webhook_not_found", "There is no webhook of this name.";
    }
    405 {
        MethodNotAllowed => "method_not_allowed", "The address has other methods; the header `Allow` names them.";
    }
    408 {
        RequestTimeout => "request_timeout", "The body did not arrive within `LEASEHOLD_REQUEST_TIMEOUT_MS`.";
    }
    409 {
        AlreadyPresent => "already_present", "`ifPresent: \"reject\"`, and the user has a live session on another device, whose `epoch`, `deviceId` and `expiresAtMs` are here.";
        RoomFull => "room_full", "The room has as many members as `LEASEHOLD_MAX_MEMBERS_PER_ROOM`, or as this join may make it.";
        TooManyDevices => "too_many_devices", "The user has as many devices in the room as `LEASEHOLD_MAX_DEVICES_PER_MEMBER`, and all of them are connected.";
        TooManyRooms => "too_many_rooms", "There are as many rooms as `LEASEHOLD_MAX_ROOMS`, and this one is not among them.";
        Superseded => "superseded", "Stale session: a later join on the same device took its place. Stop.";
        Expired => "expired", "Stale session: its lease ran out. Join again.";
        Left => "left", "Stale session: it left. Stop, or join again as somebody who comes back.";
        Removed => "removed", "Stale session: somebody removed it. Stop.";
        RoomClosed => "room_closed", "Stale session: somebody closed the room. Stop; a join would open it anew.";
        Moved => "moved", "Stale session: its room went to another cell, which is the one that answers. Join again.";
        UnknownSession => "unknown_session", "Stale session: no such epoch is known on this device, or its history is purged. Join again.";
    }
    410 {
        PositionExpired => "position_expired", "What follows this position cannot be told without a gap: it is purged in part, or the position is another database's or of a history that was rolled back. Take stock anew (`GET /rooms`), and go on from `latest` or from the oldest kept.";
    }
    413 {
        PayloadTooLarge => "payload_too_large", "The body is larger than `LEASEHOLD_MAX_BODY_BYTES`, for a batch `LEASEHOLD_MAX_BATCH_BYTES`.";
    }
    415 {
        UnsupportedMediaType => "unsupported_media_type", "The body's content type is not one that the address reads.";
    }
    421 {
        Misdirected => "misdirected", "Another cell has this room, or is about to: the proxy sent the request to the wrong one. Nothing was done; ask again through the proxy after `Retry-After` seconds.";
    }
    429 {
        RateLimited => "rate_limited", "More requests than `LEASEHOLD_RATE_LIMIT` allows this client; wait for `Retry-After` seconds.";
    }
    503 {
        TooManySubscribers => "too_many_subscribers", "This instance serves as many subscriptions as `LEASEHOLD_MAX_SUBSCRIBERS`, or as many for the room as `LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM` or for the client as `LEASEHOLD_MAX_SUBSCRIBERS_PER_CLIENT`; try again later.";
        Unavailable => "unavailable", "Overload, or the database does not answer, or the key of a token is being fetched; try again after `Retry-After` seconds.";
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
            StaleReason::Moved => Self::Moved,
            StaleReason::Misdirected => Self::Misdirected,
            StaleReason::UnknownSession => Self::UnknownSession,
        }
    }
}

impl From<NoPlace> for Code {
    fn from(no_place: NoPlace) -> Self {
        match no_place {
            NoPlace::RoomFull => Self::RoomFull,
            NoPlace::RoomLocked => Self::RoomLocked,
            NoPlace::TooManyDevices => Self::TooManyDevices,
            NoPlace::TooManyRooms => Self::TooManyRooms,
        }
    }
}

impl From<&JoinRefusal> for Code {
    fn from(refusal: &JoinRefusal) -> Self {
        match refusal {
            JoinRefusal::AlreadyPresent(_) => Self::AlreadyPresent,
            JoinRefusal::Blocked(_) => Self::Blocked,
            JoinRefusal::NoPlace(no_place) => (*no_place).into(),
            JoinRefusal::Over(reason) => (*reason).into(),
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
        for refusal in NoPlace::ALL {
            assert_eq!(Code::from(*refusal).as_str(), refusal.as_str());
        }
    }
}
