//! What the deliveries of a webhook are signed with.

use std::fmt;
use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What every secret may begin with, and is shown with by whoever makes one.
const PREFIX: &str = "whsec_";

/// How long a key may be, in bytes: what Standard Webhooks recommends.
const KEY_BYTES: RangeInclusive<usize> = 24..=64;

/// A secret that cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "secret must be whsec_ and the base64 of 24 to 64 random bytes, as from: echo whsec_$(openssl rand -base64 32)"
)]
pub struct InvalidSecret;

/// A key that sender and receiver share. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret {
    text: String,
    key: Vec<u8>,
}

impl WebhookSecret {
    /// Reads it as every library of Standard Webhooks does: base64, with the prefix or without.
    ///
    /// # Errors
    /// Where it is not base64, or of too few or too many bytes.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).unwrap_or(text);
        let key = STANDARD.decode(encoded).map_err(|_| InvalidSecret)?;
        if !KEY_BYTES.contains(&key.len()) {
            return Err(InvalidSecret);
        }
        Ok(Self {
            text: format!("{PREFIX}{encoded}"),
            key,
        })
    }

    /// With the prefix, as it is kept: for the database alone.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The bytes that sign.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_same_with_the_prefix_and_without() {
        let with = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let without = WebhookSecret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(with, without);
        assert_eq!(with.key().len(), 24);
        assert_eq!(format!("{with:?}"), "WebhookSecret");
    }

    #[test]
    fn what_libraries_would_read_differently_is_refused() {
        for text in [
            "",
            "whsec_",
            "a plain password, long enough",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_",
            "whsec_c2hvcnQ=",
        ] {
            assert_eq!(WebhookSecret::parse(text), Err(InvalidSecret), "{text:?}");
        }
    }
}
