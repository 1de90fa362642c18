//! What goes wrong, one after the other by the trial's seed; each heals what it broke.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use sqlx::{AssertSqlSafe, PgConnection, raw_sql};
use tokio::time::sleep;

use super::history::Recorder;
use super::workload::{ROOMS, room};
use super::world::{INSTANCES, World};

#[derive(Debug, Clone, Copy)]
pub enum Fault {
    KillInstance,
    /// The one that always sweeps.
    KillSweeper,
    FreezeInstance,
    FreezeSweeper,
    /// The only one that beats dies too: leases stand still.
    KillAllInstances,
    Cut,
    Stall,
    Slow,
    HalfClose,
    KillPostgres,
    /// Of the primary, for WAL.
    FillDisk,
    /// The standby takes over, and gets one of its own.
    FailOver,
    /// Commits wait for it.
    KillStandby,
    EndBackends,
    HoldRoom,
    Deadlock,
    Serializable,
    /// In either direction, and back.
    ClockJump,
}

/// What befalls instances, and meanwhile what befalls the network and Postgres.
pub const OF_INSTANCES: &[Fault] = &[
    Fault::KillInstance,
    Fault::KillSweeper,
    Fault::FreezeInstance,
    Fault::FreezeSweeper,
    Fault::KillAllInstances,
];
pub const OF_THE_DATABASE: &[Fault] = &[
    Fault::Cut,
    Fault::Stall,
    Fault::Slow,
    Fault::HalfClose,
    Fault::KillPostgres,
    Fault::FillDisk,
    Fault::FailOver,
    Fault::KillStandby,
    Fault::EndBackends,
    Fault::HoldRoom,
    Fault::Deadlock,
    Fault::Serializable,
];
pub const OF_THE_DATABASE_AND_ITS_CLOCK: &[Fault] = &[
    Fault::ClockJump,
    Fault::Stall,
    Fault::KillPostgres,
    Fault::FailOver,
    Fault::EndBackends,
];

/// Deals every fault once before any comes again.
pub struct Deck {
    faults: &'static [Fault],
    left: Vec<Fault>,
    pub random: StdRng,
}

impl Deck {
    pub fn new(faults: &'static [Fault], random: StdRng) -> Self {
        Self {
            faults,
            left: Vec::new(),
            random,
        }
    }

    pub fn deal(&mut self) -> Fault {
        if self.left.is_empty() {
            self.left = self.faults.to_vec();
            self.left.shuffle(&mut self.random);
        }
        self.left.pop().unwrap()
    }
}

/// What faults happen to.
#[derive(Clone)]
pub struct Target {
    pub world: Arc<World>,
    pub recorder: Recorder,
    /// When Postgres was killed.
    pub crashes: Arc<Mutex<Vec<i64>>>,
}

