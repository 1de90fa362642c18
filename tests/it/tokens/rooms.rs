//! Which rooms a token reaches, where their ids look like patterns.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{but, claims, hs256};
use crate::support::{App, Database, SECRET, Service, command, text};

const STARRED: [&str; 4] = ["*", "team-*", r"a\*", "**"];

/// Whether the token reads this room.
async fn reads(app: &App, token: &str, room: &str) -> bool {
    let room = room.replace('\\', "%5C");
    let url = format!("{}/rooms/{room}/participants", app.url);
    let answer = app.client.get(url).bearer_auth(token).send().await.unwrap();
    let status = answer.status().as_u16();
    assert!([200, 403].contains(&status), "{room}: {status}");
    status == 200
}

/// Which of these rooms, of which many start alike, the token reads.
async fn read(app: &App, token: &str) -> Vec<&'static str> {
    let rooms = ["*", "**", "team-*", "team-1", r"a\*", r"a\b", "a*", "other"];
    let mut read = Vec::new();
    for room in rooms {
        if reads(app, token, room).await {
            read.push(room);
        }
    }
    read
}

fn token(claim: &str, rooms: Value) -> String {
    let mut claims = but("rooms", Value::Null);
    claims[claim] = rooms;
    hs256(&claims)
}

#[tokio::test]
async fn an_id_is_never_a_pattern_whatever_it_ends_in() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    for id in STARRED {
        assert_eq!(read(&app, &token("roomIds", json!([id]))).await, [id]);
        let url = format!("{}/rooms/{}/join", app.url, id.replace('\\', "%5C"));
        let join = app.client.post(url).json(&json!({ "userId": "alice" }));
        let join = join.bearer_auth(token("roomIds", json!([id])));
        assert_eq!(join.send().await.unwrap().status(), 200, "{id}");
    }
    let lists = app.client.get(format!("{}/rooms?prefix=", app.url));
    let lists = lists.bearer_auth(token("roomIds", json!(["*"])));
    assert_eq!(lists.send().await.unwrap().status(), 403);
    database.verify().await;
}

#[tokio::test]
async fn a_prefix_is_never_an_id() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--jwt-hs256-secret", SECRET]).await;
    let prefix = |text: &str| token("roomPrefixes", json!([text]));
    assert_eq!(read(&app, &prefix("team-")).await, ["team-*", "team-1"]);
    assert_eq!(read(&app, &prefix("team-*")).await, ["team-*"]);
    assert_eq!(read(&app, &prefix(r"a\")).await, [r"a\*", r"a\b"]);
    assert_eq!(read(&app, &prefix("")).await.len(), 8);
    let mut all = claims();
    all["roomIds"] = json!(["*"]);
    all["roomPrefixes"] = json!(["a"]);
    all["rooms"] = json!(["team-*"]);
    let all = read(&app, &hs256(&all)).await;
    assert_eq!(all, ["*", "team-*", "team-1", r"a\*", r"a\b", "a*"]);
}

#[tokio::test]
async fn rooms_are_patterns_unless_the_operator_says_that_they_are_not() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET, "--jwt-room-patterns"];
    let usual = App::spawn_with(&database, &flags[..2]).await;
    let literal = App::spawn_with(&database, &[&flags[..], &["off"]].concat()).await;
    let rooms = |text: &str| token("rooms", json!([text]));
    assert_eq!(read(&usual, &rooms("team-*")).await, ["team-*", "team-1"]);
    assert_eq!(read(&usual, &rooms("*")).await.len(), 8);
    assert_eq!(read(&usual, &rooms("**")).await, ["*", "**"]);
    for id in STARRED {
        assert_eq!(read(&literal, &rooms(id)).await, [id]);
    }
    assert_eq!(
        read(&literal, &token("roomPrefixes", json!(["team-"]))).await,
        ["team-*", "team-1"]
    );
}

#[tokio::test]
async fn the_command_mints_what_its_flags_say() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET, "--jwt-audience", "presence"];
    let app = App::spawn_with(&database, &flags).await;
    let minted = |flags: &[&str]| {
        let arguments = [
            &[
                "token",
                "--sub",
                "alice",
                "--secret",
                SECRET,
                "--audience",
                "presence",
            ][..],
            flags,
        ];
        let output = command(&arguments.concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    for id in STARRED {
        assert_eq!(read(&app, &minted(&["--room", id])).await, [id]);
    }
    let prefix = minted(&[
        "--room-prefix",
        "team-",
        "--info",
        r#"{"name":"Alice"}"#,
        "--max-members",
        "5",
    ]);
    assert_eq!(read(&app, &prefix).await, ["team-*", "team-1"]);
    let refused = command(&[
        "token", "--sub", "alice", "--secret", SECRET, "--info", "[]",
    ])
    .output();
    assert!(!refused.unwrap().status.success());
}

#[tokio::test]
async fn the_log_warns_once_of_a_token_that_opens_more_than_a_room() {
    let database = Database::new().await;
    let flags = ["--jwt-hs256-secret", SECRET];
    let service = Service::serve(&database.url(), &flags).await;
    let ask = async |token: String| {
        let request = service
            .client
            .get(format!("{}/rooms/team-1/participants", service.url));
        request.bearer_auth(token).send().await.unwrap();
        service
            .said()
            .matches("LEASEHOLD_JWT_ROOM_PATTERNS")
            .count()
    };
    assert_eq!(ask(token("rooms", json!(["team-1"]))).await, 0);
    assert_eq!(ask(token("roomIds", json!(["team-*"]))).await, 0);
    assert_eq!(ask(token("roomPrefixes", json!(["team-"]))).await, 0);
    assert_eq!(ask(token("rooms", json!(["team-*"]))).await, 1);
    assert_eq!(ask(token("rooms", json!(["*"]))).await, 1);
    service.stop(Signal::TERM).await;
}
