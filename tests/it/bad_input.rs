//! Bad input over every endpoint: always a 4xx that says what is wrong, never a
//! 500, and never a changed row.

use std::io::{Read, Write};
use std::net::TcpStream;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::support::{App, Database};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A room with alice at epoch 1, on a service without a sweep: then nothing but
/// the requests of a test can change a row.
async fn room_with_alice(database: &Database) -> App {
    let app = App::spawn_with(database, &["--sweep-interval-ms=0"]).await;
    app.join("r", "alice").await;
    app
}

async fn require_refusal(response: Response, what: &str) {
    let status = response.status();
    let body = response.text().await.unwrap();
    assert!(status.is_client_error(), "{what}: {status} {body}");
    let body: Value = serde_json::from_str(&body)
        .unwrap_or_else(|_| unreachable!("{what}: {status} is not JSON: {body:?}"));
    let fields = body.as_object().unwrap();
    assert_eq!(fields.len(), 2, "{what}: {body}");
    assert!(!body["error"].as_str().unwrap().is_empty(), "{what}");
    let code = body["code"].as_str().unwrap();
    assert!(
        code.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
        "{what}"
    );
}

/// A complete body of each action; a heartbeat, a cursor or a leave of it would take effect.
fn complete(action: &str) -> Value {
    match action {
        "join" => json!({ "userId": "alice" }),
        "cursor" => json!({ "userId": "alice", "epoch": 1, "cursor": {} }),
        _ => json!({ "userId": "alice", "epoch": 1 }),
    }
}

const ACTIONS: [&str; 4] = ["join", "heartbeat", "cursor", "leave"];

/// What no field of this name may hold, as JSON text.
fn wrong(field: &str) -> Vec<String> {
    let long = format!("\"{}\"", "x".repeat(257));
    let id = [
        "\"\"",
        "1",
        "true",
        "[]",
        "[\"alice\"]",
        "{}",
        r#""a\u0000b""#,
        r#""\u0001""#,
        r#""a\nb""#,
        r#""\u007f""#,
        r#""\u0085""#,
        // Lone surrogates.
        r#""\ud800""#,
        r#""a\udfffb""#,
        r#""\udc00\ud800""#,
        r#""\x""#,
        "\"unended",
        &long,
    ];
    let epoch = [
        "-1",
        "-9223372036854775809",
        "9223372036854775808",
        "1e400",
        "1.5",
        "1e0",
        "\"1\"",
        "true",
        "[1]",
        "{}",
        "01",
        "+1",
        "NaN",
        "0x1",
    ];
    let lease = [
        "-1",
        "0",
        "999",
        "300001",
        "4294967296",
        "1e4",
        "2000.5",
        "\"2000\"",
        "[]",
        "{}",
        "true",
    ];
    let nested = format!("{{\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let big = format!("{{\"x\":\"{}\"}}", "x".repeat(8_000));
    let object = [
        "1",
        "\"text\"",
        "[]",
        "[{}]",
        "true",
        "{",
        "{\"x\"}",
        "{\"x\":1,}",
        "{x:1}",
        r#"{"x":"\u0000"}"#,
        r#"{"\u0000":1}"#,
        r#"{"x":{"y":["\u0000"]}}"#,
        r#"{"x":"\ud800"}"#,
        r#"{"\udc00":1}"#,
        r#"{"x":1e400}"#,
        r#"{"x":-1e400}"#,
        r#"{"x":NaN}"#,
        r#"{"x":Infinity}"#,
        &nested,
        &big,
    ];
    let present = ["\"keep\"", "\"Replace\"", "1", "true", "[]", "{}", "\"\""];
    let values: &[&str] = match field {
        "userId" | "deviceId" => &id,
        "epoch" => &epoch,
        "leaseMs" => &lease,
        "ifPresent" => &present,
        _ => &object,
    };
    values.iter().map(|&v| v.to_owned()).collect()
}

fn fields(action: &str) -> &[&str] {
    match action {
        "join" => &[
            "userId",
            "deviceId",
            "leaseMs",
            "metadata",
            "cursor",
            "ifPresent",
        ],
        "heartbeat" => &[
            "userId", "deviceId", "epoch", "leaseMs", "metadata", "cursor",
        ],
        "cursor" => &["userId", "deviceId", "epoch", "cursor"],
        _ => &["userId", "deviceId", "epoch"],
    }
}

/// The complete body with one field replaced by this text.
fn with(action: &str, field: &str, text: &str) -> String {
    let mut body = complete(action);
    body.as_object_mut().unwrap().remove(field);
    let rest = body.to_string();
    let comma = if rest == "{}" { "" } else { "," };
    format!("{{\"{field}\":{text}{comma}{}", &rest[1..])
}

#[tokio::test]
async fn a_field_that_is_wrong_is_refused_and_changes_nothing() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    for action in ACTIONS {
        let path = format!("/rooms/r/{action}");
        for field in fields(action) {
            for text in wrong(field) {
                let body = with(action, field, &text);
                let what = format!("{action} {}", body.chars().take(200).collect::<String>());
                let response = app.send(Method::POST, &path, &[JSON], body).await;
                require_refusal(response, &what).await;
            }
        }
    }
    assert_eq!(database.digest().await, before);
    database.verify().await;
}

#[tokio::test]
async fn a_field_that_is_missing_is_refused_and_changes_nothing() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    for action in ACTIONS {
        let names: Vec<String> = complete(action)
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for name in names {
            // A cursor may be null: that clears it.
            let nulls = if name == "cursor" { 1 } else { 2 };
            for kept_as_null in 0..nulls {
                let mut body = complete(action);
                body.as_object_mut().unwrap().remove(&name);
                if kept_as_null == 1 {
                    body[&name] = Value::Null;
                }
                let response = app.post(&format!("/rooms/r/{action}"), body).await;
                let what = format!("{action} without {name}");
                assert_eq!(response.status(), 400, "{what}");
                let text = response.text().await.unwrap();
                assert!(text.contains(&format!("{name} is required")), "{text}");
            }
        }
    }
    assert_eq!(database.digest().await, before);
}

