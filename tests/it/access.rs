//! Every endpoint against every kind of caller.

use leasehold::access::Scope;
use leasehold::http;
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{App, Database, SECRET, mint, serve_args};

/// Who the table asks as; the token of each.
fn callers() -> Vec<(&'static str, Option<String>)> {
    let token = |subject: &str, scope, rooms: Option<&[&str]>| {
        let rooms = rooms.map(|rooms| rooms.iter().map(|&room| room.to_owned()).collect());
        Some(mint(&SECRET.into(), subject.to_owned(), rooms, scope, 600).unwrap())
    };
    vec![
        ("nobody", None),
        ("alice", token("alice", Scope::Member, Some(&["room*"]))),
        ("bob", token("bob", Scope::Member, Some(&["room*"]))),
        (
            "alice elsewhere",
            token("alice", Scope::Member, Some(&["other*"])),
        ),
        (
            "observer",
            token("watcher", Scope::Observer, Some(&["room*"])),
        ),
        (
            "admin of the rooms",
            token("root", Scope::Admin, Some(&["room*"])),
        ),
        ("admin", token("root", Scope::Admin, None)),
        ("server", Some("a-server-key".to_owned())),
    ]
}

/// Who may ask an endpoint about `room`, as or about `alice`.
fn allowed(method: &str, path: &str) -> &'static [&'static str] {
    match (method, path) {
        (
            _,
            "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/client.js" | "/client/{file}"
            | "/docs" | "/docs/{file:.*}" | "/" | "/console" | "/console/{file}" | "/demo"
            | "/demo/{file}" | "/shared/{file}",
        ) => &[
            "nobody",
            "alice",
            "bob",
            "alice elsewhere",
            "observer",
            "admin of the rooms",
            "admin",
            "server",
        ],
        (
            "POST",
            "/rooms/{roomId}/join"
            | "/rooms/{roomId}/heartbeat"
            | "/rooms/{roomId}/cursor"
            | "/rooms/{roomId}/leave"
            | "/rooms/{roomId}/disconnect",
        ) => &["alice", "admin of the rooms", "admin", "server"],
        (
            "GET",
            "/rooms"
            | "/rooms/{roomId}"
            | "/rooms/{roomId}/participants"
            | "/rooms/{roomId}/events"
            | "/rooms/{roomId}/socket"
            | "/events"
            | "/lobby/events",
        ) => &[
            "alice",
            "bob",
            "observer",
            "admin of the rooms",
            "admin",
            "server",
        ],
        // What it says of a room needs more.
        ("GET", "/socket") => &[
            "alice",
            "bob",
            "alice elsewhere",
            "observer",
            "admin of the rooms",
            "admin",
            "server",
        ],
        ("GET", "/users/{userId}/rooms") | ("POST", "/whereabouts") => {
            &["alice", "alice elsewhere", "admin", "server"]
        }
        ("DELETE", "/rooms/{roomId}" | "/rooms/{roomId}/participants/{userId}")
        | (
            "GET",
            "/rooms/{roomId}/generations"
            | "/rooms/{roomId}/generations/{generation}/sessions"
            | "/rooms/{roomId}/blocks",
        )
        | ("PUT" | "DELETE", "/rooms/{roomId}/lock")
        | ("PATCH", "/rooms/{roomId}/participants/{userId}") => {
            &["admin of the rooms", "admin", "server"]
        }
        ("GET", "/outages") => &["admin of the rooms", "admin", "server"],
        ("GET" | "DELETE", "/users/{userId}/sessions")
        | ("DELETE", "/users/{userId}/history")
        | ("GET", "/changes" | "/changes/events")
        | ("POST", "/heartbeats" | "/leaves")
        | ("GET", "/webhooks")
        | ("PUT" | "GET" | "DELETE", "/webhooks/{name}")
        | ("POST", "/webhooks/{name}/disable" | "/webhooks/{name}/resume") => &["admin", "server"],
        _ => unreachable!("say in this table who may ask {method} {path}"),
    }
}

#[tokio::test]
async fn every_endpoint_lets_in_whom_it_should_and_nobody_else() {
    let database = Database::new().await;
    let flags = [
        "--server-keys",
        "an-older-key,a-server-key",
        "--jwt-hs256-secret",
        SECRET,
    ];
    let app = App::spawn_with(&database, &flags).await;
    let mut wrong = Vec::new();
    for (method, path) in http::table() {
        let address = path
            .replace("{roomId}", "room")
            .replace("{userId}", "alice")
            .replace("{generation}", "1")
            .replace("{file:.*}", "");
        let query = match path {
            "/rooms" | "/lobby/events" => "?prefix=room",
            "/events" => "?room=room",
            _ => "",
        };
        for (caller, token) in callers() {
            let mut request = app.client.request(
                Method::from_bytes(method.as_bytes()).unwrap(),
                format!("{}{address}{query}", app.url),
            );
            if ["POST", "PUT", "PATCH"].contains(&method) {
                request = request.json(&json!({
                    "userId": "alice", "epoch": 1, "cursor": null, "heartbeats": [], "leaves": [],
                    "userIds": ["alice"],
                }));
            }
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let status = request.send().await.unwrap().status().as_u16();
            let is_right = match allowed(method, path).contains(&caller) {
                true => ![401, 403].contains(&status) && status < 500,
                false if caller == "nobody" => status == 401,
                false => status == 403,
            };
            if !is_right {
                wrong.push(format!("{method} {path} as {caller}: {status}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn whoever_is_refused_changes_nothing() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--server-keys", "key"]).await;
    let joined = app
        .client
        .post(format!("{}/rooms/r/join", app.url))
        .bearer_auth("key")
        .json(&json!({ "userId": "alice" }))
        .send()
        .await
        .unwrap();
    assert_eq!(joined.status(), 200);

    assert_eq!(app.leave("r", "alice", 1).await.status(), 401);
    assert_eq!(app.delete("/rooms/r").await.status(), 401);
    let refused = app.post("/rooms/r/join", json!({})).await;
    assert_eq!(
        refused.headers()["www-authenticate"],
        "Bearer realm=\"leasehold\""
    );
    assert_eq!(
        refused.status(),
        401,
        "who one is comes before what one asks"
    );
    assert_eq!(
        refused.json::<Value>().await.unwrap()["code"],
        "unauthorized"
    );

    let members = database.store.census().await.unwrap().active_members;
    assert_eq!(members, 1);
    app.stop().await;
}

#[tokio::test]
async fn without_authentication_only_this_machine_is_served() {
    use leasehold::app::Application;
    let database = Database::new().await;
    let build = async |flags: &[&str]| {
        let mut args = serve_args(flags);
        args.bind = "0.0.0.0:0".parse().unwrap();
        Application::build(&args, database.url().into())
            .await
            .map(|_| ())
    };

    let refused = build(&[]).await.unwrap_err().to_string();
    assert!(
        refused.contains("LEASEHOLD_BIND is 0.0.0.0:0") && refused.contains("--insecure-no-auth")
    );
    build(&["--insecure-no-auth"]).await.unwrap();
    build(&["--server-keys", "key"]).await.unwrap();
}
