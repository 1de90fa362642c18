//! A migrated database of its own for each test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use leasehold::store::{DatabaseSettings, Migrations, Store};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, raw_sql};
use tokio::sync::OnceCell;

use super::server;

static TEMPLATE: OnceCell<String> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// Dropped with the value.
pub struct Database {
    name: String,
    pub store: Store,
    /// For what a test looks at or prepares behind the store's back.
    pub pool: PgPool,
}

impl Database {
    pub async fn new() -> Self {
        let template = TEMPLATE.get_or_init(migrated_template).await;
        let name = fresh_name();
        administer(format!("create database {name} template {template}")).await;
        Self {
            store: Store::new(&settings(&name)).unwrap(),
            pool: PgPool::connect_lazy(&server::url(&name)).unwrap(),
            name,
        }
    }

    /// Without any schema.
    pub async fn empty() -> Self {
        let name = fresh_name();
        administer(format!("create database {name}")).await;
        Self {
            store: Store::new(&settings(&name)).unwrap(),
            pool: PgPool::connect_lazy(&server::url(&name)).unwrap(),
            name,
        }
    }

    /// Migrated, in a database whose collation puts `a` before `B`, unlike their bytes.
    /// `None`, and said so, where the server has no such collation.
    pub async fn sorted_like_a_dictionary() -> Option<Self> {
        let name = fresh_name();
        let created = try_administer(format!(
            "create database {name} template template0 encoding 'UTF8'
                 locale_provider icu icu_locale 'en-US'"
        ))
        .await;
        if let Err(error) = created {
            eprintln!("SKIPPED: this server has no ICU collations: {error}");
            return None;
        }
        Migrations::apply(&settings(&name)).await.unwrap();
        Some(Self {
            store: Store::new(&settings(&name)).unwrap(),
            pool: PgPool::connect_lazy(&server::url(&name)).unwrap(),
            name,
        })
    }

    pub fn url(&self) -> String {
        server::url(&self.name)
    }

    pub fn settings(&self) -> DatabaseSettings {
        settings(&self.name)
    }

    /// The store at an instant of fake time.
    pub fn at(&self, instant: DateTime<Utc>) -> Store {
        self.store.at(instant)
    }

    /// A connection of its own, for a step of a race.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }

    /// Runs statements that a test needs and the store does not offer.
    pub async fn execute(&self, sql: impl Into<String>) {
        raw_sql(AssertSqlSafe(sql.into()))
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// As if nobody had been heard of for so many milliseconds longer.
    pub async fn silence(&self, ms: i64) {
        self.execute(format!(
            "update leasehold.members
                set last_seen_at = last_seen_at - {ms} * interval '1 millisecond',
                    lease_end = lease_end - {ms} * 1000::bigint;
             update leasehold.rooms
                set next_end = next_end - {ms} * 1000::bigint"
        ))
        .await;
    }

    /// Rooms and members in the tables, expired or not.
    pub async fn rows(&self) -> (i64, i64) {
        let counts = sqlx::query!(
            r#"select (select count(*) from leasehold.rooms) as "rooms!",
                      (select count(*) from leasehold.members) as "members!""#
        )
        .fetch_one(&self.pool)
        .await
        .unwrap();
        (counts.rooms, counts.members)
    }

    /// Waits until so many statements wait for a lock.
    pub async fn until_waiting_for_locks(&self, statements: i64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let waiting = self.waiting_for_locks().await;
            if waiting >= statements {
                return;
            }
            assert!(Instant::now() < deadline, "{waiting} of {statements} wait");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many statements wait for a lock.
    pub async fn waiting_for_locks(&self) -> i64 {
        sqlx::query_scalar!(
            r#"select count(*) as "n!" from pg_stat_activity
                    where datname = current_database() and wait_event_type = 'Lock'"#
        )
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Changes with any change of a row of any table.
    pub async fn digest(&self) -> String {
        sqlx::query_scalar!(
            r#"select md5(string_agg(part, ';' order by part)) as "digest!"
                 from (select t::text as part from leasehold.rooms t
                       union all select t::text from leasehold.members t
                       union all select t::text from leasehold.blocks t
                       union all select t::text from leasehold.closed_generations t
                       union all select t::text from leasehold.membership_events t
                       union all select t::text from leasehold.epoch_floors t
                       union all select t::text from leasehold.generation_floors t) parts"#
        )
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Fails with every violation of the invariants.
    pub async fn verify(&self) {
        let violations: Vec<String> = self
            .store
            .verify()
            .await
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("drop database if exists {} with (force)", self.name);
        // The test's own runtime may be ending, and cannot be waited on from within.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(administer(statement));
        });
        let _ = dropping.join();
    }
}

fn settings(name: &str) -> DatabaseSettings {
    DatabaseSettings {
        url: server::url(name).into(),
        connections: 5,
        held_connections: 2,
        timeout: Duration::from_secs(20),
        serves: false,
    }
}

fn fresh_name() -> String {
    format!(
        "leasehold_it_{}_{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

async fn migrated_template() -> String {
    let name = fresh_name();
    administer(format!("create database {name}")).await;
    Migrations::apply(&settings(&name)).await.unwrap();
    name
}

async fn administer(statement: String) {
    try_administer(statement).await.unwrap();
}

async fn try_administer(statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(&server::url("postgres")).await?;
    raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await?;
    connection.close().await
}
