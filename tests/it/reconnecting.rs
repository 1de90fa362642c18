//! After the database is back: full service soon, no stampede, and nobody deaf.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use private_postgres::{Cluster, ClusterOptions};
use rustix::process::Signal;
use serde_json::json;
use sqlx::{Connection, PgConnection, Row, raw_sql};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::support::{App, Database, Proxy, Service, command, run, text};

/// What a busy machine may take above a limit.
const SLACK: Duration = Duration::from_secs(4);

/// Every kind of request succeeds, several times over, in this time.
async fn require_full_service(app: &App, limit: Duration) {
    let started = Instant::now();
    let mut in_a_row = 0;
    while in_a_row < 5 {
        let me = json!({ "userId": "probe" });
        let join = async { app.post("/rooms/probe/join", me).await.status() };
        let beat = async { app.heartbeat("r", "alice", 1).await.status() };
        let leave = async { app.leave("r", "nobody", 1).await.status() };
        let list = async { app.get("/rooms/r/participants").await.status() };
        let stream = async { app.get("/rooms/r/events").await.status() };
        let (join, beat, leave, list, stream) = tokio::join!(join, beat, leave, list, stream);
        let statuses = [join, beat, leave, list, stream].map(|status| status.as_u16());
        let is_full = statuses == [200, 204, 204, 200, 200];
        in_a_row = if is_full { in_a_row + 1 } else { 0 };
        let took = started.elapsed();
        assert!(took < limit + SLACK, "{statuses:?} after {took:?}");
    }
}

