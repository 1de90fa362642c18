//! Ids that clients choose: of rooms, users, devices and webhooks.

use std::fmt;

/// The longest id, in characters.
pub(crate) const MAX_CHARS: usize = 256;

/// Why a text cannot be an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be 1 to {MAX_CHARS} characters without control characters")]
pub struct InvalidId {
    /// The field of the request that holds it, as the client knows it.
    pub field: &'static str,
}

/// The rule of the SQL function `leasehold.is_id`, so that bad input is refused before the database sees it.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_CHARS && !text.chars().any(char::is_control)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Refuses what is empty, longer than 256 characters or holds a control character.
            ///
            /// # Errors
            /// [`InvalidId`], naming the field.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                if is_id(&text) { Ok(Self(text)) } else { Err(InvalidId { field: $field }) }
            }

            /// The id as the client wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A room. It exists as long as somebody is in it.
    RoomId, "roomId"
}
id! {
    /// A person, however many devices and connections they have.
    UserId, "userId"
}
id! {
    /// One of a person's devices; the one without a name is [`DeviceId::unnamed`].
    DeviceId, "deviceId"
}

id! {
    /// An address that the feed is delivered to, by the name that an admin gave it.
    WebhookName, "name"
}

impl DeviceId {
    /// The device of a client that does not name one.
    pub fn unnamed() -> Self {
        Self(String::new())
    }

    /// The device of this name; an empty one is the unnamed device, as SQL writes it.
    ///
    /// # Errors
    /// [`InvalidId`]
    pub fn from_sql(name: String) -> Result<Self, InvalidId> {
        if name.is_empty() {
            Ok(Self::unnamed())
        } else {
            Self::parse(name)
        }
    }

    /// The name, or the empty one of the unnamed device, as SQL writes it.
    pub fn as_sql(&self) -> &str {
        &self.0
    }

    /// The name, if it has one.
    pub fn name(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_1_to_256_characters_however_many_bytes_they_take() {
        assert!(RoomId::parse("a").is_ok());
        assert!(RoomId::parse("é".repeat(256)).is_ok());
        assert!(RoomId::parse("").is_err());
        assert!(RoomId::parse("é".repeat(257)).is_err());
    }

    #[test]
    fn an_id_has_no_control_characters() {
        for control in ['\0', '\n', '\u{7f}', '\u{85}'] {
            assert_eq!(
                UserId::parse(format!("a{control}b")),
                Err(InvalidId { field: "userId" })
            );
        }
    }
}
