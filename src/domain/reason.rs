//! Why a session ended, is not current, or never began: closed sets, published as error codes.

use super::word::words;

words! {
    /// How a session, and with its last one a room's lifetime, ended.
    EndReason {
        /// Its client said goodbye.
        Left => "left",
        /// Its lease ran out.
        Expired => "expired",
        /// A later join on the same device took its place.
        Superseded => "superseded",
        /// Somebody removed the member.
        Removed => "removed",
        /// Somebody closed the room.
        RoomClosed => "room_closed",
        /// The room went to another database: join again, there.
        Moved => "moved",
    }
}

words! {
    /// Why a session is stale: how it ended, so that a client knows whether to join again or to stop.
    StaleReason {
        /// A later join on the same device took its place: stop.
        Superseded => "superseded",
        /// Its lease ran out: join again.
        Expired => "expired",
        /// It left.
        Left => "left",
        /// Somebody removed it: stop.
        Removed => "removed",
        /// The room was closed.
        RoomClosed => "room_closed",
        /// The room went to another database and is there: join again.
        Moved => "moved",
        /// Another database has the room, and knows.
        Misdirected => "misdirected",
        /// No such epoch is known on this device, or its history is purged.
        UnknownSession => "unknown_session",
    }
}

words! {
    /// Why there is no place for somebody who wants to join.
    NoPlace {
        /// The room has as many members as it may have.
        RoomFull => "room_full",
        /// Nobody is let in who is not inside.
        RoomLocked => "room_locked",
        /// The user has as many devices in the room as they may have.
        TooManyDevices => "too_many_devices",
        /// There are as many rooms as there may be, and this one does not exist yet.
        TooManyRooms => "too_many_rooms",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_parses_to_what_it_came_from() {
        for reason in EndReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        for reason in StaleReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        for refusal in NoPlace::ALL {
            assert_eq!(refusal.as_str().parse(), Ok(*refusal));
        }
    }
}
