//! A receiver of webhooks, which answers as a test wants and remembers what came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const PATIENCE: Duration = Duration::from_secs(60);

/// A request that came.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub at: Instant,
    pub headers: HeaderMap,
    pub body: String,
    /// How often this id had come before.
    pub repeats: usize,
}

impl Delivery {
    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn changes(&self) -> Vec<Value> {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["changes"].as_array().unwrap().clone()
    }

    pub fn room(&self) -> String {
        self.changes()[0]["roomId"].as_str().unwrap().to_owned()
    }

    /// Whether the reference library finds it signed with this secret.
    pub fn is_signed(&self, secret: &str) -> bool {
        let reference = standardwebhooks::Webhook::new(secret).unwrap();
        reference
            .verify(self.body.as_bytes(), &self.headers)
            .is_ok()
    }
}

/// How a receiver answers.
pub enum Reply {
    Status(u16),
    With(u16, String),
    After(Duration, u16),
    /// Never says anything.
    Hang,
    /// A good status, and then a byte of the body now and then.
    Drip,
    /// A good status, and a body without an end.
    Endless,
    /// Not HTTP.
    Garbage,
    /// Nothing, and the connection is closed.
    Close,
}

#[derive(Default)]
struct Seen {
    deliveries: Vec<Delivery>,
    under_way: HashMap<String, usize>,
    most_of_a_room: usize,
}

/// Ends when dropped.
pub struct Receiver {
    pub url: String,
    seen: Arc<Mutex<Seen>>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Takes everything.
    pub async fn content() -> Self {
        Self::answering(|_| Reply::Status(204)).await
    }

    pub async fn answering(reply: impl Fn(&Delivery) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (reply, shared) = (Arc::new(reply), Arc::clone(&seen));
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (reply, seen) = (Arc::clone(&reply), Arc::clone(&shared));
                tokio::spawn(async move { serve(stream, &*reply, &seen).await });
            }
        });
        Self { url, seen, serving }
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        self.seen.lock().unwrap().deliveries.clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().deliveries.len()
    }

    /// The most requests about one room that were ever under way together.
    pub fn most_of_a_room(&self) -> usize {
        self.seen.lock().unwrap().most_of_a_room
    }

    /// The changes of a room in the order in which they first came, each delivery once.
    pub fn changes_of(&self, room: &str) -> Vec<Value> {
        let deliveries = self.deliveries();
        let first = deliveries.iter().filter(|delivery| delivery.repeats == 0);
        let ours = first.filter(|delivery| delivery.room() == room);
        ours.flat_map(Delivery::changes).collect()
    }

    /// Waits until so many requests have come.
    pub async fn until(&self, count: usize) -> Vec<Delivery> {
        self.until_all(&format!("{count} requests"), |seen| seen.len() >= count)
            .await
    }

    /// Waits until what came is as it should be.
    pub async fn until_all(
        &self,
        what: &str,
        is_enough: impl Fn(&[Delivery]) -> bool,
    ) -> Vec<Delivery> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.deliveries();
            if is_enough(&seen) {
                return seen;
            }
            let came: Vec<(&str, &str)> = seen.iter().map(|d| (d.id(), d.body.as_str())).collect();
            assert!(Instant::now() < deadline, "no {what}, but {came:#?}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    reply: &(dyn Fn(&Delivery) -> Reply + Send + Sync),
    seen: &Mutex<Seen>,
) {
    let mut read = Vec::new();
    while let Some((headers, body)) = request(&mut stream, &mut read).await {
        let mut delivery = Delivery {
            at: Instant::now(),
            headers,
            body,
            repeats: 0,
        };
        let room = delivery.room();
        {
            let mut seen = seen.lock().unwrap();
            let same = seen.deliveries.iter().filter(|d| d.id() == delivery.id());
            delivery.repeats = same.count();
            seen.deliveries.push(delivery.clone());
            let under_way = seen.under_way.entry(room.clone()).or_default();
            *under_way += 1;
            let under_way = *under_way;
            seen.most_of_a_room = seen.most_of_a_room.max(under_way);
        }
        let text = match reply(&delivery) {
            Reply::Status(status) => Some(head(status, "content-length: 0\r\n")),
            Reply::With(status, headers) => {
                Some(head(status, &format!("content-length: 0\r\n{headers}\r\n")))
            }
            Reply::After(pause, status) => {
                tokio::select! {
                    () = sleep(pause) => Some(head(status, "content-length: 0\r\n")),
                    _ = stream.read_u8() => None,
                }
            }
            Reply::Hang => {
                let _ = stream.read_u8().await;
                None
            }
            Reply::Drip => {
                let _ = stream
                    .write_all(head(200, "content-length: 9999\r\n").as_bytes())
                    .await;
                while stream.write_all(b".").await.is_ok() {
                    sleep(Duration::from_millis(50)).await;
                }
                None
            }
            Reply::Endless => {
                let chunked = head(200, "content-length: 99999999999\r\n");
                let _ = stream.write_all(chunked.as_bytes()).await;
                while stream.write_all(&[b'.'; 65_536]).await.is_ok() {}
                None
            }
            Reply::Garbage => {
                let _ = stream
                    .write_all(b"220 mail.example.com ESMTP\r\n\r\n")
                    .await;
                None
            }
            Reply::Close => None,
        };
        // Before the answer is out, or the next request may be faster.
        if let Some(under_way) = seen.lock().unwrap().under_way.get_mut(&room) {
            *under_way -= 1;
        }
        let Some(text) = text else { return };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn head(status: u16, headers: &str) -> String {
    format!("HTTP/1.1 {status} So\r\n{headers}\r\n")
}

/// The next request of a connection, of which some may have been read already.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<(HeaderMap, String)> {
    let end = loop {
        let end = read.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(read.drain(..end).collect()).unwrap();
    assert!(head.starts_with("POST "), "{head}");
    let mut headers = HeaderMap::new();
    for line in head.lines().skip(1) {
        if let Some((name, value)) = line.split_once(": ") {
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    let length: usize = headers["content-length"].to_str().unwrap().parse().unwrap();
    while read.len() < length {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let body = read.drain(..length).collect();
    Some((headers, String::from_utf8(body).unwrap()))
}
