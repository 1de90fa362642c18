//! The schema's migrations, embedded in the program.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use sqlx::migrate::{AppliedMigration, Migrate, Migrator};
use sqlx::{Connection, PgConnection};
use tokio::time::sleep;

use super::citus::require_undistributed;
use super::pool::in_time;
use super::settings::GRACE;
use super::waited_for::{WaitedFor, Watch};
use super::{DatabaseSettings, Store, StoreError};

pub(super) static MIGRATOR: Migrator = sqlx::migrate!();

/// The longest that a migration waits for a lock before those who wait behind it have their turn.
const LOCK_TURN: Duration = Duration::from_secs(2);

/// That turn.
const LOCK_PAUSE: Duration = Duration::from_millis(300);

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
    /// There is no migration of this number in this program.
    #[error("this program has no migration {wanted:04}; its newest is {newest:04}")]
    NoSuch {
        /// The number that was asked for.
        wanted: i64,
        /// The highest that there is.
        newest: i64,
    },
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
        let (mut connection, watch) = connect(settings, settings.timeout).await?;
        require_undistributed(&mut connection).await?;
        let migrations = patiently(settings, &watch, Self::read(&mut connection)).await?;
        connection.close().await?;
        Ok(migrations)
    }

    /// [`Migrations::check`], and that nobody holds what an instance needs for its first beat.
    ///
    /// # Errors
    /// Where the database does not answer, or somebody holds it for longer than the time-out.
    pub async fn check_for_serving(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let (mut connection, watch) = connect(settings, settings.timeout).await?;
        require_undistributed(&mut connection).await?;
        let migrations = patiently(settings, &watch, Self::read(&mut connection)).await?;
        if migrations.require_fit().is_ok() {
            let taking = async {
                let pulse = sqlx::query!("select from leasehold.pulse for no key update");
                pulse.execute(&mut connection).await?;
                Ok(())
            };
            patiently(settings, &watch, taking).await?;
        }
        connection.close().await?;
        Ok(migrations)
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
        self.require_known()?;
        match self.pending.len() {
            0 => Ok(()),
            pending => Err(UnfitSchema::Pending(pending)),
        }
    }

    /// Whether this program knows all that is applied, or that says it works with it.
    ///
    /// # Errors
    /// [`UnfitSchema::Unknown`]
    pub fn require_known(&self) -> Result<(), UnfitSchema> {
        if !self.unserved.is_empty() || !self.changed.is_empty() {
            return Err(UnfitSchema::Unknown {
                newer: self.unserved.clone(),
                changed: self.changed.clone(),
            });
        }
        Ok(())
    }

    /// The number of the last migration of this program.
    pub fn newest() -> i64 {
        MIGRATOR.iter().map(|m| m.version).max().unwrap_or_default()
    }

    /// Of the pending ones those up to this number, oldest first.
    ///
    /// # Errors
    /// Where this program has no migration of this number.
    pub fn due(&self, target: i64) -> Result<Vec<String>, MigrateError> {
        if !MIGRATOR.version_exists(target) {
            return Err(MigrateError::NoSuch {
                wanted: target,
                newest: Self::newest(),
            });
        }
        let due = MIGRATOR.iter().filter(|m| m.version <= target).map(title);
        Ok(due.filter(|title| self.pending.contains(title)).collect())
    }

    /// Applies what is pending. Of many at once one works and the others wait for it, by an advisory lock.
    ///
    /// For locks that others hold it waits as long as the time-out, in short turns: whoever needs the
    /// same table queues behind it.
    ///
    /// # Errors
    /// [`MigrateError`]; each migration is applied whole or not at all.
    pub async fn apply(settings: &DatabaseSettings) -> Result<Applied, MigrateError> {
        Self::apply_to(settings, Self::newest()).await
    }

    /// [`Migrations::apply`] up to the one with this number.
    ///
    /// # Errors
    /// [`MigrateError`]
    pub async fn apply_to(
        settings: &DatabaseSettings,
        target: i64,
    ) -> Result<Applied, MigrateError> {
        let before = Self::check(settings).await?;
        let due = before.due(target)?;
        // An instance of the release before that starts once more during a deployment.
        if before.require_fit().is_ok() {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + settings.timeout;
        let (mut connection, watch) = connect(settings, LOCK_TURN.min(settings.timeout)).await?;
        loop {
            let (outcome, waited_for) =
                watch.during(MIGRATOR.run_to(target, &mut connection)).await;
            match outcome {
                Err(error) if is_for_a_lock(&error) => match waited_for {
                    _ if Instant::now() < deadline => sleep(LOCK_PAUSE).await,
                    waited_for => return Err(in_vain(waited_for).into()),
                },
                outcome => {
                    connection.close().await.map_err(StoreError::from)?;
                    outcome?;
                    return Ok(due);
                }
            }
        }
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

/// A connection that waits so long for a lock, and what watches over it.
async fn connect(
    settings: &DatabaseSettings,
    lock_timeout: Duration,
) -> Result<(PgConnection, Watch), StoreError> {
    let lock_timeout_ms = lock_timeout.as_millis().to_string();
    let connector = settings.connector(&[
        // Whatever is committed later takes it along; a standby that is away must not hold it up.
        ("synchronous_commit", "local"),
        ("statement_timeout", "0"),
        ("lock_timeout", &lock_timeout_ms),
        ("idle_in_transaction_session_timeout", "0"),
    ])?;
    let connecting = async {
        let mut connection = connector.connect().await?;
        let watch = Watch::over(&mut connection, connector.clone()).await?;
        Ok::<_, StoreError>((connection, watch))
    };
    in_time(settings.timeout, "no connection", async {
        Ok(connecting.await)
    })
    .await?
}

/// Waits for this as long as the time-out, and says for whom.
async fn patiently<T>(
    settings: &DatabaseSettings,
    watch: &Watch,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let limit = settings.timeout + GRACE;
    let work = in_time(limit, "no answer", async { Ok(work.await) });
    match watch.during(work).await {
        (Ok(Err(StoreError::Locked)), waited_for) => Err(in_vain(waited_for)),
        (outcome, _) => outcome?,
    }
}

fn is_for_a_lock(error: &sqlx::migrate::MigrateError) -> bool {
    let error = match error {
        sqlx::migrate::MigrateError::Execute(error)
        | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => error,
        _ => return false,
    };
    let code = error.as_database_error().and_then(|error| error.code());
    code.as_deref() == Some("55P03")
}

fn in_vain(waited_for: Option<WaitedFor>) -> StoreError {
    waited_for.map_or(StoreError::Locked, |waited_for| {
        StoreError::WaitedInVain(waited_for.to_string())
    })
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
        .map_err(|error| match error {
            sqlx::migrate::MigrateError::Execute(error) => error.into(),
            error => StoreError::Unexpected(error.to_string()),
        })
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
