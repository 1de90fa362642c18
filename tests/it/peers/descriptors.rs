//! Few open files: streams are refused before anything else suffers, and floods pass.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::{Database, Reader, Service};

const PATIENCE: Duration = Duration::from_secs(30);

/// A service that may open so few files that its settings cannot be had.
async fn poor(database: &Database, flags: &[&str]) -> Service {
    Service::serve_limited((256, 256), &database.url(), flags).await
}

/// The answer to a request on a connection of its own.
async fn ask(service: &Service, path: &str, body: Option<Value>) -> StatusCode {
    let client = Client::builder().timeout(PATIENCE).build().unwrap();
    let url = format!("{}{path}", service.url);
    let request = match body {
        Some(body) => client.post(url).json(&body),
        None => client.get(url),
    };
    request.send().await.unwrap().status()
}

fn alice(epoch: u64) -> Option<Value> {
    Some(json!({ "userId": "alice", "epoch": epoch }))
}

/// Opens streams until one is refused, with that many open.
async fn streams_until_refused(service: &Service) -> Vec<Reader> {
    let mut open = Vec::new();
    loop {
        let path = format!("/rooms/room-{}/events", open.len() % 10);
        let mut reader = Reader::ask(&service.url, &path).await;
        match reader.status().await {
            200 => open.push(reader),
            status => {
                assert_eq!(status, 503);
                return open;
            }
        }
    }
}

#[tokio::test]
async fn the_soft_limit_is_raised_to_the_hard_one() {
    let database = Database::new().await;
    let flags = ["--max-subscribers", "1000"];
    let service = Service::serve_limited((64, 4_096), &database.url(), &flags).await;
    let mut open = Vec::new();
    for _ in 0..300 {
        let mut reader = Reader::ask(&service.url, "/rooms/r/events").await;
        assert_eq!(reader.status().await, 200);
        open.push(reader);
    }
    let said = service.said();
    assert!(!said.contains("the limit of open files"), "{said}");
}

#[tokio::test]
async fn at_the_limit_a_stream_is_refused_and_everything_else_is_answered() {
    let database = Database::new().await;
    let flags = ["--max-subscribers-per-client", "20000"];
    let service = poor(&database, &flags).await;
    let said = service.said();
    assert!(said.contains("the limit of open files allows"), "{said}");

    let open = streams_until_refused(&service).await;
    assert!(
        open.len() > 100,
        "{} are fewer than there could be",
        open.len()
    );

    assert_eq!(ask(&service, "/healthz", None).await, 200);
    assert_eq!(ask(&service, "/rooms/r/join", alice(0)).await, 200);
    assert_eq!(ask(&service, "/rooms/r/heartbeat", alice(1)).await, 204);
    // At once, so that all connections to the database are made.
    let joins = (0..30).map(|n| {
        let user = Some(json!({ "userId": format!("user-{n}") }));
        ask(&service, "/rooms/r/join", user)
    });
    assert_eq!(join_all(joins).await, [StatusCode::OK; 30]);
    assert_eq!(ask(&service, "/readyz", None).await, 200);

    drop(open);
    let again = streams_until_refused(&service).await;
    assert!(again.len() > 100, "only {} came back", again.len());
    database.verify().await;
}

#[tokio::test]
async fn idle_connections_without_end_leave_places_for_the_next() {
    let database = Database::new().await;
    let service = poor(&database, &["--idle-timeout", "1h"]).await;
    let address = service.url.trim_start_matches("http://");
    let mut idle = Vec::new();
    for _ in 0..400 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut status = [0; "HTTP/1.1 200".len()];
        let answer = timeout(PATIENCE, connection.read_exact(&mut status)).await;
        answer.expect("an answer in time").unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        idle.push(connection);
    }
    assert_eq!(ask(&service, "/rooms/r/join", alice(0)).await, 200);
    let said = service.said();
    assert_eq!(
        said.matches("nearly as many connections").count(),
        1,
        "{said}"
    );
}

#[tokio::test]
async fn a_flood_of_silent_connections_costs_no_processor_and_no_log_and_passes() {
    let database = Database::new().await;
    let service = poor(&database, &["--request-timeout-ms", "3s"]).await;
    assert_eq!(ask(&service, "/rooms/r/join", alice(0)).await, 200);
    let address = service.url.trim_start_matches("http://");
    let flood = join_all((0..800).map(|_| TcpStream::connect(address))).await;
    let (before, began) = (service.cpu(), Instant::now());
    sleep(Duration::from_secs(2)).await;
    let used = service.cpu() - before;
    assert!(
        used < began.elapsed() / 2,
        "{used:?} of {:?}",
        began.elapsed()
    );

    // Whoever is silent is cut off, so others have their turn while the flood is there.
    assert_eq!(ask(&service, "/healthz", None).await, 200);
    drop(flood);
    assert_eq!(ask(&service, "/rooms/r/heartbeat", alice(1)).await, 204);
    let said = service.said();
    assert!(said.lines().count() < 30, "{said}");
    assert!(
        !said.contains("ccept"),
        "nothing was refused by the system: {said}"
    );
}