/// Clients that go on asking whatever they are answered, until dropped.
fn hammer(app: &App, clients: usize) -> JoinSet<()> {
    let mut all = JoinSet::new();
    for n in 0..clients {
        let (client, url) = (app.client.clone(), app.url.clone());
        all.spawn(async move {
            loop {
                let body = json!({ "userId": format!("u{n}"), "epoch": 1 });
                let action = ["join", "heartbeat", "leave"][n % 3];
                let request = client.post(format!("{url}/rooms/r{n}/{action}"));
                let _ = request.json(&body).send().await;
            }
        });
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_of_postgres_there_is_full_service_within_two_seconds() {
    let options = ClusterOptions::throw_away("back").setting("synchronous_commit", "on");
    let mut cluster = Cluster::start(options).unwrap();
    let url = cluster.url("postgres");
    assert!(run(&["migrate"], &url).status.success());
    let app = App::spawn_at(&url, &["--lease-ms=300000"]).await;
    app.join("r", "alice").await;
    for _ in 0..2 {
        let _clients = hammer(&app, 12);
        cluster.kill();
        sleep(Duration::from_secs(3)).await;
        cluster.restart().unwrap();
        require_full_service(&app, Duration::from_secs(2)).await;
    }
    app.stop().await;
    cluster.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_silent_network_there_is_full_service_within_two_seconds() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let app = App::spawn_at(&proxy.url, &["--lease-ms=300000", "--timeout-ms=1s"]).await;
    app.join("r", "alice").await;
    let _clients = hammer(&app, 12);
    proxy.silence();
    sleep(Duration::from_secs(4)).await;
    // What is under way now is never answered.
    proxy.open();
    require_full_service(&app, Duration::from_secs(2)).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_is_asked_now_and_then_and_not_for_each_request() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let app = App::spawn_at(&proxy.url, &["--lease-ms=300000"]).await;
    app.join("r", "alice").await;
    let _clients = hammer(&app, 24);
    proxy.cut();
    sleep(Duration::from_millis(500)).await;

    let before = proxy.attempts();
    sleep(Duration::from_secs(4)).await;
    let attempts = proxy.attempts() - before;

    // Four ways to the database, each at most twice in 0.4 s.
    assert!((4..100).contains(&attempts), "{attempts}");
    proxy.open();
    require_full_service(&app, Duration::from_secs(2)).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_died_in_silence_is_noticed_within_seconds() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    // Without hints its readers would see nothing for a minute.
    let flags = ["--poll-ms=60s", "--lease-ms=300000", "--timeout-ms=1s"];
    let deaf = App::spawn_at(&proxy.url, &flags).await;
    let other = App::spawn_with(&database, &flags).await;
    let mut events = deaf.events("r").await;
    events.expect("snapshot").await;
    other.join("r", "alice").await;
    events.expect("joined").await;

    proxy.silence();
    proxy.open();
    let started = Instant::now();
    other.join("r", "bob").await;

    let joined = events.expect("joined").await.data;
    assert_eq!(joined["participant"]["userId"], "bob");
    let took = started.elapsed();
    assert!(took < Duration::from_secs(7) + SLACK, "{took:?}");
    // And it hears again.
    other.join("r", "carol").await;
    events.expect("joined").await;
    database.verify().await;
}

/// As after a failover in which the old primary keeps its connections open, as one that only reads.
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_a_server_that_only_reads_are_given_up_together() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--lease-ms=300000", "--sweep-interval-ms=0"]).await;
    database
        .execute(
            "create table public.demoted (pid integer);
             create function public.refuse() returns trigger language plpgsql as $$
             begin
                 if exists (select from public.demoted where pid = pg_backend_pid()) then
                     raise exception 'cannot execute this in a read-only transaction' using errcode = '25006';
                 end if;
                 return new;
             end $$;
             create trigger refuse before insert or update on leasehold.members
                for each row execute function public.refuse()",
        )
        .await;
    // Many connections, all of them idle.
    let mut holder = database.connect().await;
    raw_sql("begin; lock table leasehold.members in access exclusive mode")
        .execute(&mut holder)
        .await
        .unwrap();
    let many = (0..12).map(|n| {
        let app = &app;
        async move {
            let path = format!("/rooms/r{n}/participants");
            app.get(&path).await;
            app.post(&format!("/rooms/r{n}/join"), json!({ "userId": "alice" }))
                .await
        }
    });
    let releasing = async {
        database.until_waiting_for_locks(4).await;
        raw_sql("rollback").execute(&mut holder).await.unwrap();
    };
    tokio::join!(futures_util::future::join_all(many), releasing);
    app.join("r", "alice").await;
    let row = raw_sql(
        "select count(*) from pg_stat_activity
          where datname = current_database() and application_name = 'leasehold'",
    );
    let connections: i64 = row.fetch_one(&database.pool).await.unwrap().get(0);
    assert!(connections > 4, "{connections}");

    database
        .execute(
            "insert into public.demoted select pid from pg_stat_activity
              where datname = current_database() and application_name = 'leasehold'",
        )
        .await;

    // One each of the connections for joins and of those for heartbeats finds out.
    let mut refused = 0;
    for n in 0..20 {
        let join = app.post("/rooms/r/join", json!({ "userId": format!("user-{n}") }));
        refused += usize::from(join.await.status() == 503);
        let beat = app.heartbeat("r", "alice", 1).await;
        refused += usize::from(beat.status() == 503);
    }
    assert!((1..=3).contains(&refused), "{refused} were refused");
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_and_a_host_that_change_in_the_file_need_no_restart() {
    let directory = TempDir::new().unwrap();
    let readable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), readable).unwrap();
    let rules = directory.path().join("pg_hba.conf");
    fs::write(
        &rules,
        "local all postgres trust\nlocal all all scram-sha-256\n",
    )
    .unwrap();
    let options =
        ClusterOptions::throw_away("password").setting("hba_file", rules.to_str().unwrap());
    let cluster = Cluster::start(options).unwrap();
    let url = cluster.url("postgres");
    let mut admin = PgConnection::connect(&url).await.unwrap();
    raw_sql("create role presence login superuser password 'first'")
        .execute(&mut admin)
        .await
        .unwrap();
    let file = directory.path().join("url");
    let proxies = [Proxy::to(&url).await, Proxy::to(&url).await];
    let write = |proxy: &Proxy, password: &str| {
        let address = proxy
            .url
            .replacen("postgres@", &format!("presence:{password}@"), 1);
        fs::write(&file, format!("{address}\n")).unwrap();
    };
    write(&proxies[0], "first");
    let at = format!("--database-url-file={}", file.display());
    let migrated = command(&["migrate", &at]).output().unwrap();
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    let service = Service::serve_from_file(&file, &["--timeout-ms=1s"]).await;
    let join = async |user: &str| {
        let request = service.client.post(format!("{}/rooms/r/join", service.url));
        let response = request.json(&json!({ "userId": user })).send().await;
        response.unwrap().status().as_u16()
    };
    let until_joined = async |user: &str| {
        let deadline = Instant::now() + Duration::from_secs(2) + SLACK;
        while join(user).await != 200 {
            assert!(Instant::now() < deadline, "{}", service.said());
            sleep(Duration::from_millis(20)).await;
        }
    };
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'presence'";
    // A connection that is being made, or is slow to end, lives for a moment longer.
    let until_refused = async |admin: &mut PgConnection, user: &str| {
        let deadline = Instant::now() + Duration::from_secs(2) + SLACK;
        loop {
            raw_sql(end).execute(&mut *admin).await.unwrap();
            sleep(Duration::from_millis(300)).await;
            if join(user).await == 503 {
                return;
            }
            assert!(Instant::now() < deadline, "{}", service.said());
        }
    };
    assert_eq!(join("alice").await, 200);

    // What is open stays open; what is new needs the new password.
    raw_sql("alter role presence password 'second'")
        .execute(&mut admin)
        .await
        .unwrap();
    until_refused(&mut admin, "bob").await;
    write(&proxies[0], "second");
    until_joined("bob").await;

    proxies[0].cut();
    write(&proxies[1], "second");
    until_joined("carol").await;

    // A file that is half written, or gone, is read again as well.
    fs::write(&file, "postgr").unwrap();
    until_refused(&mut admin, "dora").await;
    write(&proxies[1], "second");
    until_joined("dora").await;
    let said = service.said();
    assert!(
        !said.contains("first") && !said.contains("second"),
        "{said}"
    );
    service.stop(Signal::TERM).await;
    admin.close().await.unwrap();
    cluster.stop().unwrap();
}
