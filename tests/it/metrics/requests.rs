//! Requests by route and status, refusals by code, and the queues.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Figures, is, until};
use crate::support::{App, Database, Gate};

const REQUESTS: &str = "leasehold_http_requests_total";
const REFUSALS: &str = "leasehold_refusals_total";

#[tokio::test]
async fn requests_are_counted_by_the_pattern_of_their_route() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for user in ["alice", "bob", "carol"] {
        app.join(&format!("room-of-{user}"), user).await;
    }
    app.heartbeat("room-of-alice", "alice", 1).await;
    app.heartbeat("room-of-alice", "alice", 7).await;
    app.delete("/rooms/room-of-bob").await;
    app.get("/rooms/room-of-carol").await;
    let head = app.send(Method::HEAD, "/rooms/room-of-carol", &[], "");
    assert_eq!(head.await.status(), 200);

    let figures = Figures::of(&app).await;
    for (route, method, status, expected) in [
        ("/rooms/{roomId}/join", "POST", "200", 3),
        ("/rooms/{roomId}/heartbeat", "POST", "204", 1),
        ("/rooms/{roomId}/heartbeat", "POST", "409", 1),
        ("/rooms/{roomId}", "DELETE", "204", 1),
        ("/rooms/{roomId}", "GET", "200", 2),
    ] {
        let labels = [("route", route), ("method", method)];
        let counted = figures.sum(REQUESTS, &[labels[0], labels[1], ("status", status)]);
        assert!(is(counted, expected), "{route} {status}: {counted}");
        let timed = figures.sum("leasehold_http_request_duration_seconds_count", &labels);
        assert!(
            is(timed, figures.sum(REQUESTS, &labels) as u32),
            "{route}: {timed}"
        );
    }
}

#[tokio::test]
async fn no_client_can_make_a_series() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let odd = async |n: u32| {
        let method = Method::from_bytes(format!("ODD{n}").as_bytes()).unwrap();
        app.get(&format!("/nothing/{n}")).await;
        app.get(&format!("/rooms/room-{n}")).await;
        app.send(method.clone(), &format!("/rooms/room-{n}"), &[], "")
            .await;
        app.send(method, &format!("/nowhere/{n}"), &[], "").await;
    };
    // Those of a first scrape and of each of these requests are there.
    Figures::of(&app).await;
    odd(0).await;
    let before = Figures::of(&app).await;
    for n in 1..50 {
        odd(n).await;
    }
    let after = Figures::of(&app).await;
    let new: Vec<_> = after
        .0
        .keys()
        .filter(|s| !before.0.contains_key(*s))
        .collect();
    assert!(new.is_empty(), "{new:#?}");
    let unmatched = after.sum(REQUESTS, &[("route", "unmatched"), ("status", "404")]);
    assert!(is(unmatched, 100), "{unmatched}");
    let refused = after.sum(
        REQUESTS,
        &[
            ("route", "/rooms/{roomId}"),
            ("method", "other"),
            ("status", "405"),
        ],
    );
    assert!(is(refused, 50), "{refused}");
}

#[tokio::test]
async fn refusals_are_counted_over_http_in_batches_and_on_sockets() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.get("/rooms/nobody").await;
    app.get("/nothing").await;
    app.post("/rooms/r/join", json!({})).await;
    let stale = json!({ "roomId": "r", "userId": "alice", "epoch": 9 });
    let nonsense = json!({ "roomId": "r" });
    let batch = json!({ "heartbeats": [stale, nonsense, stale] });
    assert_eq!(app.post("/heartbeats", batch).await.status(), 200);
    let batch = json!({ "leaves": [nonsense] });
    assert_eq!(app.post("/leaves", batch).await.status(), 200);
    let mut socket = app.socket("r").await;
    for message in [
        json!({ "type": "heartbeat", "userId": "alice", "epoch": 9 }),
        json!({ "type": "dance" }),
        Value::Null,
    ] {
        socket.send(message).await;
        socket.until("answer").await;
    }

    let figures = Figures::of(&app).await;
    for (code, expected) in [
        ("room_not_found", 1),
        ("not_found", 1),
        ("invalid_request", 5),
        ("unknown_session", 3),
        ("superseded", 0),
        ("unavailable", 0),
    ] {
        let counted = figures.sum(REFUSALS, &[("code", code)]);
        assert!(is(counted, expected), "{code}: {counted}");
    }
}

#[tokio::test]
async fn queues_show_who_waits_how_long_and_in_which_batches() {
    let database = Database::new().await;
    let flags = ["--coalesce-max-batch=10", "--timeout-ms=10s"];
    let app = App::spawn_with(&database, &flags).await;
    let mut gate = Gate::behind(&database, "room_sessions").await;
    gate.shut().await;
    let list = async |n: u32| app.participants(&format!("room-{n}")).await;
    let listing = futures_util::future::join_all((0..100).map(list));
    let releasing = async {
        // Nothing is answered, and no more batches begin than there are lanes.
        let operation = [("operation", "list")];
        let figures = until(&app, "a queue", |figures| {
            let queued = figures.sum("leasehold_queue_length", &operation);
            let begun = figures.sum("leasehold_batch_size_sum", &operation);
            queued >= 1.0 && is(queued + begun, 100)
        });
        let figures = figures.await;
        assert!(is(
            figures.sum("leasehold_queue_length", &[("operation", "leave")]),
            0
        ));
        gate.open().await;
    };
    let (_, ()) = tokio::join!(listing, releasing);

    let figures = Figures::of(&app).await;
    let of = |name: &str, more: &[(&str, &str)]| {
        figures.sum(name, &[&[("operation", "list")], more].concat())
    };
    assert!(is(of("leasehold_queue_length", &[]), 0));
    assert!(is(of("leasehold_batch_size_sum", &[]), 100));
    let batches = of("leasehold_batch_size_count", &[]);
    assert!(batches >= 10.0, "{batches}");
    assert!(is(
        of("leasehold_batch_size_bucket", &[("le", "10")]),
        batches as u32
    ));
    assert!(of("leasehold_batch_size_bucket", &[("le", "5")]) < batches);
    assert!(is(
        of("leasehold_queue_wait_seconds_count", &[]),
        batches as u32
    ));
    assert!(of("leasehold_queue_wait_seconds_sum", &[]) > 0.0);
    database.verify().await;
}
