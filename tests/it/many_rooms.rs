//! One connection, many rooms: as server-sent events and on sockets.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::support::{App, Database, Events, Picture, SECRET, Socket, mint};

fn query(rooms: impl IntoIterator<Item = String>) -> String {
    let rooms = rooms.into_iter().map(|room| format!("room={room}"));
    format!("/events?{}", rooms.collect::<Vec<_>>().join("&"))
}

async fn bare_socket(app: &App) -> Socket {
    Socket::connect(&format!("{}/socket", app.url)).await
}

fn subscribe(room: &str) -> Value {
    json!({ "type": "subscribe", "requestId": room, "roomId": room })
}

/// The next message of each type about each room, in whichever order they come.
async fn next_of(socket: &mut Socket, kind: &str, room: &str) -> Value {
    loop {
        let message = socket.until(kind).await;
        if message["roomId"] == room {
            return message;
        }
    }
}

#[tokio::test]
async fn a_stream_of_a_hundred_rooms_tells_of_each_what_its_own_stream_would() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let rooms: Vec<String> = (0..100).map(|n| format!("room-{n}")).collect();
    app.join("room-7", "zoe").await;
    let mut events = Events::of(app.get(&query(rooms.clone())).await);
    let mut pictures = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for room in &rooms {
        let event = events.expect("snapshot").await;
        assert_eq!(event.data["roomId"], **room, "in the order of the query");
        assert!(ids.insert(event.id), "no two rooms have an id in common");
        pictures.insert(room.clone(), Picture::of(&event.data));
    }

    for room in &rooms {
        app.join(room, "alice").await;
    }
    app.leave("room-7", "zoe", 1).await;
    app.leave("room-9", "alice", 1).await;

    let mut expected = BTreeMap::new();
    for room in &rooms {
        expected.insert(room.clone(), Picture::of(&app.participants(room).await));
    }
    while pictures != expected {
        let event = events.next().await;
        let room = event.data["roomId"].as_str().unwrap();
        let picture = pictures.get_mut(room).unwrap();
        picture.apply(&event.kind, &event.data);
    }
    app.until_subscribers(100).await;
    drop(events);
    app.until_subscribers(0).await;
    database.verify().await;
}

#[tokio::test]
async fn rooms_that_cannot_be_followed_together_are_refused() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    let rooms = Some(vec!["r*".to_owned()]);
    let token = mint(
        &SECRET.into(),
        "alice".to_owned(),
        rooms,
        Scope::Member,
        600,
    )
    .unwrap();
    for (address, status) in [
        (query((0..101).map(|n| format!("r{n}"))), 400),
        (query(["r".to_owned(), "r".to_owned()]), 400),
        (query(["r".to_owned(), String::new()]), 400),
        ("/events".to_owned(), 400),
        (query(["r".to_owned(), "secret".to_owned()]), 403),
    ] {
        let request = app.client.get(format!("{}{address}", app.url));
        let response = request.bearer_auth(&token).send().await.unwrap();
        assert_eq!(response.status(), status, "{address}");
    }
}

#[tokio::test]
async fn seats_count_rooms_and_are_given_back() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--max-subscribers", "3"]).await;
    let four = query((0..4).map(|n| format!("r{n}")));
    assert_eq!(app.get(&four).await.status(), 503);
    app.until_subscribers(0).await;
    let mut socket = bare_socket(&app).await;
    for room in ["a", "b", "c"] {
        assert_eq!(socket.ask(subscribe(room)).await["status"], 204);
    }
    let refused = socket.ask(subscribe("d")).await;
    assert_eq!(
        (&refused["status"], &refused["body"]["code"]),
        (&json!(503), &json!("too_many_subscribers"))
    );
    let unsubscribe = json!({ "type": "unsubscribe", "roomId": "b" });
    assert_eq!(socket.ask(unsubscribe).await["status"], 204);
    assert_eq!(socket.ask(subscribe("d")).await["status"], 204);
    drop(socket);
    app.until_subscribers(0).await;
}

