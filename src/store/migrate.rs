//! The schema's migrations, embedded in the program.

use std::collections::{HashMap, HashSet};

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
    /// Of the unknown ones, those that do not say that they work with this program.
    pub unserved: Vec<i64>,
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

/// This program cannot work with the schema; says what to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitSchema {
    /// Another program has migrated it.
    #[error(
        "the database's schema is not one that this program can serve on (newer migrations {newer:?}, \
         changed {changed:?}); run the program that migrated it, or a newer one"
    )]
    Unknown {
        /// Applied, and not in this program.
        newer: Vec<i64>,
        /// Applied with another text than this program has.
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
        let migrations = Self::read(&mut connection).await;
        connection.close().await?;
        migrations
    }

    async fn read(connection: &mut PgConnection) -> Result<Self, StoreError> {
        let applied = applied(connection).await?;
        let serves_from = serves_from(connection).await?;
        let known: HashSet<i64> = MIGRATOR.iter().map(|m| m.version).collect();
        let there: HashSet<i64> = applied.iter().map(|m| m.version).collect();
        let unknown: Vec<i64> = applied
            .iter()
            .map(|m| m.version)
            .filter(|v| !known.contains(v))
            .collect();
        Ok(Self {
            pending: MIGRATOR
                .iter()
                .filter(|m| !there.contains(&m.version))
                .map(title)
                .collect(),
            unserved: unknown
                .iter()
                .copied()
                .filter(|v| !serves_from.get(v).is_some_and(|from| known.contains(from)))
                .collect(),
            unknown,
            changed: applied
                .iter()
                .filter(|a| {
                    MIGRATOR
                        .iter()
                        .any(|m| m.version == a.version && m.checksum != a.checksum)
                })
                .map(|a| a.version)
                .collect(),
        })
    }

    /// Whether this program may serve: the schema is its own, or a newer one that says it works with it.
    ///
    /// # Errors
    /// [`UnfitSchema`]
    pub fn require_fit(&self) -> Result<(), UnfitSchema> {
        if !self.unserved.is_empty() || !self.changed.is_empty() {
            return Err(UnfitSchema::Unknown {
                newer: self.unserved.clone(),
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
        // An instance of the release before that starts once more during a deployment.
        if before.require_fit().is_ok() {
            return Ok(Vec::new());
        }
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
        let migrations = Migrations::read(&mut connection).await?;
        connection.release();
        Ok(migrations)
    }
}

fn title(migration: &sqlx::migrate::Migration) -> String {
    format!("{:04} {}", migration.version, migration.description)
}

async fn connect(settings: &DatabaseSettings) -> Result<PgConnection, StoreError> {
    let connector = settings.connector(&[
        ("synchronous_commit", "on"),
        ("statement_timeout", "0"),
        ("lock_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
    ])?;
    let connecting = connector.connect();
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

/// For each migration that says so, the oldest one that a program must know to work with it.
async fn serves_from(connection: &mut PgConnection) -> Result<HashMap<i64, i64>, StoreError> {
    let is_there = sqlx::query_scalar!(
        r#"select to_regclass('leasehold.schema_compatibility') is not null as "is_there!""#
    )
    .fetch_one(&mut *connection)
    .await?;
    if !is_there {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query!("select migration, serves_from from leasehold.schema_compatibility")
        .fetch_all(connection)
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.migration, row.serves_from))
        .collect())
}
