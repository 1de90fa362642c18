//! A client that does everything over a socket.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::history::{Answered, Asked};
use super::workload::{Actor, body_of, outcome};

const PATIENCE: Duration = Duration::from_secs(4);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub async fn live(mut actor: Actor) {
    loop {
        sleep(Duration::from_millis(100)).await;
        let world = Arc::clone(&actor.world);
        let busy = world.busy().await;
        visit(&mut actor).await;
        drop(busy);
    }
}

/// Joins, renews for a while, leaves.
async fn visit(actor: &mut Actor) {
    let (asked, body) = actor.some_join();
    let Asked::Join { room, .. } = &asked else {
        return;
    };
    let Some(url) = actor.world.some_url(actor.recorder.now()) else {
        return;
    };
    let url = format!("{}/rooms/{room}/socket", url.replace("http://", "ws://"));
    let Ok(Ok((mut socket, _))) = timeout(PATIENCE, connect_async(url)).await else {
        return;
    };
    let answer = async { outcome(ask(&mut socket, "join", body).await) };
    let answered = actor.recorder.record(asked.clone(), answer).await;
    let Some(session) = actor.joined(&asked, &answered) else {
        return;
    };
    // The pongs count as heartbeats, for as long as the socket is open.
    let pongs = actor.recorder.begin(Asked::Renew(session.clone()));
    for _ in 0..actor.random.random_range(1..10) {
        let answer = async { outcome(ask(&mut socket, "heartbeat", body_of(&session)).await) };
        let renewal = Asked::Renew(session.clone());
        if actor.recorder.record(renewal, answer).await != Answered::Done {
            break;
        }
        sleep(Duration::from_millis(actor.random.random_range(20..200))).await;
    }
    let answer = async { outcome(ask(&mut socket, "leave", body_of(&session)).await) };
    actor
        .recorder
        .record(Asked::Leave(session.clone()), answer)
        .await;
    drop(socket);
    actor.recorder.end(pongs, Answered::Unknown);
}

/// Status and body of the answer; nothing where none came.
async fn ask(socket: &mut Socket, kind: &str, mut request: Value) -> Option<(u16, Value)> {
    request["type"] = json!(kind);
    request["requestId"] = json!(kind);
    request.as_object_mut()?.remove("roomId");
    let exchange = async {
        socket.send(Message::text(request.to_string())).await.ok()?;
        loop {
            if let Message::Text(text) = socket.next().await?.ok()? {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == "answer" {
                    let status = u16::try_from(message["status"].as_u64()?).ok()?;
                    return Some((status, message["body"].clone()));
                }
            }
        }
    };
    timeout(PATIENCE, exchange).await.ok()?
}
