//! A client of `/rooms/{roomId}/socket`.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
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

    /// The next message that is not a ping; `None` where the socket was closed.
    pub async fn try_next(&mut self) -> Option<Value> {
        loop {
            match timeout(PATIENCE, self.0.next())
                .await
                .expect("a message in time")?
            {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Reads until a message is of this type.
    pub async fn until(&mut self, kind: &str) -> Value {
        loop {
            let message = self.try_next().await.expect("the socket stays open");
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Reads until the server has pinged, and answers.
    pub async fn answer_a_ping(&mut self) {
        loop {
            if let Ok(Message::Ping(_)) = timeout(PATIENCE, self.0.next())
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
