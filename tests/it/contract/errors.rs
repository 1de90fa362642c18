//! Errors: always JSON, always with a code, never a 500.

use reqwest::Method;
use serde_json::json;

use super::refused;
use crate::support::{App, Database};

#[tokio::test]
async fn an_unknown_address_is_404() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for path in [
        "/nothing",
        "/rooms/r/",
        "/rooms/r/dance",
        "/rooms/r/join/more",
        "/healthz/",
        "/rooms//participants",
        "/ROOMS/r",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let response = app.send(method, path, &[], "").await;
            refused(response, 404, "not_found").await;
        }
    }
}

#[tokio::test]
async fn a_method_that_an_address_lacks_is_405_and_names_those_it_has() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let post = ["join", "heartbeat", "cursor", "leave"].map(|action| format!("/rooms/r/{action}"));
    for path in &post {
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
            let response = app.send(method, path, &[], "").await;
            assert_eq!(response.headers()["allow"], "POST");
            refused(response, 405, "method_not_allowed").await;
        }
    }
    for path in ["/rooms/r/participants", "/healthz", "/readyz", "/metrics"] {
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            let response = app.send(method, path, &[], "").await;
            let allow = response.headers()["allow"].to_str().unwrap();
            assert!(allow.split(", ").any(|m| m == "GET"), "{allow}");
            assert!(allow.split(", ").any(|m| m == "HEAD"), "{allow}");
            refused(response, 405, "method_not_allowed").await;
        }
    }
}

#[tokio::test]
async fn what_can_be_read_answers_to_head_without_a_body() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    for path in [
        "/rooms/r",
        "/rooms/r/participants",
        "/healthz",
        "/metrics",
        "/rooms/nowhere",
    ] {
        let read = app.get(path).await;
        let head = app.send(Method::HEAD, path, &[], "").await;
        assert_eq!(head.status(), read.status(), "{path}");
        assert_eq!(
            head.headers()["content-type"],
            read.headers()["content-type"]
        );
        assert_eq!(head.bytes().await.unwrap().len(), 0, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_400() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for body in [
        "",
        "{",
        "nonsense",
        "{\"userId\":\"alice\"} more",
        "[]",
        "null",
        "\"alice\"",
    ] {
        let response = app
            .send(
                Method::POST,
                "/rooms/r/join",
                &[("content-type", "application/json")],
                body,
            )
            .await;
        refused(response, 400, "invalid_request").await;
    }
    assert_eq!(database.rows().await, (0, 0));
}

#[tokio::test]
async fn a_body_of_another_content_type_is_415() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let body = r#"{"userId":"alice","epoch":1,"cursor":null}"#;
    for action in ["join", "heartbeat", "cursor", "leave"] {
        for label in [
            "text/html",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonp",
        ] {
            let path = format!("/rooms/r/{action}");
            let response = app
                .send(Method::POST, &path, &[("content-type", label)], body)
                .await;
            refused(response, 415, "unsupported_media_type").await;
        }
    }
    let response = app
        .send(
            Method::POST,
            "/rooms/r/join",
            &[("content-type", "text/plain")],
            body,
        )
        .await;
    refused(response, 415, "unsupported_media_type").await;
    assert_eq!(database.rows().await, (0, 0));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--max-body-bytes=2048"]).await;
    let body = |bytes: usize| {
        let start = r#"{"userId":"alice","#;
        format!(
            "{start}{}}}",
            " ".repeat(bytes - start.len() - 7) + r#""x":1"#
        )
    };
    let label = [("content-type", "application/json")];
    let fits = app
        .send(Method::POST, "/rooms/r/join", &label, body(2047))
        .await;
    assert_eq!(fits.status(), 200);
    let before = database.digest().await;
    for bytes in [2_050, 20_000, 1_048_576] {
        let response = app
            .send(Method::POST, "/rooms/r/join", &label, body(bytes))
            .await;
        let sentence = refused(response, 413, "payload_too_large").await;
        assert_eq!(sentence, "the body must be at most 2048 bytes");
    }
    assert_eq!(database.digest().await, before);
}

#[tokio::test]
async fn an_id_with_a_nul_or_that_is_not_text_is_400() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let body = json!({ "userId": "alice" });
    for room in [
        "%00",
        "a%00b",
        "%0A",
        "%7F",
        "%C2%85",
        "%FF",
        "%C3",
        "%ED%A0%80",
    ] {
        let response = app.post(&format!("/rooms/{room}/join"), body.clone()).await;
        let sentence = refused(response, 400, "invalid_request").await;
        assert!(sentence.starts_with("roomId must be "), "{sentence}");
        let response = app.get(&format!("/rooms/{room}/participants")).await;
        refused(response, 400, "invalid_request").await;
    }
    let long = "x".repeat(257);
    for (field, value) in [
        ("userId", "a\0b"),
        ("userId", ""),
        ("userId", &long),
        ("deviceId", "a\nb"),
        ("deviceId", ""),
        ("deviceId", &long),
    ] {
        let mut body = body.clone();
        body[field] = json!(value);
        let response = app.post("/rooms/r/join", body).await;
        let sentence = refused(response, 400, "invalid_request").await;
        assert_eq!(
            sentence,
            format!("{field} must be 1 to 256 characters without control characters")
        );
    }
    assert_eq!(database.rows().await, (0, 0));
}