#[tokio::test]
async fn a_socket_without_a_room_follows_those_that_it_subscribes_to() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = bare_socket(&app).await;
    let nowhere = json!({ "type": "join", "requestId": 1, "userId": "alice" });
    assert_eq!(socket.ask(nowhere).await["status"], 400);
    let odd = json!({ "type": "join", "requestId": 1, "userId": "alice", "roomId": 7 });
    assert_eq!(socket.ask(odd).await["status"], 400);

    socket.send(subscribe("a")).await;
    socket.send(subscribe("b")).await;
    for room in ["a", "b"] {
        let answer = socket.try_next().await.unwrap();
        assert_eq!(
            answer,
            json!({ "type": "answer", "requestId": room, "status": 204 })
        );
        let snapshot = socket.try_next().await.unwrap();
        assert_eq!(
            (&snapshot["type"], &snapshot["roomId"]),
            (&json!("snapshot"), &json!(room))
        );
    }
    let join = |room: &str| json!({ "type": "join", "roomId": room, "userId": "alice" });
    socket.send(join("a")).await;
    // The news of a join may be there before its answer.
    let mut heard = Vec::new();
    for _ in 0..2 {
        let message = socket.try_next().await.unwrap();
        heard.push(message["type"].as_str().unwrap().to_owned());
    }
    heard.sort();
    assert_eq!(heard, ["answer", "joined"]);
    assert_eq!(
        socket.ask(join("c")).await["status"],
        200,
        "without a subscription to it"
    );

    // Again: the answer, and no second snapshot before what comes next.
    socket.send(subscribe("a")).await;
    assert_eq!(socket.try_next().await.unwrap()["type"], "answer");
    app.join("a", "bob").await;
    assert_eq!(socket.try_next().await.unwrap()["type"], "joined");

    let unsubscribe = json!({ "type": "unsubscribe", "requestId": 9, "roomId": "a" });
    assert_eq!(socket.ask(unsubscribe.clone()).await["status"], 204);
    assert_eq!(socket.ask(unsubscribe).await["status"], 204);
    app.join("a", "carol").await;
    app.join("b", "carol").await;
    let next = socket.try_next().await.unwrap();
    assert_eq!(
        (&next["type"], &next["roomId"]),
        (&json!("joined"), &json!("b"))
    );
    app.stop().await;
    assert_eq!(socket.closed().await, 1012);
    database.verify().await;
}

#[tokio::test]
async fn a_socket_follows_a_hundred_rooms_and_no_more() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = app.socket("own").await;
    for n in 1..100 {
        assert_eq!(socket.ask(subscribe(&format!("r{n}"))).await["status"], 204);
    }
    assert_eq!(socket.ask(subscribe("one-more")).await["status"], 400);
    app.join("own", "alice").await;
    app.join("r99", "alice").await;
    next_of(&mut socket, "joined", "r99").await;
}

#[tokio::test]
async fn sockets_without_a_subscription_are_closed_when_the_service_stops() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let mut socket = bare_socket(&app).await;
    app.stop().await;
    assert_eq!(socket.closed().await, 1012);
}

#[tokio::test]
async fn rooms_that_a_fresh_token_does_not_open_end_and_the_others_go_on() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET, "--server-keys", "key"];
    let app = App::spawn_with(&database, &flags).await;
    let token = |rooms: &[&str]| {
        let rooms = rooms.iter().map(|&room| room.to_owned()).collect();
        mint(
            &SECRET.into(),
            "alice".to_owned(),
            Some(rooms),
            Scope::Member,
            600,
        )
        .unwrap()
    };
    let url = format!("{}/socket?access_token={}", app.url, token(&["a", "b"]));
    let mut socket = Socket::connect(&url).await;
    assert_eq!(socket.ask(subscribe("c")).await["status"], 403);
    for room in ["a", "b"] {
        assert_eq!(socket.ask(subscribe(room)).await["status"], 204);
    }
    let fresh = json!({ "type": "authenticate", "token": token(&["b"]) });
    assert_eq!(socket.ask(fresh).await["status"], 204);
    assert_eq!(
        socket.try_next().await.unwrap(),
        json!({ "type": "unsubscribed", "roomId": "a", "code": "forbidden" })
    );
    for room in ["a", "b"] {
        let request = app.client.post(format!("{}/rooms/{room}/join", app.url));
        let request = request.bearer_auth("key").json(&json!({ "userId": "bob" }));
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    assert_eq!(socket.until("joined").await["roomId"], "b");
    database.verify().await;
}
