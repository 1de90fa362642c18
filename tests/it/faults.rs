//! A database that is down, silent, slow or contrary: 503 in bounded time, never
//! a hang, and service again as soon as it is back.

use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use leasehold::store::{DatabaseSettings, Migrations, Store};
use private_postgres::{Cluster, ClusterOptions};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::raw_sql;

use super::support::race::{Side, lock_room};
use super::support::{App, Database, Proxy};

/// What the service may take above its own time-out, on a busy machine.
const SLACK: Duration = Duration::from_secs(5);

async fn in_time(request: impl Future<Output = Response>, limit: Duration) -> Response {
    let started = Instant::now();
    let response = request.await;
    let took = started.elapsed();
    assert!(took < limit, "{} took {took:?}", response.url());
    response
}

async fn require_unavailable(response: Response) {
    assert_eq!(response.status(), 503);
    let after: u32 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..60).contains(&after));
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "unavailable", "{body}");
}

/// Every kind of request is answered with 503, at once, in bounded time.
async fn require_all_unavailable(app: &App) {
    let asked = async {
        tokio::join!(
            in_time(app.post("/rooms/r/join", json!({ "userId": "bob" })), SLACK),
            in_time(app.heartbeat("r", "alice", 1), SLACK),
            in_time(app.leave("r", "carol", 1), SLACK),
            in_time(app.get("/rooms/r/participants"), SLACK),
            in_time(app.get("/rooms/r"), SLACK),
            in_time(app.get("/readyz"), SLACK),
        )
    };
    let (a, b, c, d, e, f) = asked.await;
    for response in [a, b, c, d, e, f] {
        require_unavailable(response).await;
    }
    assert_eq!(app.get("/healthz").await.status(), 200);
    let metrics = in_time(app.get("/metrics"), SLACK).await;
    assert_eq!(metrics.status(), 200);
}

