//! Who listens: a stream of each room at each instance, and a reader of the feed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::super::support::{Events, Picture};
use super::history::{Kind, Recorded, Session};
use super::workload::{ROOMS, room};
use super::world::{INSTANCES, World};

/// Several keep-alives.
const SILENCE: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(20);

/// What one stream has told, or nothing while it is not connected.
type Told = Arc<Mutex<Option<Picture>>>;

pub struct Readers {
    streams: Vec<(String, Told)>,
    feed: Arc<Mutex<Vec<Recorded>>>,
    client: Client,
}

impl Readers {
    /// Starts them; they end with the set.
    pub fn start(world: &Arc<World>, tasks: &mut JoinSet<()>) -> Self {
        let mut streams = Vec::new();
        for instance in 0..INSTANCES {
            for n in 0..ROOMS {
                let told = Told::default();
                tasks.spawn(listen(
                    Arc::clone(world),
                    instance,
                    room(n),
                    Arc::clone(&told),
                ));
                streams.push((room(n), told));
            }
        }
        let feed = Arc::default();
        tasks.spawn(follow(Arc::clone(world), Arc::clone(&feed)));
        Self {
            streams,
            feed,
            client: Client::builder().timeout(SILENCE).build().unwrap(),
        }
    }

    /// Waits, while nobody asks for anything, until every stream shows what every instance lists.
    pub async fn converge(&self, world: &World) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Err(difference) = self.compare(world).await else {
                return;
            };
            assert!(Instant::now() < deadline, "no quiet point: {difference}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn compare(&self, world: &World) -> Result<(), String> {
        for url in world.urls() {
            for (room, told) in &self.streams {
                let request = self.client.get(format!("{url}/rooms/{room}/participants"));
                let response = request.send().await.map_err(|e| format!("{url}: {e:?}"))?;
                let status = response.status();
                let list: Value = response.json().await.map_err(|e| format!("{url}: {e:?}"))?;
                if status != 200 {
                    return Err(list.to_string());
                }
                let list = Picture::of(&list);
                let told = told.lock().unwrap();
                if told.as_ref() != Some(&list) {
                    return Err(format!("{room}: {told:#?} is told, {list:#?} is listed"));
                }
            }
        }
        Ok(())
    }

    /// What the feed has told.
    pub fn fed(&self) -> Vec<Recorded> {
        self.feed.lock().unwrap().clone()
    }
}

async fn listen(world: Arc<World>, instance: usize, room: String, told: Told) {
    let client = Client::new();
    loop {
        *told.lock().unwrap() = None;
        sleep(Duration::from_millis(100)).await;
        let Some(url) = world.url(instance) else {
            continue;
        };
        let request = client.get(format!("{url}/rooms/{room}/events"));
        let Ok(Ok(response)) = timeout(SILENCE, request.send()).await else {
            continue;
        };
        if response.status() != 200 {
            assert!(matches!(response.status().as_u16(), 408 | 503));
            continue;
        }
        let mut events = Events::of(response);
        let mut comments = 0;
        loop {
            match timeout(SILENCE, events.try_next()).await {
                Ok(Some(event)) if event.kind == "stale" => {}
                Ok(Some(event)) => {
                    let mut told = told.lock().unwrap();
                    let picture = told.get_or_insert_default();
                    picture.apply(&event.kind, &event.data);
                }
                Ok(None) => break,
                Err(_) if events.comments == comments => break,
                Err(_) => {}
            }
            comments = events.comments;
        }
    }
}

async fn follow(world: Arc<World>, feed: Arc<Mutex<Vec<Recorded>>>) {
    let client = Client::builder().timeout(SILENCE).build().unwrap();
    let mut after = String::new();
    let mut turn = 0;
    loop {
        turn += 1;
        let Some(url) = world.url(turn % INSTANCES) else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let request = client.get(format!("{url}/changes?limit=1000&waitMs=300{after}"));
        let Ok(response) = request.send().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let status = response.status();
        let Ok(page) = response.json::<Value>().await else {
            continue;
        };
        if status != 200 {
            assert_eq!(status, 503, "{page}");
            sleep(Duration::from_millis(50)).await;
            continue;
        }
        after = format!("&after={}", page["next"].as_str().unwrap());
        let changes = page["changes"].as_array().unwrap().iter();
        feed.lock().unwrap().extend(changes.filter_map(change));
    }
}

fn change(change: &Value) -> Option<Recorded> {
    let text = |field: &str| Some(change[field].as_str()?.to_owned());
    let kind = match change["kind"].as_str()? {
        "joined" => Kind::Joined,
        "ended" => Kind::Ended,
        _ => return None,
    };
    let session = Session {
        room: text("roomId")?,
        user: text("userId")?,
        device: text("deviceId")?,
        epoch: change["epoch"].as_i64()?,
    };
    Some(Recorded { session, kind })
}
