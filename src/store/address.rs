//! Where the database is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;

use super::StoreError;

/// Where the database is: `postgres://…`, as a value or in a file.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// It holds a password, so it is neither logged nor shown.
    Given(SecretString),
    /// Read again for each connection: a host or password that changes needs no restart.
    File(PathBuf),
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("DatabaseUrl::Given"),
            Self::File(path) => f.debug_tuple("DatabaseUrl::File").field(path).finish(),
        }
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self::Given(url.into())
    }
}

impl From<&str> for DatabaseUrl {
    fn from(url: &str) -> Self {
        Self::Given(url.into())
    }
}

impl DatabaseUrl {
    /// How to connect, as it is said at this moment.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where it cannot be read.
    pub(super) fn options(&self) -> Result<PgConnectOptions, StoreError> {
        match self {
            Self::Given(url) => options(url).ok_or(StoreError::BadUrl("DATABASE_URL".to_owned())),
            Self::File(path) => {
                let shown = format!("the content of DATABASE_URL_FILE {}", path.display());
                let url = std::fs::read_to_string(path)
                    .map_err(|error| StoreError::BadUrl(format!("{shown} ({error})")))?;
                options(&url.into()).ok_or(StoreError::BadUrl(shown))
            }
        }
    }
}

fn options(url: &SecretString) -> Option<PgConnectOptions> {
    let url = url.expose_secret().trim();
    // Sqlx would read any scheme.
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return None;
    }
    let options = PgConnectOptions::from_str(url).ok()?;
    // A proxy may refuse whatever else is asked for before the connection is made.
    Some(
        options
            .application_name("leasehold")
            .extra_float_digits(None),
    )
}
