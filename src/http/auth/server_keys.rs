//! Keys of the operator's own back ends: several, so that one can be replaced while both hold.

use secrecy::{ExposeSecret, SecretString};
use subtle::{Choice, ConstantTimeEq};

/// Every key that holds.
pub(crate) struct ServerKeys(Vec<SecretString>);

impl ServerKeys {
    pub(crate) fn new(keys: Vec<SecretString>) -> Self {
        Self(keys)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In a time that does not tell how much of a key was right, nor which.
    pub(crate) fn contains(&self, credential: &str) -> bool {
        self.0
            .iter()
            .fold(Choice::from(0), |found, key| {
                found | key.expose_secret().as_bytes().ct_eq(credential.as_bytes())
            })
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_whole_key_holds_and_no_part_of_one() {
        let keys = ServerKeys::new(vec!["old-key".into(), "new-key".into()]);
        assert!(keys.contains("old-key") && keys.contains("new-key"));
        for wrong in ["", "old-ke", "old-key2", "old-keynew-key", "OLD-KEY"] {
            assert!(!keys.contains(wrong), "{wrong:?}");
        }
    }
}
