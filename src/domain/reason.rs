//! Why a session is not current, and why a join is refused: closed sets, published as error codes.

use std::str::FromStr;

/// A text from the database that is not in the set this build knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database answered with an unknown word {0:?}; is the schema newer than this program?")]
pub struct UnknownWord(pub String);

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word that SQL and HTTP use for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word { $($word => Ok(Self::$variant),)+ _ => Err(UnknownWord(word.to_owned())) }
            }
        }
    };
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
        /// No such epoch is known on this device, or its history is purged.
        UnknownSession => "unknown_session",
    }
}

words! {
    /// Why a join changes nothing.
    JoinRefusal {
        /// `ifPresent: "reject"`, and the user has a live session.
        AlreadyPresent => "already_present",
        /// The user was removed with a block that still holds.
        Blocked => "blocked",
        /// The room has as many persons as it may have.
        RoomFull => "room_full",
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
        for reason in StaleReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        for refusal in JoinRefusal::ALL {
            assert_eq!(refusal.as_str().parse(), Ok(*refusal));
        }
    }
}
