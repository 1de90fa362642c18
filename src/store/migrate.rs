//! The schema's migrations, embedded in the program.

use std::collections::HashSet;

use sqlx::migrate::{AppliedMigration, Migrate, Migrator};
use sqlx::{Connection, PgConnection};

use super::{DatabaseSettings, Store, StoreError};

static MIGRATOR: Migrator = sqlx::migrate!();

/// How the schema in the database compares with the one in this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrations {
    /// In this program and not in the database, oldest first: `0001 rooms and members`.
    pub pending: Vec<String>,
    /// In the database and not in this program: it is newer.
    pub unknown: Vec<i64>,
    /// Applied with another text than this program has.
    pub changed: Vec<i64>,
}

/// The migrations that a call applied, oldest first.
pub type Applied = Vec<String>;

/// The schema could not be brought to this program's version.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A migration failed; it and the later ones are not applied.
    #[error("a migration was not applied: {0}")]
    Failed(#[from] sqlx::migrate::MigrateError),
}

/// The schema is not this program's; says what to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitSchema {
    /// Another program has migrated it.
    #[error(
        "the database's schema is not one that this program knows (unknown migrations {unknown:?}, \
         changed {changed:?}); run the program that migrated it, or a newer one"
    )]
    Unknown {
        unknown: Vec<i64>,
        changed: Vec<i64>,
    },
    /// So many migrations are not applied.
    #[error("the database's schema lacks {0} migrations; run `leasehold migrate`")]
    Pending(usize),
}

impl Migrations {
    /// Compares without changing anything, not even making the schema.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn check(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let mut connection = connect(settings).await?;
        let applied = applied(&mut connection).await;
        connection.close().await?;
        Ok(Self::compare(&applied?))
    }

    fn compare(applied: &[AppliedMigration]) -> Self {
        let known: HashSet<i64> = MIGRATOR.iter().map(|m| m.version).collect();
        let there: HashSet<i64> = applied.iter().map(|m| m.version).collect();
        Self {
            pending: MIGRATOR
                .iter()
                .filter(|m| !there.contains(&m.version))
                .map(title)
                .collect(),
            unknown: applied
                .iter()
                .map(|m| m.version)
                .filter(|v| !known.contains(v))
                .collect(),
            changed: applied
                .iter()
                .filter(|a| {
                    MIGRATOR
                        .iter()
                        .any(|m| m.version == a.version && m.checksum != a.checksum)
                })
                .map(|a| a.version)
                .collect(),
        }
    }

    /// Whether the schema is exactly this program's.
    pub fn is_current(&self) -> bool {
        self.pending.is_empty() && self.unknown.is_empty() && self.changed.is_empty()
    }

    /// Whether this program can work with the schema.
    ///
    /// # Errors
    /// [`UnfitSchema`]
    pub fn require_current(&self) -> Result<(), UnfitSchema> {
        if !self.unknown.is_empty() || !self.changed.is_empty() {
            return Err(UnfitSchema::Unknown {
                unknown: self.unknown.clone(),
                changed: self.changed.clone(),
            });
        }
        match self.pending.len() {
            0 => Ok(()),
            pending => Err(UnfitSchema::Pending(pending)),
        }
    }

    /// Applies what is pending. Of many at once one works and the others wait for it, by an advisory lock.
    ///
    /// # Errors
    /// [`MigrateError`]; each migration is applied whole or not at all.
    pub async fn apply(settings: &DatabaseSettings) -> Result<Applied, MigrateError> {
        let before = Self::check(settings).await?;
        let mut connection = connect(settings).await?;
        let outcome = MIGRATOR.run(&mut connection).await;
        connection.close().await.map_err(StoreError::from)?;
        outcome?;
        Ok(before.pending)
    }
}

impl Store {
    /// Compares the schema with this program's, on a connection that is there already.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn migrations(&self) -> Result<Migrations, StoreError> {
        let mut connection = self.durable.acquire().await?;
        Ok(Migrations::compare(&applied(&mut connection).await?))
    }
}

fn title(migration: &sqlx::migrate::Migration) -> String {
    format!("{:04} {}", migration.version, migration.description)
}

async fn connect(settings: &DatabaseSettings) -> Result<PgConnection, StoreError> {
    let options = settings.connect_options()?;
    let connecting = PgConnection::connect_with(&options);
    match tokio::time::timeout(settings.timeout, connecting).await {
        Ok(connection) => Ok(connection?),
        Err(_) => Err(StoreError::Unavailable(sqlx::Error::PoolTimedOut)),
    }
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<AppliedMigration>, StoreError> {
    let is_there = sqlx::query_scalar!(
        r#"select to_regclass('leasehold._sqlx_migrations') is not null as "is_there!""#
    )
    .fetch_one(&mut *connection)
    .await?;
    if !is_there {
        return Ok(Vec::new());
    }
    connection
        .list_applied_migrations("leasehold._sqlx_migrations")
        .await
        .map_err(|error| StoreError::Unexpected(error.to_string()))
}
