//! The receivers of the document verify and skip what they know.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver as Lines, channel};
use std::time::Duration;

use reqwest::Client;
use serde_json::json;

use super::{FLAGS, LATER, SECRET, put, until};
use crate::support::{App, Database, Delivery, Document, Receiver};

const PATIENCE: Duration = Duration::from_secs(20);

/// The program of the document in this language, as somebody would run it; with what it prints.
struct Program {
    child: Child,
    lines: Lines<String>,
    url: String,
}

impl Program {
    async fn start(language: &str, interpreter: &[&str], name: &str) -> Self {
        let document = Document::read("docs/webhooks.md");
        let mut examples = document.examples().into_iter();
        let code = examples
            .find(|example| example.info == language)
            .unwrap()
            .commands;
        let lines = code.trim().lines().count();
        assert!(
            (15..=25).contains(&lines),
            "about twenty lines, not {lines}"
        );
        let directory = tempfile::tempdir().unwrap().keep();
        let path = directory.join(name);
        std::fs::File::create(&path)
            .unwrap()
            .write_all(code.as_bytes())
            .unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new(interpreter[0])
            .args(&interpreter[1..])
            .arg(&path)
            .env("LEASEHOLD_WEBHOOK_SECRET", SECRET)
            .env("PORT", port.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| unreachable!("{}: {error}", interpreter[0]));
        let (said, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let _ = said.send(line.unwrap());
            }
        });
        let url = format!("http://127.0.0.1:{port}/");
        let deadline = std::time::Instant::now() + PATIENCE;
        while Client::new().get(&url).send().await.is_err() {
            assert!(std::time::Instant::now() < deadline, "it does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { child, lines, url }
    }

    fn says(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    async fn replay(&self, delivery: &Delivery, body: &str) -> u16 {
        let mut request = Client::new().post(&self.url).body(body.to_owned());
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            request = request.header(name, delivery.header(name));
        }
        request.send().await.unwrap().status().as_u16()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn verifies_and_skips(program: &Program) {
    let database = Database::new().await;
    let recorder = Receiver::content().await;
    let app = App::spawn_with(&database, &FLAGS).await;
    put(
        &app,
        "hook",
        &json!({ "url": program.url, "secret": SECRET }),
    )
    .await;
    put(
        &app,
        "recorder",
        &json!({ "url": recorder.url, "secret": SECRET }),
    )
    .await;
    put(
        &app,
        "stranger",
        &json!({ "url": program.url, "secret": LATER }),
    )
    .await;
    app.join("lobby", "alice").await;
    assert_eq!(
        program.says().split(' ').take(2).collect::<Vec<_>>(),
        ["lobby", "room_opened"]
    );
    assert_eq!(program.says(), "lobby joined alice");
    until(&app, "delivered", |state| {
        state["pendingDeliveries"] == 0 && state["lastSuccessMs"].is_i64()
    })
    .await;
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let stranger: serde_json::Value = app.get("/webhooks/stranger").await.json().await.unwrap();
        if stranger["lastFailure"] == "it answered 401" {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{stranger}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // The same delivery twice is done once; another body under its signature is not taken.
    let delivery = &recorder.until(1).await[0];
    let body = delivery.body.clone();
    assert_eq!(program.replay(delivery, &body).await, 204);
    assert_eq!(program.replay(delivery, &body).await, 204);
    assert_eq!(
        program
            .replay(delivery, &body.replace("alice", "mallory"))
            .await,
        401
    );
    let first = delivery.changes().len();
    for _ in 0..first {
        assert!(program.says().starts_with("lobby "));
    }
    app.join("lobby", "bob").await;
    assert_eq!(program.says(), "lobby joined bob");
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_in_node_verifies_and_skips_what_it_knows() {
    let program = Program::start("js", &["node"], "receiver.mjs").await;
    verifies_and_skips(&program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_in_python_verifies_and_skips_what_it_knows() {
    let program = Program::start("python", &["python3"], "receiver.py").await;
    verifies_and_skips(&program).await;
}
