//! No client takes all seats.

use leasehold::access::Scope;
use serde_json::Value;

use crate::support::{App, Database, Events, Reader, SECRET, Socket, mint};

const KEY: &str = "a-server-key-that-only-tests-use";

fn token(user: &str) -> String {
    let rooms = Some(vec!["r".to_owned(), "other".to_owned()]);
    mint(&SECRET.into(), user.to_owned(), rooms, Scope::Member, 600).unwrap()
}

async fn ask(app: &App, room: &str, credential: &str) -> reqwest::Response {
    let url = format!("{}/rooms/{room}/events", app.url);
    let request = app.client.get(url).bearer_auth(credential);
    request.send().await.unwrap()
}

async fn refused(app: &App, room: &str, credential: &str) {
    let response = ask(app, room, credential).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "too_many_subscribers");
    let sentence = body["error"].as_str().unwrap();
    assert!(sentence.contains("this client has 2"), "{sentence}");
}

#[tokio::test]
async fn a_client_with_all_its_seats_leaves_those_of_others() {
    let database = Database::new().await;
    let auth = ["--jwt-hs256-secret", SECRET, "--server-keys", KEY];
    let flags = [&["--max-subscribers-per-client", "2"][..], &auth].concat();
    let app = App::spawn_with(&database, &flags).await;
    let alice = token("alice");
    let mut first = Events::of(ask(&app, "r", &alice).await);
    first.expect("snapshot").await;
    // Of whatever kind, and in whichever room.
    let url = format!("{}/rooms/other/socket?access_token={alice}", app.url);
    let mut second = Socket::connect(&url).await;
    second.until("snapshot").await;

    refused(&app, "r", &alice).await;
    refused(&app, "other", &token("alice")).await;
    let path = format!("/rooms/r/socket?access_token={alice}");
    assert_eq!(Reader::upgrade(&app.url, &path).await.status().await, 503);

    let mut others = Vec::new();
    for credential in [&token("bob"), KEY, KEY] {
        others.push(Events::of(ask(&app, "r", credential).await));
    }
    refused(&app, "r", KEY).await;

    drop(first);
    app.until_subscribers(4).await;
    assert_eq!(ask(&app, "r", &alice).await.status(), 200);
}

#[tokio::test]
async fn without_authentication_an_address_is_a_client() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--max-subscribers", "4"]).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut reader = Reader::ask(&app.url, "/rooms/r/events").await;
        assert_eq!(reader.status().await, 200);
        open.push(reader);
    }
    let mut fourth = Reader::ask(&app.url, "/rooms/r/events").await;
    assert_eq!(fourth.status().await, 503, "one of the seats is for others");
    let mut elsewhere = Reader::ask_from("127.0.0.2", &app.url, "/rooms/r/events").await;
    assert_eq!(elsewhere.status().await, 200);
}
