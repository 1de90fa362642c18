//! Clients that close their side, or whose software has ended.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{App, Database, Reader};

/// No sign of life of the service's own helps it to notice.
const QUIET: [&str; 2] = ["--keep-alive-ms", "300s"];

#[tokio::test]
async fn a_reader_that_closes_a_stream_it_has_read_gives_its_seat_back_at_once() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &QUIET).await;
    let mut reader = Reader::ask(&app.url, "/rooms/r/events").await;
    reader.snapshot().await;
    app.until_subscribers(1).await;

    drop(reader);

    app.until_subscribers(0).await;
}

#[tokio::test]
async fn a_reader_that_sends_no_more_is_told_the_end_of_its_stream() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &QUIET).await;
    let mut reader = Reader::ask(&app.url, "/rooms/r/events").await;
    reader.snapshot().await;

    let rest = reader.finish().await;

    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    app.until_subscribers(0).await;
}

#[tokio::test]
async fn who_asks_and_sends_no_more_is_answered() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut asker = Reader::ask(&app.url, "/rooms/r/participants").await;
    let answer = asker.finish().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn thousands_of_reloads_find_a_seat_among_a_few() {
    const PAGES: usize = 4;
    const RELOADS: usize = 500;
    let database = Database::new().await;
    let flags = [&QUIET[..], &["--max-subscribers", "40"]].concat();
    let app = App::spawn_with(&database, &flags).await;
    let mut pages = JoinSet::new();
    for page in 0..PAGES {
        let url = app.url.clone();
        pages.spawn(async move {
            let mut refused = 0;
            for _ in 0..RELOADS {
                let path = format!("/rooms/room-{page}/events");
                let mut reader = Reader::ask(&url, &path).await;
                match reader.status().await {
                    200 => reader.snapshot().await,
                    _ => refused += 1,
                }
            }
            refused
        });
    }
    let refused: usize = pages.join_all().await.into_iter().sum();
    assert!(refused < PAGES * RELOADS / 100, "{refused} were refused");
    app.until_subscribers(0).await;
}

#[tokio::test]
async fn a_socket_that_answers_no_ping_is_cut_and_its_member_reconnecting() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--keep-alive-ms", "100"]).await;
    let mut silent = app.socket("r").await;
    silent
        .send(json!({ "type": "join", "userId": "alice", "leaseMs": 60_000 }))
        .await;
    silent.until("answer").await;
    app.until_subscribers(1).await;

    // It reads no more, as a browser that is stopped.
    app.until_subscribers(0).await;

    let status = || async { app.participants("r").await["participants"][0]["status"].clone() };
    let reported = async {
        while status().await != "reconnecting" {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), reported).await.unwrap();
    assert_eq!(silent.closed().await, 1002);
    database.verify().await;
}

#[tokio::test]
async fn a_socket_that_answers_its_pings_stays_open() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--keep-alive-ms", "100"]).await;
    let mut answering = app.socket("r").await;
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        answering.answer_a_ping().await;
    }
    app.until_subscribers(1).await;
}
