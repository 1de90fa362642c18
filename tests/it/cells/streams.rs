//! Streams and sockets of rooms that go to another cell.

use serde_json::json;

use super::super::support::{App, Events};
use super::{pair, slots_of, take};

#[tokio::test]
async fn a_stream_of_a_room_that_moves_is_told_and_ends() {
    let (source, target) = pair().await;
    // A poll is too far away to be what tells it.
    let flags = ["--poll-ms=60s"];
    let (old, new) = (
        App::spawn_with(&source, &flags).await,
        App::spawn_with(&target, &flags).await,
    );
    old.join("r", "alice").await;
    let mut events = old.events("r").await;
    let mut counts = Events::of(old.get("/rooms/r/events?view=count").await);
    let mut socket = old.socket("r").await;
    let mut several = Events::of(old.get("/events?room=r&room=stays").await);
    events.expect("snapshot").await;
    counts.expect("count").await;
    socket.until("snapshot").await;
    several.expect("snapshot").await;
    several.expect("snapshot").await;

    take(&source, &target, &slots_of(&["r"])).await;

    let told = events.expect("misdirected").await;
    assert_eq!(told.data, json!({ "roomId": "r", "code": "misdirected" }));
    assert!(events.try_next().await.is_none(), "the stream goes on");
    counts.expect("misdirected").await;
    assert!(counts.try_next().await.is_none(), "the stream goes on");
    several.expect("misdirected").await;
    // A new stream is refused at once, and begins where the room is.
    assert_eq!(old.get("/rooms/r/events").await.status(), 421);
    assert_eq!(new.heartbeat("r", "alice", 1).await.status(), 409);
    let snapshot = new.events("r").await.expect("snapshot").await;
    assert_eq!(snapshot.data["participants"], json!([]));
    // For who was on the socket of the room: come back, through the proxy.
    assert_eq!(socket.closed().await, 1012);
    // The other room of the stream goes on.
    old.join("stays", "bob").await;
    several.expect("joined").await;
    drop((events, counts, several));
    old.stop().await;
    new.stop().await;
}

#[tokio::test]
async fn a_stream_of_a_room_with_nobody_in_it_ends_within_a_poll() {
    let (source, target) = pair().await;
    let old = App::spawn_with(&source, &["--poll-ms=100ms"]).await;
    let mut events = old.events("r").await;
    events.expect("snapshot").await;
    take(&source, &target, &slots_of(&["r"])).await;
    events.expect("misdirected").await;
    assert!(events.try_next().await.is_none(), "the stream goes on");
    old.stop().await;
}

#[tokio::test]
async fn a_session_that_a_socket_of_no_room_holds_is_told_to_look_elsewhere() {
    let (source, target) = pair().await;
    let old = App::spawn_with(&source, &["--keep-alive-ms=1s"]).await;
    let mut socket = super::super::support::Socket::connect(&format!("{}/socket", old.url)).await;
    socket
        .ask(json!({ "type": "join", "requestId": 1, "roomId": "r", "userId": "alice" }))
        .await;
    take(&source, &target, &slots_of(&["r"])).await;
    let stale = socket.until("stale").await;
    assert_eq!(stale["code"], "misdirected");
    old.stop().await;
}