impl Target {
    /// Breaks it, waits, heals it.
    pub async fn suffer(&self, fault: Fault, random: &mut StdRng) {
        let world = &self.world;
        let n = random.random_range(0..INSTANCES);
        let time = Duration::from_millis(random.random_range(500..2_500));
        match fault {
            Fault::KillInstance => self.kill_instance(n, time).await,
            Fault::KillSweeper => self.kill_instance(0, time).await,
            Fault::FreezeInstance => world.freeze_instance(n, time).await,
            Fault::FreezeSweeper => world.freeze_instance(0, time).await,
            Fault::KillAllInstances => {
                // Longer than a pause between beats may be.
                let time = time + Duration::from_secs(3);
                join_all((0..INSTANCES).map(|n| self.kill_instance(n, time))).await;
            }
            Fault::Cut => {
                self.network(n, time, |world, n| world.proxies[n].cut())
                    .await
            }
            Fault::Stall => {
                self.network(n, time, |world, n| world.proxies[n].stall())
                    .await
            }
            Fault::Slow => {
                self.network(n, time, |world, n| world.proxies[n].slow())
                    .await
            }
            Fault::HalfClose => {
                let half_close = |world: &World, n: usize| world.proxies[n].half_close();
                self.network(n, time, half_close).await;
            }
            Fault::KillPostgres => {
                let mut servers = world.servers.lock().await;
                self.crash(|| servers.kill_primary());
                sleep(time).await;
                servers.restart_primary();
            }
            Fault::FillDisk => {
                let mut servers = world.servers.lock().await;
                let crashed = || self.crashes.lock().unwrap().push(self.recorder.now());
                servers.fill_disk(time, crashed).await;
            }
            Fault::FailOver => self.fail_over().await,
            Fault::KillStandby => {
                let mut servers = world.servers.lock().await;
                // Not for as long as a commit waits at most: a wait that is given up shows what
                // the standby does not have.
                servers.without_standby(time / 3).await;
            }
            Fault::EndBackends => {
                let end = "select pg_terminate_backend(pid) from pg_stat_activity
                            where application_name = 'leasehold'";
                self.tries(&[end]).await;
            }
            Fault::HoldRoom => {
                self.hold_room(&room(random.random_range(0..ROOMS)), time)
                    .await
            }
            Fault::Deadlock => {
                let mut turns = Vec::new();
                for first in 0..ROOMS {
                    for second in [(first + 1) % ROOMS, (first + 3) % ROOMS] {
                        turns.push(self.two_rooms_in_wrong_order(first, second));
                    }
                }
                join_all(turns).await;
            }
            Fault::ClockJump => {
                // Further than a beat may be late: a smaller jump is none.
                let seconds = random.random_range(5..40) * [1, -1][random.random_range(0..2)];
                for seconds in [seconds, 0] {
                    if let Some(clock) = &world.servers.lock().await.clock {
                        clock.set(seconds);
                    }
                    sleep(time).await;
                }
            }
            Fault::Serializable => {
                let level = |level| {
                    format!("alter database postgres set default_transaction_isolation = '{level}'")
                };
                let end = "select pg_terminate_backend(pid) from pg_stat_activity
                            where application_name = 'leasehold'";
                self.tries(&[&level("serializable"), end]).await;
                sleep(time).await;
                self.tries(&[&level("read committed"), end]).await;
            }
        }
    }

    async fn kill_instance(&self, n: usize, time: Duration) {
        self.world.kill_instance(n).await;
        sleep(time).await;
        self.world.start_instance(n).await;
    }

    async fn network(&self, n: usize, time: Duration, breaks: fn(&World, usize)) {
        breaks(&self.world, n);
        sleep(time).await;
        self.world.proxies[n].open();
    }

    /// Marks the moments before and after.
    fn crash(&self, kill: impl FnOnce()) {
        let before = self.recorder.now();
        kill();
        let after = self.recorder.now();
        self.crashes.lock().unwrap().extend([before, after]);
    }

    async fn fail_over(&self) {
        let mut servers = self.world.servers.lock().await;
        self.crash(|| servers.kill_primary());
        // Backends of the former primary may live on for a moment.
        for proxy in &self.world.proxies {
            proxy.cut();
        }
        servers.promote().await;
        for proxy in &self.world.proxies {
            proxy.redirect(&servers.url());
            proxy.open();
        }
        sleep(Duration::from_secs(1)).await;
        servers.replace_standby().await;
    }

    /// A transaction that holds a room for longer than a batch waits.
    async fn hold_room(&self, room: &str, time: Duration) {
        let Some(mut holder) = self.connect().await else {
            return;
        };
        let hold =
            format!("begin; select from leasehold.rooms where room_id = '{room}' for update");
        if raw_sql(AssertSqlSafe(hold))
            .execute(&mut holder)
            .await
            .is_ok()
        {
            sleep(time).await;
        }
    }

    /// With others that do the same, and with the batches, this is a deadlock for some of them.
    async fn two_rooms_in_wrong_order(&self, first: usize, second: usize) {
        let Some(mut connection) = self.connect().await else {
            return;
        };
        let lock = |n| {
            format!(
                "select from leasehold.rooms where room_id = '{}' for update",
                room(n)
            )
        };
        let statements = format!(
            "begin isolation level serializable; {}; select pg_sleep(0.3); {}; rollback",
            lock(first),
            lock(second)
        );
        // It fails, as often as not.
        let _ = raw_sql(AssertSqlSafe(statements))
            .execute(&mut connection)
            .await;
    }

    async fn connect(&self) -> Option<PgConnection> {
        Some(self.world.servers.lock().await.connect().await)
    }

    async fn tries(&self, statements: &[&str]) {
        let Some(mut connection) = self.connect().await else {
            return;
        };
        for statement in statements {
            let statement = AssertSqlSafe((*statement).to_owned());
            raw_sql(statement).execute(&mut connection).await.unwrap();
        }
    }
}
