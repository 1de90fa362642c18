//! Steps of a race: SQL on connections of their own, one seen to wait while another goes on.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row, raw_sql};
use tokio::task::JoinHandle;

use super::{Database, t};

/// How long a step may take to be seen waiting, or to end once nothing holds it up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a step answered: the first column of each row, empty where there is none, or why it failed.
pub type Answer = Result<Vec<String>, sqlx::Error>;

/// One side of a race.
pub struct Side {
    connection: PgConnection,
    pid: i32,
    observer: PgPool,
}

/// A step under way.
pub struct Step {
    pid: i32,
    observer: PgPool,
    running: JoinHandle<(Side, Answer)>,
}

impl Side {
    pub async fn new(database: &Database) -> Self {
        let mut connection = database.connect().await;
        let pid = sqlx::query_scalar!(r#"select pg_backend_pid() as "pid!""#)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        Self {
            connection,
            pid,
            observer: database.pool.clone(),
        }
    }

    /// One that has begun a transaction and run these statements in it.
    pub async fn holding(database: &Database, sql: impl Into<String>) -> Self {
        let mut side = Self::new(database).await;
        side.run("begin").await;
        side.run(sql).await;
        side
    }

    /// Runs statements that nothing holds up.
    pub async fn run(&mut self, sql: impl Into<String>) -> Vec<String> {
        self.answer_of(sql).await.unwrap()
    }

    /// Runs statements that nothing holds up and that may fail.
    pub async fn answer_of(&mut self, sql: impl Into<String>) -> Answer {
        let rows = raw_sql(AssertSqlSafe(sql.into()))
            .fetch_all(&mut self.connection)
            .await?;
        rows.iter()
            .map(|row| {
                if row.is_empty() {
                    return Ok(String::new());
                }
                let text: Option<String> = row.try_get_unchecked(0)?;
                Ok(text.unwrap_or_default())
            })
            .collect()
    }

    /// Starts statements and returns once they are seen to wait for a lock.
    pub async fn waits(mut self, sql: impl Into<String>) -> Step {
        let sql = sql.into();
        let (pid, observer) = (self.pid, self.observer.clone());
        let running = tokio::spawn(async move {
            let answer = self.answer_of(sql).await;
            (self, answer)
        });
        let step = Step {
            pid,
            observer,
            running,
        };
        step.is_seen_waiting().await;
        step
    }
}

impl Step {
    async fn is_seen_waiting(&self) {
        let started = Instant::now();
        loop {
            let waits = sqlx::query_scalar!(
                r#"select exists (select from pg_stat_activity
                                   where pid = $1 and wait_event_type = 'Lock') as "waits!""#,
                self.pid,
            )
            .fetch_one(&self.observer)
            .await
            .unwrap();
            if waits {
                return;
            }
            assert!(
                !self.running.is_finished(),
                "the step ended without waiting"
            );
            assert!(started.elapsed() < PATIENCE, "the step never waited");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What the step answered in the end.
    pub async fn answer(self) -> Answer {
        tokio::time::timeout(PATIENCE, self.running)
            .await
            .expect("the step still waits")
            .unwrap()
            .1
    }

    /// The single row that the step answered.
    pub async fn word(self) -> String {
        let mut words = self.answer().await.unwrap();
        assert_eq!(words.len(), 1, "{words:?}");
        words.remove(0)
    }
}

impl Database {
    /// Takes a guard out of a function, in this database alone: what then goes wrong is what it is for.
    pub async fn replace_in(&self, function: &str, piece: &str, with: &str) {
        self.execute(format!(
            "do $do$
             declare
                 v_old text := pg_get_functiondef('leasehold.{function}'::regproc);
                 v_new text := replace(v_old, $p${piece}$p$, $p${with}$p$);
             begin
                 if v_new = v_old then
                     raise exception 'the guard is not in {function}';
                 end if;
                 execute v_new;
             end
             $do$"
        ))
        .await;
    }
}

/// An instant of fake time as SQL.
pub fn at(ms: i64) -> String {
    format!("'{}'::timestamptz", t(ms).to_rfc3339())
}

/// Holds a room until the end of the transaction.
pub fn lock_room(room: &str) -> String {
    format!("select from leasehold.rooms where room_id = '{room}' for update")
}

/// Joins room `r`; answers outcome, epoch and generation.
pub fn join_sql(user: &str, ms: i64) -> String {
    format!(
        "select concat_ws(' ', outcome, epoch, generation)
           from leasehold.join_member('r', '{user}', p_now => {})",
        at(ms)
    )
}

/// Beats in room `r`; answers the outcome.
pub fn beat_sql(user: &str, epoch: i64, ms: i64) -> String {
    format!(
        "select leasehold.heartbeat_member('r', '{user}', {epoch}, p_now => {})",
        at(ms)
    )
}

/// Leaves room `r`; answers the outcome.
pub fn leave_sql(user: &str, epoch: i64, ms: i64) -> String {
    format!(
        "select leasehold.leave_member('r', '{user}', {epoch}, p_now => {})",
        at(ms)
    )
}

/// Prunes room `r`; answers how many members expired and how many rooms closed.
pub fn prune_sql(ms: i64) -> String {
    format!(
        "select concat_ws(' ', members_expired, rooms_closed)
           from leasehold.prune_rooms(array['r'], {})",
        at(ms)
    )
}
