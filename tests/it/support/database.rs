//! A migrated database of its own for each test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

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
    pub async fn sorted_like_a_dictionary() -> Self {
        let name = fresh_name();
        administer(format!(
            "create database {name} template template0 encoding 'UTF8'
                 locale_provider icu icu_locale 'en-US'"
        ))
        .await;
        Migrations::apply(&settings(&name)).await.unwrap();
        Self {
            store: Store::new(&settings(&name)).unwrap(),
            pool: PgPool::connect_lazy(&server::url(&name)).unwrap(),
            name,
        }
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
        timeout: Duration::from_secs(20),
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
    let mut connection = PgConnection::connect(&server::url("postgres"))
        .await
        .unwrap();
    raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}
