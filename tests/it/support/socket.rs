//! A client of `/rooms/{roomId}/socket`.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers pings whenever it reads.
pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn connect(url: &str) -> Self {
        let (socket, _) = connect_async(url.replace("http://", "ws://"))
            .await
            .unwrap();
        Self(socket)
    }

    pub async fn send(&mut self, message: Value) {
        self.send_text(message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: String) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// In so many frames.
    pub async fn send_in_parts(&mut self, text: &str, parts: usize) {
        let size = text.len().div_ceil(parts);
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        for (n, chunk) in chunks.iter().enumerate() {
            let kind = if n == 0 { Data::Text } else { Data::Continue };
            let is_last = n + 1 == chunks.len();
            let frame = Frame::message(chunk.to_vec(), OpCode::Data(kind), is_last);
            self.0.send(Message::Frame(frame)).await.unwrap();
        }
    }

    /// As they are, on the connection below.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let tcp = self.0.get_mut();
        tcp.write_all(bytes).await.unwrap();
        tcp.flush().await.unwrap();
    }

    /// Asks, and reads until the answer.
    pub async fn ask(&mut self, request: Value) -> Value {
        self.send(request).await;
        self.until("answer").await
    }

    /// The next message that is not a ping; `None` where the socket was closed.
    pub async fn try_next(&mut self) -> Option<Value> {
        self.next_by(Instant::now() + PATIENCE).await
    }

    async fn next_by(&mut self, deadline: Instant) -> Option<Value> {
        loop {
            match timeout_at(deadline, self.0.next())
                .await
                .expect("a message in time")?
            {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Reads until a message is of this type, however many others come before.
    pub async fn until(&mut self, kind: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.next_by(deadline).await.expect("the socket stays open");
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Reads until there was a message of each of these types, in whichever order they come.
    pub async fn each_of<const N: usize>(&mut self, kinds: [&str; N]) -> [Value; N] {
        let deadline = Instant::now() + PATIENCE;
        let mut found = [const { Value::Null }; N];
        while found.contains(&Value::Null) {
            let message = self.next_by(deadline).await.expect("the socket stays open");
            if let Some(n) = kinds.iter().position(|kind| message["type"] == *kind) {
                found[n] = message;
            }
        }
        found
    }

    /// Reads until the server closes the socket; the code with which it does.
    pub async fn closed(&mut self) -> u16 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = timeout_at(deadline, self.0.next())
                .await
                .expect("a close in time");
            if let Message::Close(Some(frame)) = message.expect("a reason").unwrap() {
                return frame.code.into();
            }
        }
    }

    /// Reads until the server has pinged, and answers.
    pub async fn answer_a_ping(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(Message::Ping(_)) = timeout_at(deadline, self.0.next())
                .await
                .expect("a ping in time")
                .unwrap()
            {
                self.0.flush().await.unwrap();
                return;
            }
        }
    }
}
