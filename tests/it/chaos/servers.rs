//! The primary, and the standby that takes over.

use std::path::Path;
use std::time::Duration;

use private_postgres::{Cluster, ClusterOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};
use tokio::time::{Instant, sleep};

use super::clock::Clock;
use super::disk::SmallDisk;

const PATIENCE: Duration = Duration::from_secs(30);

/// A primary whose commits wait for its standby.
pub struct Servers {
    primary: Cluster,
    standby: Option<Cluster>,
    promotions: usize,
    /// Of both, where it can jump.
    pub clock: Option<Clock>,
}

fn options(n: usize, clock: Option<&Clock>) -> ClusterOptions {
    let options = ClusterOptions::throw_away(["chaos-a", "chaos-b"][n % 2])
        .setting("max_connections", "200")
        .setting("synchronous_commit", "on")
        // So that a standby that was away still finds what it missed.
        .setting("wal_keep_size", "160MB")
        .setting("wal_retrieve_retry_interval", "100ms");
    match clock {
        Some(clock) => clock.govern(options),
        None => options,
    }
}

impl Servers {
    pub async fn start(clock: Option<Clock>) -> Self {
        let primary = Cluster::start(options(0, clock.as_ref())).unwrap();
        let mut servers = Self {
            primary,
            standby: None,
            promotions: 0,
            clock,
        };
        servers.attach().await;
        servers
    }

    /// Of the primary's database.
    pub fn url(&self) -> String {
        self.primary.url("postgres")
    }

    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }

    /// Gives the primary a standby, for which it stops for a moment.
    async fn attach(&mut self) {
        let options = options(self.promotions + 1, self.clock.as_ref());
        self.standby = Some(self.primary.start_standby(options).unwrap());
        let mut primary = self.connect().await;
        for statement in [
            "alter system set synchronous_standby_names = '*'",
            "select pg_reload_conf()",
        ] {
            raw_sql(statement).execute(&mut primary).await.unwrap();
        }
        self.until_followed().await;
    }

    /// Waits until the standby confirms what the primary commits.
    async fn until_followed(&self) {
        let mut primary = self.connect().await;
        let deadline = Instant::now() + PATIENCE;
        let follows = r#"select count(*) as "n!" from pg_stat_replication
                          where sync_state in ('sync', 'quorum')"#;
        while raw_sql(AssertSqlSafe(format!(
            "do $$ begin assert ({follows}) = 1; end $$"
        )))
        .execute(&mut primary)
        .await
        .is_err()
        {
            assert!(Instant::now() < deadline, "no standby follows");
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn kill_primary(&mut self) {
        self.primary.kill();
    }

    pub fn restart_primary(&mut self) {
        self.primary.restart().unwrap();
    }

    /// The primary's disk for WAL is full, which is its end, and has room again so much later.
    /// Reports each of its ends.
    pub async fn fill_disk(&mut self, time: Duration, crashed: impl Fn()) {
        let mut connection = self.connect().await;
        let wal = sqlx::query_scalar!(r#"select current_setting('data_directory') as "d!""#)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        crashed();
        self.primary.kill();
        crashed();
        let disk = SmallDisk::holding(&Path::new(&wal).join("pg_wal"));
        self.restart_primary();
        if let Some(disk) = disk {
            disk.fill();
            self.until_nothing_is_written().await;
            crashed();
            sleep(time).await;
            self.primary.kill();
            disk.take_away();
            self.restart_primary();
        }
        self.until_followed().await;
    }

    /// Begins one segment of WAL after the other, until there is none.
    async fn until_nothing_is_written(&self) {
        let mut connection = self.connect().await;
        let deadline = Instant::now() + PATIENCE;
        let next =
            "select pg_logical_emit_message(false, 'chaos', repeat('x', 1000)), pg_switch_wal()";
        while raw_sql(next).execute(&mut connection).await.is_ok() {
            assert!(Instant::now() < deadline, "the disk is not full");
        }
    }

    /// The standby is away for so long.
    pub async fn without_standby(&mut self, time: Duration) {
        let standby = self.standby.as_mut().unwrap();
        standby.kill();
        sleep(time).await;
        standby.restart().unwrap();
        self.until_followed().await;
    }

    /// After the primary was killed: the standby is promoted.
    pub async fn promote(&mut self) {
        let promoted = self.standby.take().unwrap();
        self.primary = promoted;
        self.promotions += 1;
        let mut connection = self.connect().await;
        raw_sql("select pg_promote()")
            .execute(&mut connection)
            .await
            .unwrap();
    }

    /// A standby for the promoted one, in the place of the former primary.
    pub async fn replace_standby(&mut self) {
        self.attach().await;
    }
}
