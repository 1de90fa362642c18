//! Behind a PgBouncer that is configured as strictly as it comes: no start-up parameter is let through.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Url;
use sqlx::{Row, raw_sql};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::support::{App, Database};

struct Pooler {
    child: Child,
    url: String,
    _directory: TempDir,
}

impl Pooler {
    /// `None`, and said so, where there is no PgBouncer.
    async fn before(database: &Database) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let programs = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        let mut programs = programs.map(|bin| bin.join("pgbouncer"));
        let Some(program) = programs.find(|program| program.is_file()) else {
            eprintln!("SKIPPED: pgbouncer is not installed (apt install pgbouncer)");
            return None;
        };
        let server = Url::parse(&database.url()).unwrap();
        let host = server.query_pairs().find(|(name, _)| name == "host");
        let host = host.map(|(_, host)| host.into_owned());
        let host = host.unwrap_or_else(|| server.host_str().unwrap().to_owned());
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut settings = format!(
            "[databases]\n* = host={host} port={} user={}{}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = session\ndefault_pool_size = 60\n",
            server.port().unwrap_or(5432),
            server.username(),
            server
                .password()
                .map_or(String::new(), |password| format!(" password={password}")),
        );
        if rustix::process::getuid().is_root() {
            settings.push_str("user = postgres\n");
        }
        let directory = TempDir::new().unwrap();
        let readable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), readable).unwrap();
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut child = Command::new(program)
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert_eq!(child.try_wait().unwrap(), None, "pgbouncer ended");
            assert!(Instant::now() < deadline, "pgbouncer does not listen");
            sleep(Duration::from_millis(20)).await;
        }
        Some(Self {
            child,
            url: format!("postgres://anybody@127.0.0.1:{port}{}", server.path()),
            _directory: directory,
        })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_pooler_that_lets_no_start_up_parameter_through_changes_nothing() {
    let database = Database::new().await;
    let Some(pooler) = Pooler::before(&database).await else {
        return;
    };
    database
        .execute(
            "create table public.seen (act text, value text);
             create function public.look() returns trigger language plpgsql as $$
             begin
                 insert into public.seen values
                     (lower(tg_op), current_setting('synchronous_commit') || ' ' ||
                                    current_setting('statement_timeout'));
                 return null;
             end $$;
             create trigger look after insert or update on leasehold.members
                for each row execute function public.look()",
        )
        .await;
    let flags = ["--timeout-ms=7s", "--poll-ms=60s", "--sweep-interval-ms=0"];
    let one = App::spawn_at(&pooler.url, &flags).await;
    let two = App::spawn_at(&pooler.url, &flags).await;

    let mut events = two.events("r").await;
    events.expect("snapshot").await;
    one.join("r", "alice").await;
    assert_eq!(one.heartbeat("r", "alice", 1).await.status(), 204);
    // By a hint: the poll is too far away.
    events.expect("joined").await;
    assert_eq!(one.leave("r", "alice", 1).await.status(), 204);
    events.until("room_closed").await;

    let sql = "select string_agg(distinct act || ': ' || value, ', ' order by act || ': ' || value) from public.seen";
    let row = raw_sql(sql).fetch_one(&database.pool).await.unwrap();
    let seen: String = row.get(0);
    assert_eq!(seen, "insert: on 7s, update: off 7s");
    one.stop().await;
    two.stop().await;
    database.verify().await;
}