#[tokio::test]
async fn a_field_that_is_given_twice_is_refused_and_changes_nothing() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    for action in ACTIONS {
        for field in fields(action) {
            let good = match *field {
                "userId" => "\"alice\"",
                "deviceId" => "\"d\"",
                "epoch" => "1",
                "leaseMs" => "2000",
                "ifPresent" => "\"replace\"",
                _ => "{}",
            };
            let twice = format!("{good},\"{field}\":{good}");
            let body = with(action, field, &twice);
            let response = app
                .send(Method::POST, &format!("/rooms/r/{action}"), &[JSON], body)
                .await;
            require_refusal(response, &format!("{action} with two of {field}")).await;
        }
    }
    assert_eq!(database.digest().await, before);
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_and_changes_nothing() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    let deep = "[".repeat(10_000);
    let deep_object = "{\"userId\":".repeat(1_000);
    let large = format!("{{\"userId\":\"{}\"}}", "x".repeat(1 << 20));
    let spaces = " ".repeat(1 << 20);
    let bodies: Vec<&[u8]> = vec![
        b"",
        b" ",
        b"null",
        b"true",
        b"1",
        b"\"alice\"",
        b"[\"alice\",1]",
        b"[{\"userId\":\"alice\",\"epoch\":1,\"cursor\":{}}]",
        b"{\"userId\":\"alice\",\"epoch\":1,\"cursor\":{}} {}",
        b"{\"userId\":\"alice\",\"epoch\":1,\"cursor\":{}",
        b"\xef\xbb\xbf{\"userId\":\"alice\",\"epoch\":1,\"cursor\":{}}",
        b"{\"userId\":\"\xff\",\"epoch\":1,\"cursor\":{}}",
        b"{\"userId\":\"\xed\xa0\x80\",\"epoch\":1,\"cursor\":{}}",
        b"{\"userId\":\"alice\",\"epoch\":1,\"cursor\":{\"x\":\"\xc3\"}}",
        b"{\0}",
        b"userId=alice&epoch=1",
        b"{'userId':'alice','epoch':1,'cursor':{}}",
        b"{\"userId\":\"a\tb\",\"epoch\":1,\"cursor\":{}}",
        deep.as_bytes(),
        deep_object.as_bytes(),
        large.as_bytes(),
        spaces.as_bytes(),
    ];
    for action in ACTIONS {
        for body in &bodies {
            let path = format!("/rooms/r/{action}");
            let response = app.send(Method::POST, &path, &[JSON], body.to_vec()).await;
            let start = &body[..body.len().min(60)];
            let what = format!("{action} {:?}", String::from_utf8_lossy(start));
            require_refusal(response, &what).await;
        }
    }
    assert_eq!(database.digest().await, before);
}

