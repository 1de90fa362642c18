//! A subscriber of `/rooms/{roomId}/events`, as a client would be.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// What no test waits longer for.
const PATIENCE: Duration = Duration::from_secs(20);

/// One server-sent event.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: String,
    pub id: Option<String>,
    pub data: Value,
}

/// An open stream of them.
pub struct Events {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
    pub comments: usize,
}

impl Events {
    pub fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        Self {
            bytes: response.bytes_stream().boxed(),
            text: String::new(),
            comments: 0,
        }
    }

    /// The next event; `None` where the stream ended. Comments do not prolong the wait.
    pub async fn try_next(&mut self) -> Option<Event> {
        self.next_by(Instant::now() + PATIENCE).await
    }

    async fn next_by(&mut self, deadline: Instant) -> Option<Event> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                if let Some(event) = self.parse(&block) {
                    return Some(event);
                }
            }
            let chunk = timeout_at(deadline, self.bytes.next())
                .await
                .expect("an event in time")?;
            self.text
                .push_str(std::str::from_utf8(&chunk.ok()?).unwrap());
        }
    }

    pub async fn next(&mut self) -> Event {
        self.try_next().await.expect("the stream goes on")
    }

    /// The next event, which must be of this kind.
    pub async fn expect(&mut self, kind: &str) -> Event {
        let event = self.next().await;
        assert_eq!(event.kind, kind, "{event:#?}");
        event
    }

    /// Reads until one is of this kind, however many others come before.
    pub async fn until(&mut self, kind: &str) -> Event {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.next_by(deadline).await.expect("the stream goes on");
            if event.kind == kind {
                return event;
            }
        }
    }

    /// Reads until a comment has come.
    pub async fn comment(&mut self) {
        let before = self.comments;
        let deadline = Instant::now() + PATIENCE;
        while self.comments == before {
            let chunk = timeout_at(deadline, self.bytes.next())
                .await
                .expect("a comment in time");
            self.text
                .push_str(std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap());
            while self.text.starts_with(':') {
                let Some(end) = self.text.find("\n\n") else {
                    break;
                };
                self.text.drain(..end + 2);
                self.comments += 1;
            }
        }
    }

    fn parse(&mut self, block: &str) -> Option<Event> {
        let mut event = Event {
            kind: String::new(),
            id: None,
            data: Value::Null,
        };
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("event", kind)) => event.kind = kind.to_owned(),
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                Some(("", _)) => self.comments += 1,
                _ => {}
            }
        }
        (!event.kind.is_empty()).then_some(event)
    }
}

/// Who is in the room, rebuilt from events alone, by user.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Picture(pub BTreeMap<String, Value>);

/// What a renewal changes is not told.
fn shown(participant: &Value) -> Value {
    let mut shown = participant.clone();
    let hide = |session: &mut Value| {
        let session = session.as_object_mut().unwrap();
        session.remove("lastSeenMs");
        session.remove("expiresAtMs");
    };
    hide(&mut shown);
    if let Some(devices) = shown.get_mut("devices") {
        devices.as_array_mut().unwrap().iter_mut().for_each(hide);
    }
    shown
}

impl Picture {
    /// Of a snapshot or of the participants' answer.
    pub fn of(list: &Value) -> Self {
        let participants = list["participants"].as_array().unwrap().iter();
        Self(
            participants
                .map(|p| (p["userId"].as_str().unwrap().to_owned(), shown(p)))
                .collect(),
        )
    }

    pub fn apply(&mut self, kind: &str, data: &Value) {
        match kind {
            "snapshot" => *self = Self::of(data),
            "joined" | "updated" => {
                let participant = &data["participant"];
                let user = participant["userId"].as_str().unwrap();
                let is_known = self.0.insert(user.to_owned(), shown(participant)).is_some();
                assert!(
                    kind == "joined" || is_known,
                    "updated without joined: {data}"
                );
            }
            "left" => {
                let gone = self.0.remove(data["userId"].as_str().unwrap());
                let epoch = gone.expect("left after joined")["epoch"].as_i64();
                assert!(epoch <= data["epoch"].as_i64(), "{data}");
            }
            "stale" => {}
            "room_closed" => assert!(self.0.is_empty(), "closed with {self:?}"),
            other => assert_eq!(other, "an event"),
        }
    }
}
