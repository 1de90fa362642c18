//! Concurrent random requests, and a record of what was acknowledged.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::task::JoinSet;

/// Room, user and epoch.
type Session = (String, String, i64);

/// What the service said yes to.
#[derive(Debug, Default)]
pub struct Acknowledged {
    pub joins: Vec<Session>,
    pub leaves: Vec<Session>,
}

impl Acknowledged {
    pub fn add(&mut self, other: Self) {
        self.joins.extend(other.joins);
        self.leaves.extend(other.leaves);
    }

    /// Requires that all of it is in the history, and that no epoch was handed out twice.
    pub async fn require_recorded(&self, pool: &PgPool) {
        let mut seen = HashSet::new();
        for session in &self.joins {
            assert!(seen.insert(session), "handed out twice: {session:?}");
        }
        let events = sqlx::query!(
            r#"select room_id, user_id, epoch, kind from leasehold.membership_events"#
        )
        .fetch_all(pool)
        .await
        .unwrap();
        let recorded = |kind: &str| -> HashSet<Session> {
            events
                .iter()
                .filter(|e| e.kind == kind)
                .map(|e| (e.room_id.clone(), e.user_id.clone(), e.epoch))
                .collect()
        };
        let (joined, ended) = (recorded("joined"), recorded("ended"));
        for session in &self.joins {
            assert!(joined.contains(session), "a join was lost: {session:?}");
        }
        for session in &self.leaves {
            assert!(ended.contains(session), "a leave was lost: {session:?}");
        }
    }
}

/// Clients that join, beat, leave and list at random until they are stopped.
pub struct Load {
    clients: JoinSet<Acknowledged>,
    progress: Arc<Progress>,
}

/// What the clients and the test tell each other meanwhile.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    joins: AtomicU64,
    heartbeats: AtomicU64,
}

impl Load {
    /// So many clients, spread over these services. Few rooms and users, so that they meet.
    pub fn start(urls: &[&str], clients: usize) -> Self {
        let progress = Arc::new(Progress::default());
        let mut tasks = JoinSet::new();
        for n in 0..clients {
            let url = urls[n % urls.len()].to_owned();
            tasks.spawn(client(url, Arc::clone(&progress)));
        }
        Self {
            clients: tasks,
            progress,
        }
    }

    /// Stops when the requests under way are answered.
    pub async fn stop(self) -> Acknowledged {
        self.progress.stop.store(true, Ordering::Relaxed);
        let mut all = Acknowledged::default();
        for one in self.clients.join_all().await {
            all.add(one);
        }
        all
    }

    /// Waits until so many more joins were acknowledged, and a few heartbeats at all,
    /// however long a busy machine takes for them.
    pub async fn until_more_joins(&self, joins: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let enough = self.progress.joins.load(Ordering::Relaxed) + joins;
        loop {
            let joined = self.progress.joins.load(Ordering::Relaxed);
            let renewed = self.progress.heartbeats.load(Ordering::Relaxed);
            if joined >= enough && renewed >= 5 {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{joined} of {enough} joins, {renewed} heartbeats"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn client(url: String, progress: Arc<Progress>) -> Acknowledged {
    let client = Client::builder()
        .timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let mut acknowledged = Acknowledged::default();
    let mut held: Vec<Session> = Vec::new();
    while !progress.stop.load(Ordering::Relaxed) {
        let room = format!("room-{}", rand::random_range(0..6));
        let action = rand::random_range(0..10);
        // No answer is no acknowledgement; the next request tells more.
        let outcome = match action {
            0..3 => {
                let user = format!("user-{}", rand::random_range(0..8));
                let body = json!({ "userId": user, "leaseMs": rand::random_range(100..2000) });
                let answer = post(&client, &url, &room, "join", &body).await;
                answer.map(|(status, answer)| {
                    if status == 200 {
                        let session = (room, user, answer["epoch"].as_i64().unwrap());
                        progress.joins.fetch_add(1, Ordering::Relaxed);
                        acknowledged.joins.push(session.clone());
                        held.push(session);
                    }
                    status
                })
            }
            3..5 if !held.is_empty() => {
                let session = held.swap_remove(rand::random_range(0..held.len()));
                let body = json!({ "userId": session.1, "epoch": session.2 });
                let answer = post(&client, &url, &session.0, "leave", &body).await;
                answer.map(|(status, _)| {
                    if status == 204 {
                        acknowledged.leaves.push(session);
                    }
                    status
                })
            }
            5..9 if !held.is_empty() => {
                let session = &held[rand::random_range(0..held.len())];
                let body =
                    json!({ "userId": session.1, "epoch": session.2, "cursor": { "x": action } });
                let answer = post(&client, &url, &session.0, "heartbeat", &body).await;
                answer.map(|(status, _)| {
                    progress
                        .heartbeats
                        .fetch_add(u64::from(status == 204), Ordering::Relaxed);
                    status
                })
            }
            _ => {
                let address = format!("{url}/rooms/{room}/participants");
                let answer = client.get(address).send().await;
                answer.map(|response| response.status().as_u16())
            }
        };
        match outcome {
            Ok(status) => assert!(matches!(status, 200 | 204 | 409 | 503), "{status}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    acknowledged
}

async fn post(
    client: &Client,
    url: &str,
    room: &str,
    action: &str,
    body: &Value,
) -> reqwest::Result<(u16, Value)> {
    let response = client
        .post(format!("{url}/rooms/{room}/{action}"))
        .json(body)
        .send()
        .await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}
