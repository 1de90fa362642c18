//! What clients do: at random by the trial's seed, few rooms and people, so that they meet.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::history::{Answered, Asked, Recorder, Session};
use super::sockets;
use super::world::World;

pub const ROOMS: usize = 4;
const USERS: usize = 8;
const CLIENTS: usize = 24;
/// Beside those: they do everything over a socket.
const SOCKETS: usize = 3;
/// Some are never renewed in time, some always.
const LEASES_MS: [i64; 3] = [1_500, 3_000, 30_000];
const BACK_OFF: Duration = Duration::from_millis(200);
/// A client keeps trying so many sessions, also those that are stale.
const KEPT: usize = 4;

pub fn room(n: usize) -> String {
    format!("room-{n}")
}

/// Starts the clients; they end with the set.
pub fn start(world: &Arc<World>, recorder: &Recorder, seed: u64) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS + SOCKETS {
        let actor = Actor {
            world: Arc::clone(world),
            recorder: recorder.clone(),
            random: StdRng::seed_from_u64(seed.wrapping_add(n as u64)),
            http: Client::builder()
                .timeout(Duration::from_secs(4))
                .build()
                .unwrap(),
            user: format!("user-{}", n % USERS),
            device: ["phone", "laptop"][n / USERS % 2].to_owned(),
            held: Vec::new(),
        };
        if n < CLIENTS {
            clients.spawn(actor.live());
        } else {
            clients.spawn(sockets::live(actor));
        }
    }
    clients
}

/// A person at a device.
pub struct Actor {
    pub world: Arc<World>,
    pub recorder: Recorder,
    pub random: StdRng,
    http: Client,
    pub user: String,
    pub device: String,
    held: Vec<Session>,
}

impl Actor {
    async fn live(mut self) {
        loop {
            let pause = self.random.random_range(5..60);
            sleep(Duration::from_millis(pause)).await;
            let world = Arc::clone(&self.world);
            let _busy = world.busy().await;
            match self.random.random_range(0..14) {
                0..2 => self.join().await,
                2 => self.leave().await,
                3..8 => self.renew().await,
                8 => self.batch("heartbeats").await,
                9 => self.batch("leaves").await,
                _ => self.list().await,
            }
        }
    }

    pub fn some_join(&mut self) -> (Asked, Value) {
        let lease_ms = LEASES_MS[self.random.random_range(0..LEASES_MS.len())];
        let asked = Asked::Join {
            room: room(self.random.random_range(0..ROOMS)),
            user: self.user.clone(),
            device: self.device.clone(),
            lease_ms,
        };
        let body = json!({ "userId": self.user, "deviceId": self.device, "leaseMs": lease_ms });
        (asked, body)
    }

    /// The session that a join was answered with.
    pub fn joined(&self, asked: &Asked, answered: &Answered) -> Option<Session> {
        match (asked, answered) {
            (Asked::Join { room, .. }, Answered::Joined { epoch }) => Some(Session {
                room: room.clone(),
                user: self.user.clone(),
                device: self.device.clone(),
                epoch: *epoch,
            }),
            _ => None,
        }
    }

    async fn join(&mut self) {
        let (asked, body) = self.some_join();
        let Asked::Join { room, .. } = &asked else {
            return;
        };
        let path = format!("/rooms/{room}/join");
        let answer = async { outcome(self.ask(Method::POST, &path, &body).await) };
        let answered = self.recorder.record(asked.clone(), answer).await;
        if let Some(session) = self.joined(&asked, &answered) {
            self.held.push(session);
            if self.held.len() > KEPT {
                self.held.remove(0);
            }
        }
    }

    fn some_session(&mut self) -> Option<Session> {
        let held = self.held.len();
        (held > 0).then(|| self.held[self.random.random_range(0..held)].clone())
    }

    async fn leave(&mut self) {
        let Some(session) = self.some_session() else {
            return;
        };
        let path = format!("/rooms/{}/leave", session.room);
        let body = body_of(&session);
        let answer = async { outcome(self.ask(Method::POST, &path, &body).await) };
        self.recorder
            .record(Asked::Leave(session.clone()), answer)
            .await;
    }

    async fn renew(&mut self) {
        let Some(session) = self.some_session() else {
            return;
        };
        let (action, mut body) = (["heartbeat", "cursor"], body_of(&session));
        let n = self.random.random_range(0..2);
        if n == 1 {
            body["cursor"] = json!({ "line": self.random.random_range(0..1_000) });
        }
        let path = format!("/rooms/{}/{}", session.room, action[n]);
        let answer = async { outcome(self.ask(Method::POST, &path, &body).await) };
        self.recorder
            .record(Asked::Renew(session.clone()), answer)
            .await;
    }

