//! Clients that send request after request without waiting for answers.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::support::{Database, Reader, Service};

/// More than is read ahead.
const MANY: usize = 5_000;

/// Less than that.
const SOME: usize = 1_000;

#[tokio::test]
async fn requests_behind_an_answer_that_takes_its_time_cost_no_processor() {
    let database = Database::new().await;
    let service = Service::serve(&database.url(), &["--keep-alive-ms=300s"]).await;
    let mut hasty = Vec::new();
    for path in ["/rooms/r/events", "/changes?waitMs=60000"] {
        let mut reader = Reader::ask(&service.url, path).await;
        if path.ends_with("events") {
            reader.snapshot().await;
        }
        reader.ask_on("/healthz", MANY).await;
        hasty.push(reader);
    }
    let (before, began) = (service.cpu(), Instant::now());
    sleep(Duration::from_secs(2)).await;
    let used = service.cpu() - before;
    assert!(
        used < began.elapsed() / 4,
        "{used:?} of {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_their_order() {
    let database = Database::new().await;
    let service = Service::serve(&database.url(), &[]).await;
    let mut hasty = Reader::ask(&service.url, "/healthz").await;
    hasty.ask_on("/healthz", SOME).await;
    hasty.ask_on("/rooms/nobody/participants", 1).await;
    hasty.until("404").await;
}
