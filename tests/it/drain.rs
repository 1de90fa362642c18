//! SIGTERM with `--drain`: everything is served a while longer, and streams end one after the other.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Client, Response};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::support::{Database, Events, Service, Socket};

const READERS: usize = 24;

async fn get(service: &Service, path: &str) -> Response {
    let request = service.client.get(format!("{}{path}", service.url));
    request.send().await.unwrap()
}

async fn until_unready(service: &Service) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let response = get(service, "/readyz").await;
        if response.status() == 503 {
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["error"], "this instance is about to stop");
            return;
        }
        assert!(Instant::now() < deadline, "it calls itself ready");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Joins, beats, lists and leaves over one connection and over new ones, until the instance is gone;
/// how many answers there were after `since`.
async fn member(url: String, n: usize, since: Instant) -> usize {
    let kept_open = Client::new();
    let room = format!("{url}/rooms/r{n}");
    let mut served = 0;
    for epoch in 1.. {
        let anew = Client::new();
        let client = if epoch % 2 == 0 { &kept_open } else { &anew };
        let post =
            |action: &str, body: &Value| client.post(format!("{room}/{action}")).json(body).send();
        let me = json!({ "userId": "alice", "epoch": epoch });
        let list = client.get(format!("{room}/participants")).send();
        for (asking, status) in [
            (post("join", &me).await, 200),
            (post("heartbeat", &me).await, 204),
            (list.await, 200),
            (post("leave", &me).await, 204),
        ] {
            match asking {
                Ok(response) => {
                    assert_eq!(response.status(), status);
                    served += usize::from(Instant::now() > since);
                }
                // Its end; whoever ends earlier than the others is found by the count.
                Err(_) => return served,
            }
        }
    }
    served
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_drains_serves_on_and_ends_its_streams_one_after_the_other() {
    const DRAIN: Duration = Duration::from_secs(3);
    let database = Database::new().await;
    let mut service = Service::serve(&database.url(), &["--drain", "3s"]).await;
    let room = format!("{}/rooms/watched", service.url);
    let mut streams = Vec::new();
    let mut sockets = Vec::new();
    for _ in 0..READERS {
        let mut stream = Events::of(reqwest::get(format!("{room}/events")).await.unwrap());
        stream.expect("snapshot").await;
        streams.push(stream);
        let mut socket = Socket::connect(&format!("{room}/socket")).await;
        socket.until("snapshot").await;
        sockets.push(socket);
    }
    let greeting = reqwest::get(format!("{room}/events")).await.unwrap();
    let greeting = greeting.bytes_stream();
    let retry_ms = retry(greeting).await;
    assert!((1_000..=3_000).contains(&retry_ms), "{retry_ms}");

    let began = Instant::now();
    service.signal(Signal::TERM);
    until_unready(&service).await;
    let members: Vec<_> = (0..4)
        .map(|n| tokio::spawn(member(service.url.clone(), n, began + DRAIN.mul_f64(0.7))))
        .collect();
    let streams = streams.into_iter().map(async |mut stream| {
        while stream.try_next().await.is_some() {}
        began.elapsed()
    });
    let sockets = sockets.into_iter().map(async |mut socket| {
        assert_eq!(socket.closed().await, 1012);
        began.elapsed()
    });
    let latecomer = async {
        let events = get(&service, "/rooms/watched/events").await;
        assert_eq!(events.status(), 200, "whoever comes is still served");
    };
    let (streams, sockets, ()) = tokio::join!(join_all(streams), join_all(sockets), latecomer);

    for mut ends in [streams, sockets] {
        ends.sort();
        // Uniformly over nine tenths of it, so that none of this happens by chance once in a million runs.
        assert!(ends[0] < DRAIN / 2, "{ends:?}");
        assert!(ends[READERS - 1] > DRAIN / 3, "{ends:?}");
        let busiest = ends.iter().map(|&at| {
            let soon = at..at + DRAIN / 20;
            ends.iter().filter(|&end| soon.contains(end)).count()
        });
        assert!(busiest.max().unwrap() <= READERS / 2, "{ends:?}");
    }
    let status = service.ended().await;
    let took = began.elapsed();
    assert!(status.success(), "{}", service.said());
    assert!(took >= DRAIN, "{took:?}");
    for member in members {
        assert!(member.await.unwrap() > 0, "served to the end of the drain");
    }
    database.verify().await;
}

/// What a stream begins with.
async fn retry(
    mut bytes: impl futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin,
) -> u32 {
    use futures_util::StreamExt;
    let mut text = String::new();
    while !text.contains("\n\n") {
        text.push_str(std::str::from_utf8(&bytes.next().await.unwrap().unwrap()).unwrap());
    }
    let (_, rest) = text.split_once("retry: ").unwrap();
    rest.lines().next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_again_need_not_wait_for_the_end_of_the_drain() {
    for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::TERM, Signal::INT)] {
        let database = Database::new().await;
        let mut service = Service::serve(&database.url(), &["--drain", "10m"]).await;
        let mut socket = Socket::connect(&format!("{}/rooms/r/socket", service.url)).await;
        socket.until("snapshot").await;
        service.signal(first);
        until_unready(&service).await;

        service.signal(second);

        // In good order all the same.
        assert_eq!(socket.closed().await, 1012);
        let status = service.ended().await;
        assert!(status.success(), "{}", service.said());
        database.verify().await;
    }
}
