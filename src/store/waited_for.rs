//! Locks that others hold while a process starts: the log says whose, and so does the error when the wait ends.

use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::sleep;

use super::StoreError;
use super::connector::Connector;

/// How often it is asked who holds what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Watches one connection for what it waits for.
pub(super) struct Watch {
    connector: Connector,
    pid: i32,
}

/// A lock that somebody else holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitedFor {
    what: String,
    /// `None` for a prepared transaction, which has no process.
    pid: Option<i32>,
    who: Option<String>,
    state: Option<String>,
    seconds: Option<i64>,
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which ", self.what)?;
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => write!(f, "a prepared transaction")?,
        }
        let seconds = self.seconds.map(|s| format!("for {s} s"));
        let about = [&self.who, &self.state, &seconds];
        let about: Vec<&str> = about.into_iter().flatten().map(String::as_str).collect();
        if !about.is_empty() {
            write!(f, " ({})", about.join(", "))?;
        }
        write!(f, " holds")
    }
}

impl Watch {
    /// Of this connection; others of the connector are made to look.
    pub(super) async fn over(
        connection: &mut PgConnection,
        connector: Connector,
    ) -> Result<Self, StoreError> {
        let pid = sqlx::query_scalar!(r#"select pg_backend_pid() as "pid!""#)
            .fetch_one(connection)
            .await?;
        Ok(Self { connector, pid })
    }

    /// Does what the connection is to do. Answers with what it last waited for, if it waited at all.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> (T, Option<WaitedFor>) {
        let mut last = None;
        let outcome = {
            let looking = pin!(self.look(&mut last));
            tokio::select! {
                outcome = work => outcome,
                never = looking => match never {},
            }
        };
        (outcome, last)
    }

    async fn look(&self, last: &mut Option<WaitedFor>) -> Infallible {
        let mut connection = None;
        loop {
            sleep(LOOK_EVERY).await;
            // Who waits waits, whether or not it can be said for whom.
            match self.waited_for(&mut connection).await {
                Ok(Some(found)) => {
                    let is_news = last
                        .as_ref()
                        .is_none_or(|known| known.what != found.what || known.pid != found.pid);
                    if is_news {
                        tracing::warn!("waiting for {found}");
                    }
                    *last = Some(found);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot ask who is waited for");
                    connection = None;
                }
            }
        }
    }

    async fn waited_for(
        &self,
        connection: &mut Option<PgConnection>,
    ) -> Result<Option<WaitedFor>, sqlx::Error> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(self.connector.connect().await?),
        };
        sqlx::query_as!(
            WaitedFor,
            r#"select coalesce('table ' || l.relation::regclass::text,
                               case l.locktype when 'advisory' then 'the lock of migrations'
                                               else 'a row' end) as "what!",
                      a.pid,
                      coalesce(nullif(a.application_name, ''), a.backend_type) || ' of ' || a.usename as who,
                      a.state,
                      extract(epoch from clock_timestamp() - a.xact_start)::bigint as seconds
                 from pg_locks l
                cross join unnest(pg_blocking_pids($1)) as blocking (pid)
                 left join pg_stat_activity a on a.pid = blocking.pid
                where l.pid = $1 and not l.granted
                order by a.xact_start
                limit 1"#,
            self.pid,
        )
        .fetch_optional(connection)
        .await
    }
}