/// Every kind of request succeeds again, soon.
async fn require_all_served(app: &App) {
    let deadline = Instant::now() + Duration::from_secs(10);
    for (method, path, body) in [
        (Method::POST, "/rooms/r/join", json!({ "userId": "bob" })),
        (
            Method::POST,
            "/rooms/r/heartbeat",
            json!({ "userId": "alice", "epoch": 1 }),
        ),
        (
            Method::POST,
            "/rooms/r/leave",
            json!({ "userId": "carol", "epoch": 1 }),
        ),
        (Method::GET, "/rooms/r/participants", Value::Null),
        (Method::GET, "/readyz", Value::Null),
    ] {
        loop {
            let headers = [("content-type", "application/json")];
            let response = app
                .send(method.clone(), path, &headers, body.to_string())
                .await;
            if response.status().is_success() {
                break;
            }
            assert_eq!(response.status(), 503, "{path}");
            let body = response.text().await.unwrap();
            assert!(
                Instant::now() < deadline,
                "{path} is not served again: {body}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A backend whose server was killed ends when it notices, and may answer once more before.
async fn until_its_backends_are_gone(app: &App) {
    let deadline = Instant::now() + SLACK;
    for action in ["heartbeat", "leave"] {
        let path = format!("/rooms/r/{action}");
        let body = json!({ "userId": "nobody", "epoch": 1 });
        while app.post(&path, body.clone()).await.status() != 503 {
            assert!(Instant::now() < deadline, "a backend lives on");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_down_is_503_and_200_when_it_is_back() {
    let options = ClusterOptions::throw_away("down").setting("synchronous_commit", "on");
    let mut cluster = Cluster::start(options).unwrap();
    let settings = DatabaseSettings {
        url: cluster.url("postgres").into(),
        connections: 2,
        held_connections: 2,
        timeout: Duration::from_secs(20),
        serves: false,
    };
    Migrations::apply(&settings).await.unwrap();
    let flags = [
        "--timeout-ms=500",
        "--sweep-interval-ms=0",
        "--lease-ms=120000",
    ];
    let app = App::spawn_at(&cluster.url("postgres"), &flags).await;
    app.join("r", "alice").await;

    for _ in 0..2 {
        cluster.kill();
        until_its_backends_are_gone(&app).await;
        require_all_unavailable(&app).await;
        cluster.restart().unwrap();
        require_all_served(&app).await;
    }

    app.stop().await;
    let store = Store::new(&settings).unwrap();
    assert_eq!(store.verify().await.unwrap(), []);
    store.close().await;
    cluster.stop().unwrap();
}

#[tokio::test]
async fn a_database_that_goes_silent_is_503_and_wedges_nothing() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = [
        "--timeout-ms=300",
        "--sweep-interval-ms=0",
        "--lease-ms=120000",
        "--db-connections=3",
    ];
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;

    for _ in 0..3 {
        proxy.silence();
        for _ in 0..3 {
            require_all_unavailable(&app).await;
        }
        // The connections that went silent stay so, as after the loss of a machine.
        proxy.open();
        require_all_served(&app).await;
    }

    proxy.silence();
    require_all_unavailable(&app).await;
    let started = Instant::now();
    app.stop().await;
    assert!(started.elapsed() < Duration::from_secs(25));
    database.verify().await;
}

#[tokio::test]
async fn a_statement_that_waits_too_long_for_a_lock_is_503_and_succeeds_later() {
    let database = Database::new().await;
    let flags = ["--timeout-ms=500", "--sweep-interval-ms=0"];
    let app = App::spawn_with(&database, &flags).await;
    app.join("r", "alice").await;
    let mut blocker = database.connect().await;
    raw_sql("begin; select from leasehold.rooms where room_id = 'r' for update")
        .execute(&mut blocker)
        .await
        .unwrap();

    let join = app.post("/rooms/r/join", json!({ "userId": "bob" }));
    require_unavailable(in_time(join, SLACK).await).await;
    require_unavailable(in_time(app.leave("r", "alice", 1), SLACK).await).await;
    // These need no room's lock.
    assert_eq!(app.heartbeat("r", "alice", 1).await.status(), 204);
    assert_eq!(
        app.participants("r").await["participants"][0]["userId"],
        "alice"
    );

    raw_sql("rollback").execute(&mut blocker).await.unwrap();
    assert_eq!(app.leave("r", "alice", 1).await.status(), 204);
    app.join("r", "bob").await;
    database.verify().await;
}

/// A user's own transaction may hold a member for long; that must not end the leases of all others.
#[tokio::test]
async fn a_transaction_that_holds_a_session_delays_no_other_heartbeat() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms=20000"]).await;
    for user in ["alice", "bob"] {
        app.join("r", user).await;
    }
    let lock = "select from leasehold.members where user_id = 'alice' for update";
    let mut holder = Side::holding(&database, lock).await;

    let others = async {
        database.until_waiting_for_locks(1).await;
        let answer = in_time(app.heartbeat("r", "bob", 1), SLACK).await;
        holder.run("commit").await;
        answer
    };
    let (held, other) = tokio::join!(app.heartbeat("r", "alice", 1), others);
    assert_eq!(other.status(), 204);
    assert_eq!(held.status(), 204);
    database.verify().await;
}

/// Who joins or leaves the held room waits; all others go on, also those who asked after them.
#[tokio::test]
async fn transactions_that_hold_rooms_delay_joins_and_leaves_of_those_rooms_alone() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms=20000"]).await;
    for room in ["held", "free"] {
        app.join(room, "alice").await;
    }
    let mut holder = Side::holding(&database, lock_room("held")).await;

    let others = async {
        // Who asks for a room that is known to be held waits behind who waits for it in the database.
        database.until_waiting_for_locks(1).await;
        let free = async {
            app.join("free", "bob").await;
            app.join("new", "bob").await;
            assert_eq!(app.leave("free", "alice", 1).await.status(), 204);
        };
        tokio::time::timeout(SLACK, free).await.unwrap();
        holder.run("commit").await;
    };
    let bob = json!({ "userId": "bob" });
    let (joined, left, ()) = tokio::join!(
        app.post("/rooms/held/join", bob),
        app.leave("held", "alice", 1),
        others
    );
    assert_eq!(joined.status(), 200);
    assert_eq!(left.status(), 204);
    database.verify().await;
}

/// With one batch at a time, those who come while it waits are all in the next one.
#[tokio::test]
async fn who_shares_a_batch_with_a_held_room_is_not_held_up_with_it() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--coalesce-lanes=1", "--timeout-ms=12000"]).await;
    for room in ["first", "held"] {
        app.join(room, "alice").await;
    }
    let mut first = Side::holding(&database, lock_room("first")).await;
    let mut held = Side::holding(&database, lock_room("held")).await;
    let join = async |room: &str| {
        let path = format!("/rooms/{room}/join");
        let joined = app.post(&path, json!({ "userId": "bob" })).await;
        assert_eq!(joined.status(), 200);
    };

    let the_rest = async {
        database.until_waiting_for_locks(1).await;
        let free = async {
            join("free").await;
            held.run("commit").await;
        };
        let release_first = async {
            // Until the others wait behind the first.
            tokio::time::sleep(Duration::from_millis(200)).await;
            first.run("commit").await;
        };
        tokio::join!(join("held"), free, release_first);
    };
    tokio::join!(join("first"), the_rest);
    database.verify().await;
}

#[tokio::test]
async fn when_a_queue_is_full_the_next_is_refused_at_once() {
    let database = Database::new().await;
    let flags = [
        "--coalesce-queue=1",
        "--coalesce-lanes=1",
        "--coalesce-max-batch=1",
        "--timeout-ms=20000",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let mut blocker = database.connect().await;
    raw_sql("begin; lock table leasehold.rooms in access exclusive mode")
        .execute(&mut blocker)
        .await
        .unwrap();
    let join = |user: &'static str| app.post("/rooms/r/join", json!({ "userId": user }));
    let the_rest = async {
        database.until_waiting_for_locks(1).await;
        let mut answers: FuturesUnordered<_> = ["a", "b", "c"].map(join).into_iter().collect();
        // One of them fits into the queue, whichever comes first.
        for _ in 0..2 {
            let refused = in_time(answers.select_next_some(), SLACK).await;
            require_unavailable(refused).await;
        }
        raw_sql("commit").execute(&mut blocker).await.unwrap();
        answers.select_next_some().await
    };
    let (first, queued) = tokio::join!(join("first"), the_rest);
    assert_eq!(first.status(), 200);
    assert_eq!(queued.status(), 200);
    app.join("r", "later").await;
    database.verify().await;
}

/// A trigger on new members, in which something goes wrong.
async fn trigger(database: &Database, body: &str) {
    database
        .execute(format!(
            "create function public.fault() returns trigger language plpgsql as $$
             begin
                 {body}
                 return new;
             end $$;
             create trigger fault before insert on leasehold.members
                for each row execute function public.fault()"
        ))
        .await;
}

#[tokio::test]
async fn a_request_that_postgres_refuses_fails_alone() {
    let database = Database::new().await;
    trigger(
        &database,
        "if new.user_id = 'poison' then raise exception 'no' using errcode = '22023'; end if;",
    )
    .await;
    let app = App::spawn_with(&database, &["--coalesce-lanes=1", "--timeout-ms=20000"]).await;
    let mut blocker = database.connect().await;
    raw_sql("begin; lock table leasehold.rooms in access exclusive mode")
        .execute(&mut blocker)
        .await
        .unwrap();
    let join = |user: &'static str| app.post("/rooms/r/join", json!({ "userId": user }));

    let (first, a, poison, b, ()) = tokio::join!(
        join("first"),
        async {
            database.until_waiting_for_locks(1).await;
            join("a").await
        },
        async {
            database.until_waiting_for_locks(1).await;
            join("poison").await
        },
        async {
            database.until_waiting_for_locks(1).await;
            join("b").await
        },
        async {
            database.until_waiting_for_locks(1).await;
            // Until the others wait behind the first; a batch of them is then one call.
            tokio::time::sleep(Duration::from_millis(200)).await;
            raw_sql("commit").execute(&mut blocker).await.unwrap();
        },
    );

    for response in [first, a, b] {
        assert_eq!(response.status(), 200);
    }
    assert_eq!(poison.status(), 400);
    let body: Value = poison.json().await.unwrap();
    assert_eq!(body["code"], "invalid_request");
    assert_eq!(database.rows().await, (1, 3));
    database.verify().await;
}

#[tokio::test]
async fn a_transaction_that_postgres_aborts_for_another_is_tried_again() {
    for code in ["40P01", "40001"] {
        let database = Database::new().await;
        database.execute("create sequence public.tries").await;
        trigger(
            &database,
            &format!(
                "if nextval('public.tries') <= 2 then
                     raise exception 'give way' using errcode = '{code}';
                 end if;"
            ),
        )
        .await;
        let app = App::spawn(&database).await;
        assert_eq!(app.join("r", "alice").await["epoch"], 1);
        database.verify().await;
    }
}

#[tokio::test]
async fn a_transaction_that_postgres_aborts_for_ever_is_503() {
    let database = Database::new().await;
    trigger(
        &database,
        "raise exception 'give way' using errcode = '40P01';",
    )
    .await;
    let app = App::spawn(&database).await;
    let join = app.post("/rooms/r/join", json!({ "userId": "alice" }));
    require_unavailable(in_time(join, SLACK).await).await;
    assert_eq!(database.rows().await, (0, 0));
    database.execute("drop function public.fault cascade").await;
    assert_eq!(app.join("r", "alice").await["epoch"], 1);
    database.verify().await;
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_nothing_and_poisons_no_connection() {
    let database = Database::new().await;
    let flags = [
        "--db-connections=1",
        "--timeout-ms=20000",
        "--sweep-interval-ms=0",
    ];
    let app = App::spawn_with(&database, &flags).await;
    for n in 1..=3 {
        let mut blocker = database.connect().await;
        raw_sql("begin; lock table leasehold.rooms in access exclusive mode")
            .execute(&mut blocker)
            .await
            .unwrap();
        let url = format!("{}/rooms/r/join", app.url);
        let request = reqwest::Client::new()
            .post(url)
            .json(&json!({ "userId": format!("user-{n}") }));
        let asking = tokio::spawn(request.send());
        database.until_waiting_for_locks(1).await;
        // Its connection is closed with it.
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        raw_sql("commit").execute(&mut blocker).await.unwrap();

        let listed = app.participants("r").await;
        let listed = listed["participants"].as_array().unwrap().len();
        // The list may have been read before the join's commit.
        assert!(listed == n || listed == n - 1, "{listed}");
        let probe = app.join("r", &format!("user-{n}")).await;
        assert_eq!(
            probe["epoch"], 2,
            "the join that nobody waited for took effect"
        );
    }
    database.verify().await;
}

#[tokio::test]
async fn metrics_that_wait_for_the_database_answer_late_figures_and_poison_no_connection() {
    let database = Database::new().await;
    let flags = [
        "--db-connections=1",
        "--timeout-ms=20000",
        "--sweep-interval-ms=0",
    ];
    let app = App::spawn_with(&database, &flags).await;
    app.join("r", "alice").await;
    let metrics = app.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("leasehold_active_members 1"), "{metrics}");
    app.join("r", "bob").await;
    let mut blocker = database.connect().await;
    raw_sql("begin; lock table leasehold.members in access exclusive mode")
        .execute(&mut blocker)
        .await
        .unwrap();

    // Some of these find the earlier count too old, and cannot make another.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(7) {
        let metrics = in_time(app.get("/metrics"), SLACK).await;
        let metrics = metrics.text().await.unwrap();
        assert!(metrics.contains("leasehold_active_members 1"), "{metrics}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    raw_sql("commit").execute(&mut blocker).await.unwrap();
    assert_eq!(app.join("r", "carol").await["epoch"], 1);
    // An earlier count is shown for some seconds.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let metrics = app.get("/metrics").await.text().await.unwrap();
        if metrics.contains("leasehold_active_members 3") {
            break;
        }
        assert!(Instant::now() < deadline, "{metrics}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    database.verify().await;
}
