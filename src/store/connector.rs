//! How a connection is made, and what is set on it.
//!
//! The settings travel in a statement of their own, since proxies between here and Postgres
//! refuse most of them at the start of a connection.

use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, Error, raw_sql};

use super::{DatabaseUrl, StoreError};

/// What everything here relies on, whatever the database or the role has for a default.
const ALWAYS: &[(&str, &str)] = &[
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    // All of the schema is named with it; nothing in front of Postgres' own functions is meant.
    ("search_path", "pg_catalog, pg_temp"),
    ("standard_conforming_strings", "on"),
    ("transform_null_equals", "off"),
    ("array_nulls", "on"),
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    // Connections are kept for as long as they are well.
    ("idle_session_timeout", "0"),
    // The server finds out that an instance is gone, and nothing between forgets a quiet connection.
    ("tcp_keepalives_idle", "15"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "30000"),
];

/// A way to make connections of one kind; cheap to clone.
#[derive(Clone)]
pub(super) struct Connector {
    url: DatabaseUrl,
    setup: Arc<str>,
}

impl Connector {
    /// Connections with these settings beside those that all have.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where the address cannot be read.
    pub(super) fn new(url: DatabaseUrl, own: &[(&str, &str)]) -> Result<Self, StoreError> {
        url.options()?;
        let settings = ALWAYS.iter().chain(own);
        let set = settings
            .map(|(name, value)| format!("pg_catalog.set_config('{name}', '{value}', false), "));
        // The last one is of PostgreSQL 17 and later.
        let setup = format!(
            "select {}case when pg_catalog.current_setting('transaction_timeout', true) is not null
                      then pg_catalog.set_config('transaction_timeout', '0', false) end",
            set.collect::<String>()
        );
        Ok(Self {
            url,
            setup: setup.into(),
        })
    }

    /// A new connection, set up.
    pub(super) async fn connect(&self) -> Result<PgConnection, Error> {
        let mut connection = PgConnection::connect_with(&self.options()?).await?;
        set_up(&mut connection, &self.setup).await?;
        Ok(connection)
    }

    /// A listener, on a connection of its own that is set up as well.
    pub(super) async fn listener(&self) -> Result<PgListener, Error> {
        let setup = Arc::clone(&self.setup);
        // Only sqlx's pool can make one. A new pool each time, since in an old one a connection
        // that went silent keeps its place.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .after_connect(move |connection, _| {
                let setup = Arc::clone(&setup);
                Box::pin(async move { set_up(connection, &setup).await })
            })
            .connect_lazy_with(self.options()?);
        PgListener::connect_with(&pool).await
    }

    fn options(&self) -> Result<PgConnectOptions, Error> {
        self.url
            .options()
            .map_err(|error| Error::Configuration(error.into()))
    }
}

async fn set_up(connection: &mut PgConnection, setup: &str) -> Result<(), Error> {
    // It is made of constants and numbers.
    raw_sql(AssertSqlSafe(setup.to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}
