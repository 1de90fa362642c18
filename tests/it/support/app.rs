//! The service in this process, on a free port, and one helper per endpoint.

use std::time::{Duration, Instant};

use clap::Parser;
use futures_util::stream;
use leasehold::app::Application;
use leasehold::config::ServeArgs;
use reqwest::{Body, Client, Method, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Database, Events, Socket};

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    serve: ServeArgs,
}

/// Signs the client tokens of tests.
pub const SECRET: &str = "a secret that only tests use, long enough";

/// The settings of `leasehold serve` with these flags, on a free port.
pub fn serve_args(flags: &[&str]) -> ServeArgs {
    let fixed = ["serve", "--bind", "127.0.0.1:0", "--log", "off"];
    Args::parse_from(fixed.iter().chain(flags)).serve
}

/// Stops when dropped; [`App::stop`] waits for it.
pub struct App {
    pub url: String,
    pub client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<anyhow::Result<()>>,
}

impl App {
    pub async fn spawn(database: &Database) -> Self {
        Self::spawn_with(database, &[]).await
    }

    pub async fn spawn_with(database: &Database, flags: &[&str]) -> Self {
        Self::spawn_at(&database.url(), flags).await
    }

    pub async fn spawn_at(database_url: &str, flags: &[&str]) -> Self {
        let application = Application::build(&serve_args(flags), database_url.into())
            .await
            .unwrap();
        let url = format!("http://{}", application.address());
        let (stop, stopped) = oneshot::channel();
        let stopping = Box::pin(stream::once(async move {
            let _ = stopped.await;
        }));
        let running = tokio::spawn(application.run_until(stopping));
        Self {
            url,
            client: Client::new(),
            stop: Some(stop),
            running,
        }
    }

    /// Drains and ends.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.running.await.unwrap().unwrap();
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.client
            .post(format!("{}{path}", self.url))
            .json(&body)
            .send()
            .await
            .unwrap()
    }

    pub async fn get(&self, path: &str) -> Response {
        self.client
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap()
    }

    pub async fn delete(&self, path: &str) -> Response {
        self.client
            .delete(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap()
    }

    /// Joins and returns the answer, which must be a success.
    pub async fn join(&self, room: &str, user: &str) -> Value {
        let response = self
            .post(&format!("/rooms/{room}/join"), json!({ "userId": user }))
            .await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    pub async fn heartbeat(&self, room: &str, user: &str, epoch: i64) -> Response {
        let body = json!({ "userId": user, "epoch": epoch });
        self.post(&format!("/rooms/{room}/heartbeat"), body).await
    }

    pub async fn leave(&self, room: &str, user: &str, epoch: i64) -> Response {
        let body = json!({ "userId": user, "epoch": epoch });
        self.post(&format!("/rooms/{room}/leave"), body).await
    }

    /// A subscriber of the room; its first event is the snapshot.
    pub async fn events(&self, room: &str) -> Events {
        Events::of(self.get(&format!("/rooms/{room}/events")).await)
    }

    pub async fn socket(&self, room: &str) -> Socket {
        Socket::connect(&format!("{}/rooms/{room}/socket", self.url)).await
    }

    /// The participants of a room, as the answer has them.
    pub async fn participants(&self, room: &str) -> Value {
        let response = self.get(&format!("/rooms/{room}/participants")).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// One page of the participants, by its query.
    pub async fn participants_page(&self, room: &str, query: &str) -> Value {
        let response = self
            .get(&format!("/rooms/{room}/participants?{query}"))
            .await;
        assert_eq!(response.status(), 200, "{query}");
        response.json().await.unwrap()
    }

    /// A request of any form, its path sent as it is.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }

    /// Waits until so many event streams and sockets are open.
    pub async fn until_subscribers(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let line = format!("leasehold_subscribers {count}");
        loop {
            let metrics = self.get("/metrics").await.text().await.unwrap();
            let open = metrics
                .lines()
                .find(|line| line.starts_with("leasehold_subscribers "))
                .unwrap_or("leasehold_subscribers 0");
            if open == line {
                return;
            }
            assert!(Instant::now() < deadline, "{open}, not {line}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for the first sweep.
    pub async fn until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.get("/readyz").await.status() != 200 {
            assert!(Instant::now() < deadline, "never ready");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
