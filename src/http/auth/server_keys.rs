//! Keys of the operator's own back ends: several, so that one can be replaced while both hold.

use std::path::PathBuf;

use anyhow::bail;
use secrecy::{ExposeSecret, SecretString};
use subtle::{Choice, ConstantTimeEq};

use super::key_file::KeyFile;

/// Every key that holds.
pub(crate) struct ServerKeys {
    given: Vec<SecretString>,
    /// One a line.
    file: Option<KeyFile<Vec<SecretString>>>,
}

impl ServerKeys {
    /// # Errors
    /// Where the file cannot be read, or holds no key.
    pub(crate) fn new(given: Vec<SecretString>, file: Option<PathBuf>) -> anyhow::Result<Self> {
        let open = |path| KeyFile::open("LEASEHOLD_SERVER_KEYS_FILE", path, parse);
        Ok(Self {
            given,
            file: file.map(open).transpose()?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.given.is_empty() && self.file.is_none()
    }

    /// In a time that does not tell how much of a key was right, nor which.
    pub(crate) fn contains(&self, credential: &str) -> bool {
        let of_the_file = self.file.as_ref().map(KeyFile::keys);
        self.given
            .iter()
            .chain(of_the_file.iter().flat_map(|keys| keys.iter()))
            .fold(Choice::from(0), |found, key| {
                found | key.expose_secret().as_bytes().ct_eq(credential.as_bytes())
            })
            .into()
    }
}

fn parse(text: &[u8]) -> anyhow::Result<Vec<SecretString>> {
    let keys: Vec<SecretString> = std::str::from_utf8(text)?
        .lines()
        .map(str::trim)
        .filter(|key| !key.is_empty())
        .map(SecretString::from)
        .collect();
    if keys.is_empty() {
        bail!("it holds no key; write one a line");
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_whole_key_holds_and_no_part_of_one() {
        let keys = ServerKeys::new(vec!["old-key".into(), "new-key".into()], None).unwrap();
        assert!(keys.contains("old-key") && keys.contains("new-key"));
        for wrong in ["", "old-ke", "old-key2", "old-keynew-key", "OLD-KEY"] {
            assert!(!keys.contains(wrong), "{wrong:?}");
        }
    }
}
