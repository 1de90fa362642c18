//! Webhooks, with receivers of every temper.

mod access;
mod answers;
mod endpoints;
mod inside;
mod order;
mod owners;
mod receivers;
mod signing;
mod stopping;

use serde_json::{Value, json};

use super::support::{App, Database, Receiver};

pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub const LATER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Receivers of tests are on this machine, and nobody waits for long.
pub const FLAGS: [&str; 4] = [
    "--webhooks-allow=127.0.0.0/8",
    "--webhooks-timeout-ms=1000",
    "--webhooks-lease-ms=3000",
    "--poll-ms=100",
];

/// A service with a webhook that leads to the receiver.
async fn hooked(database: &Database, receiver: &Receiver, flags: &[&str]) -> App {
    let app = App::spawn_with(database, &[&FLAGS, flags].concat()).await;
    put(
        &app,
        "hook",
        &json!({ "url": receiver.url, "secret": SECRET }),
    )
    .await;
    app
}

async fn put(app: &App, name: &str, body: &Value) -> Value {
    let request = app.client.put(format!("{}/webhooks/{name}", app.url));
    let response = request.json(body).send().await.unwrap();
    assert_eq!(response.status(), 200, "{:?}", response.text().await);
    response.json().await.unwrap()
}

/// How the webhook stands.
async fn state(app: &App) -> Value {
    app.get("/webhooks/hook").await.json().await.unwrap()
}

/// Waits until the webhook stands so.
async fn until(app: &App, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let state = state(app).await;
        if is_so(&state) {
            return state;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "never {what}: {state}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The kinds and users of changes, in their order.
fn told(changes: &[Value]) -> Vec<String> {
    let words = changes.iter().map(|change| {
        let user = change["userId"].as_str().unwrap_or("-");
        format!("{} {user}", change["kind"].as_str().unwrap())
    });
    words.collect()
}