#[tokio::test]
async fn wrong_methods_and_content_types_are_refused_and_change_nothing() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    for action in ACTIONS {
        let path = format!("/rooms/r/{action}");
        let body = complete(action).to_string();
        for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let what = format!("{method} {action}");
            let response = app.send(method, &path, &[JSON], body.clone()).await;
            require_refusal(response, &what).await;
        }
        for kind in [
            "text/html",
            "application/xml",
            "application/x-www-form-urlencoded",
            "image/png",
            "json",
            "/",
            ";",
        ] {
            let headers = [("content-type", kind)];
            let response = app.send(Method::POST, &path, &headers, body.clone()).await;
            require_refusal(response, &format!("{action} as {kind}")).await;
        }
        let packed = [JSON, ("content-encoding", "gzip")];
        let response = app.send(Method::POST, &path, &packed, "not gzip").await;
        require_refusal(response, &format!("{action} said to be packed")).await;
    }
    for path in ["/rooms/r", "/rooms/r/participants"] {
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            let what = format!("{method} {path}");
            let response = app.send(method, path, &[JSON], "{}").await;
            require_refusal(response, &what).await;
        }
    }
    assert_eq!(database.digest().await, before);
}

#[tokio::test]
async fn a_room_that_no_id_names_is_refused_on_every_address() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    let long = "x".repeat(257);
    let wide = "%C3%A9".repeat(257);
    let huge = "x".repeat(20_000);
    for room in [
        "%00",
        "r%00",
        "%0A",
        "%0d%0a",
        "%7f",
        "%C2%80",
        "%C2%9F",
        "%FF",
        "%C0%80",
        "%ED%A0%80",
        "%F4%90%80%80",
        "%E2%82",
        &long,
        &wide,
        &huge,
    ] {
        let what: String = room.chars().take(40).collect();
        for action in ACTIONS {
            let path = format!("/rooms/{room}/{action}");
            let response = app.post(&path, complete(action)).await;
            require_refusal(response, &format!("{action} {what}")).await;
        }
        for path in [
            format!("/rooms/{room}"),
            format!("/rooms/{room}/participants"),
        ] {
            require_refusal(app.get(&path).await, &what).await;
        }
    }
    assert_eq!(database.digest().await, before);
}

#[tokio::test]
async fn numbers_of_any_size_within_json_are_stored_or_refused() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    for (number, is_stored) in [
        ("1e308", true),
        ("-1e308", true),
        ("5e-324", true),
        ("1e-400", true),
        ("18446744073709551615", true),
        ("123456789012345678901234567890", true),
        ("1e309", false),
        ("1e400", false),
        ("1e99999999999", false),
    ] {
        let body = format!(r#"{{"userId":"alice","epoch":1,"cursor":{{"x":{number}}}}}"#);
        let response = app
            .send(Method::POST, "/rooms/r/cursor", &[JSON], body)
            .await;
        if is_stored {
            assert_eq!(response.status(), 204, "{number}");
            let listed = app.participants("r").await;
            assert!(listed["participants"][0]["cursor"]["x"].is_number());
        } else {
            require_refusal(response, number).await;
        }
    }
    database.verify().await;
}

#[tokio::test]
async fn the_longest_ids_of_the_widest_characters_are_stored_or_refused() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    // Different characters of four bytes each, so that nothing is saved by compression.
    let wide = |start: u32| -> String {
        (0..256)
            .map(|n| char::from_u32(0x2_0000 + start + n * 37).unwrap())
            .collect()
    };
    let (room, user, device) = (wide(0), wide(10_000), wide(20_000));
    let path = |action: &str| format!("/rooms/{room}/{action}");
    let response = app.post(&path("join"), json!({ "userId": user })).await;
    assert_eq!(response.status(), 200);
    let narrow = "é".repeat(256);
    let body = json!({ "userId": user, "deviceId": narrow });
    assert_eq!(app.post(&path("join"), body).await.status(), 200);
    let before = database.digest().await;

    // All three at once are more than an index of Postgres can hold.
    let body = json!({ "userId": user, "deviceId": device });
    let response = app.post(&path("join"), body).await;
    assert_eq!(response.status(), 400);
    require_refusal(response, "three of the longest ids").await;

    assert_eq!(database.digest().await, before);
    database.verify().await;
}

/// What is not HTTP at all, on a connection of its own.
#[tokio::test]
async fn what_is_not_http_is_refused_and_the_next_request_is_served() {
    let database = Database::new().await;
    let app = room_with_alice(&database).await;
    let before = database.digest().await;
    let address = app.url.trim_start_matches("http://").to_owned();
    for bytes in [
        &b"nonsense\r\n\r\n"[..],
        b"GET /rooms/\xff/participants HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /rooms/a b/participants HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /rooms/r/join HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /rooms/r/leave HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /rooms/r/join HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00",
    ] {
        let address = address.clone();
        let bytes = bytes.to_vec();
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            // A refusal may come as a reset.
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        })
        .await
        .unwrap();
        assert!(!answer.starts_with("HTTP/1.1 5"), "{answer}");
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    assert_eq!(database.digest().await, before);
    assert_eq!(app.heartbeat("r", "alice", 1).await.status(), 204);
}
