//! The feed as server-sent events.

use std::time::Duration;

use reqwest::Response;

use super::read;
use crate::support::{App, Database, Events, Proxy, purge_settled};

const NO_SWEEP: &[&str] = &["--sweep-interval-ms=0"];

async fn open(app: &App, query: &str, last: Option<&str>) -> Response {
    let mut request = app.client.get(format!("{}/changes/events{query}", app.url));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_reader_that_comes_back_with_the_last_id_goes_on_where_it_was() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_SWEEP).await;
    app.join("r", "alice").await;
    let mut events = Events::of(open(&app, "", None).await);
    let opened = events.expect("room_opened").await;
    assert_eq!(opened.data["roomId"], "r");
    events.expect("joined").await;
    drop(events);
    app.leave("r", "alice", 1).await;

    let id = opened.id.unwrap();
    let mut events = Events::of(open(&app, "?after=latest", Some(&id)).await);
    events.expect("joined").await;
    events.expect("ended").await;
    events.expect("room_closed").await;
    app.join("r", "bob").await;
    events.expect("room_opened").await;
    let joined = events.expect("joined").await;
    let (page, _) = read(&app, "kinds=joined", 2).await;
    assert_eq!(joined.data, page[1], "the same as the pages have");
    assert_eq!(joined.data["position"].as_str(), joined.id.as_deref());
    drop(events);
    app.stop().await;
}

#[tokio::test]
async fn what_is_refused_is_refused_before_the_stream_begins() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_SWEEP).await;
    app.join("r", "alice").await;
    let (_, next) = read(&app, "", 2).await;
    let elsewhere = next.replace(&next[..8], "00000000");
    for (query, last, status) in [
        ("?after=x", None, 400),
        ("?kinds=x", None, 400),
        ("", Some("x"), 400),
        ("", Some(elsewhere.as_str()), 410),
        ("", Some("latest"), 200),
    ] {
        assert_eq!(
            open(&app, query, last).await.status(),
            status,
            "{query} {last:?}"
        );
    }
}

#[tokio::test]
async fn a_reader_that_what_follows_was_purged_under_is_told_and_its_stream_ends() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = ["--sweep-interval-ms=0", "--poll-ms=100", "--timeout-ms=500"];
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;
    let mut events = Events::of(open(&app, "", None).await);
    events.expect("room_opened").await;
    events.expect("joined").await;

    proxy.cut();
    events.until("stale").await;
    database
        .execute(
            "select leasehold.leave_member('r', 'alice', 1);
             select leasehold.join_member('r', 'bob');
             select leasehold.leave_member('r', 'bob', 1)",
        )
        .await;
    // Of its own, as a transaction's own changes are not settled for it.
    purge_settled(&database.store, Duration::ZERO).await;
    proxy.open();
    events.until("position_expired").await;
    assert!(events.try_next().await.is_none());
}

#[tokio::test]
async fn the_database_away_ends_no_stream_and_loses_nothing() {
    let database = Database::new().await;
    let proxy = Proxy::to(&database.url()).await;
    let flags = ["--sweep-interval-ms=0", "--poll-ms=100", "--timeout-ms=500"];
    let app = App::spawn_at(&proxy.url, &flags).await;
    app.join("r", "alice").await;
    let mut events = Events::of(open(&app, "?after=latest", None).await);
    proxy.cut();
    tokio::time::timeout(Duration::from_secs(20), events.until("stale"))
        .await
        .unwrap();
    database
        .execute("select leasehold.leave_member('r', 'alice', 1)")
        .await;
    proxy.open();
    events.expect("ended").await;
    events.expect("room_closed").await;
}

#[tokio::test]
async fn a_service_that_stops_ends_the_stream_at_once() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms=0", "--drain=0"]).await;
    app.join("r", "alice").await;
    let mut events = Events::of(open(&app, "", None).await);
    events.expect("room_opened").await;
    events.expect("joined").await;
    let ending = async { while events.try_next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(5), async {
        tokio::join!(app.stop(), ending)
    })
    .await
    .unwrap();
}