    async fn batch(&mut self, kind: &str) {
        let sessions = match kind {
            "leaves" => self.some_session().into_iter().collect(),
            _ => self.held.clone(),
        };
        let asked = |session: &Session| match kind {
            "leaves" => Asked::Leave(session.clone()),
            _ => Asked::Renew(session.clone()),
        };
        let items: Vec<Value> = sessions.iter().map(body_of).collect();
        let answer = async {
            let answer = self
                .ask(Method::POST, &format!("/{kind}"), &json!({ kind: items }))
                .await;
            let Some((200, answer)) = answer else {
                outcome(answer);
                return vec![Answered::Unknown; items.len()];
            };
            let results = answer["results"].as_array().unwrap().iter();
            let status = |result: &Value| u16::try_from(result["status"].as_u64()?).ok();
            results
                .map(|result| outcome(status(result).map(|status| (status, Value::Null))))
                .collect()
        };
        let asked: Vec<Asked> = sessions.iter().map(asked).collect();
        self.recorder.record_all(asked, answer).await;
    }

    async fn list(&mut self) {
        let room = room(self.random.random_range(0..ROOMS));
        let path = format!("/rooms/{room}/participants");
        let answer = async { outcome(self.ask(Method::GET, &path, &Value::Null).await) };
        self.recorder
            .record(Asked::List { room: room.clone() }, answer)
            .await;
    }

    /// Status and body; nothing where no whole answer came.
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Option<(u16, Value)> {
        let answer = self.answer(method, path, body).await;
        if !matches!(answer, Some((200..500, _))) {
            // As clients back off; otherwise nearly all requests would be of hard times.
            sleep(BACK_OFF).await;
        }
        answer
    }

    async fn answer(&self, method: Method, path: &str, body: &Value) -> Option<(u16, Value)> {
        let url = self.world.some_url(self.recorder.now())?;
        let mut request = self.http.request(method, format!("{url}{path}"));
        if !body.is_null() {
            request = request.json(body);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let text = response.text().await.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or_default()))
    }
}

pub fn body_of(session: &Session) -> Value {
    json!({ "roomId": session.room, "userId": session.user,
            "deviceId": session.device, "epoch": session.epoch })
}

/// What a client knows after an answer.
pub fn outcome(answer: Option<(u16, Value)>) -> Answered {
    let Some((status, body)) = answer else {
        return Answered::Unknown;
    };
    match status {
        200 if body["participants"].is_array() => Answered::Listed(shown(&body)),
        200 => Answered::Joined {
            epoch: body["epoch"].as_i64().unwrap(),
        },
        204 => Answered::Done,
        409 => Answered::Stale,
        _ => {
            // 408: an instance stood still in the middle of a request's head.
            assert!(matches!(status, 408 | 503), "{status} {body}");
            Answered::Unknown
        }
    }
}

fn shown(list: &Value) -> Vec<(String, i64)> {
    let mut shown = Vec::new();
    for person in list["participants"].as_array().unwrap() {
        let user = person["userId"].as_str().unwrap();
        let one = std::slice::from_ref(person);
        let sessions = person["devices"].as_array().map_or(one, Vec::as_slice);
        let epochs = sessions
            .iter()
            .map(|session| session["epoch"].as_i64().unwrap());
        shown.extend(epochs.map(|epoch| (user.to_owned(), epoch)));
    }
    shown
}

/// Histories of many clients are only worth something where many things were answered.
#[derive(Debug, Default)]
pub struct Tally {
    pub joined: usize,
    pub done: usize,
    pub stale: usize,
    pub listed: usize,
    pub unknown: usize,
}

impl Tally {
    pub fn of(recorder: &Recorder) -> Self {
        let mut tally = Self::default();
        for operation in recorder.operations() {
            let count = match operation.answered {
                Answered::Joined { .. } => &mut tally.joined,
                Answered::Done => &mut tally.done,
                Answered::Stale => &mut tally.stale,
                Answered::Listed(_) => &mut tally.listed,
                Answered::Unknown => &mut tally.unknown,
            };
            *count += 1;
        }
        tally
    }
}

/// What a panicking client said, if one did.
pub async fn require_running(tasks: &Mutex<JoinSet<()>>) {
    let ended = tasks.lock().unwrap().try_join_next();
    if let Some(ended) = ended {
        ended.unwrap();
        unreachable!("a client ended");
    }
}
