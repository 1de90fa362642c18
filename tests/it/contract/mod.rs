//! The contract of the HTTP interface, sentence by sentence, over real connections.

mod errors;
mod heartbeat;
mod join;
mod leave;
mod operations;
mod participants;

use reqwest::Response;
use serde_json::Value;

/// The names of an object's fields, sorted.
fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

fn int(value: &Value, field: &str) -> i64 {
    value[field]
        .as_i64()
        .unwrap_or_else(|| unreachable!("no integer {field} in {value}"))
}

/// Requires 204 without a body.
async fn accepted(response: Response) {
    assert_eq!(response.status(), 204);
    assert_eq!(response.bytes().await.unwrap().len(), 0);
}

/// Requires an error of exactly the published shape; returns its sentence.
async fn refused(response: Response, status: u16, code: &str) -> String {
    let found = response.status();
    let kind = response.headers()["content-type"].clone();
    let body = response.text().await.unwrap();
    assert_eq!(found, status, "{body}");
    assert_eq!(kind, "application/json", "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(fields(&body), ["code", "error"]);
    assert_eq!(body["code"], code, "{body}");
    let sentence = body["error"].as_str().unwrap().to_owned();
    assert!(!sentence.is_empty());
    sentence
}

/// Requires 409 with the reason that the session is stale for.
async fn stale(response: Response, reason: &str) {
    assert_eq!(refused(response, 409, reason).await, "stale session");
}
