//! Clients that send request after request without waiting for answers.

use crate::support::{App, Database, Reader};

/// More than is read ahead.
const MANY: usize = 50_000;

/// Less than that.
const SOME: usize = 1_000;

#[tokio::test]
async fn who_sends_requests_without_end_behind_a_waiting_one_is_cut_before_a_thread_spins() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--keep-alive-ms", "300s"]).await;
    for path in ["/rooms/r/events", "/changes?after=latest&waitMs=60000"] {
        let mut hasty = Reader::ask(&app.url, path).await;
        hasty.ask_on("/healthz", MANY).await;
        hasty.is_cut().await;
    }
    app.until_subscribers(0).await;
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_their_order() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut hasty = Reader::ask(&app.url, "/healthz").await;
    hasty.ask_on("/healthz", SOME).await;
    hasty.ask_on("/rooms/nobody", 1).await;
    hasty.until("HTTP/1.1 404").await;
}
