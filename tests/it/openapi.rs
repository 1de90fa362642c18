//! The published documents are those of the code.

use std::collections::BTreeSet;
use std::fmt::Write;

use leasehold::http;
use leasehold::wire::Code;
use serde_json::Value;

use super::support::{App, Database};

/// Compares a file with what the code says; `LEASEHOLD_ADOPT=1` writes it.
fn golden(name: &str, text: &str) {
    let path = format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LEASEHOLD_ADOPT").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/{name} is not what the code says; to adopt the change:\n  \
         LEASEHOLD_ADOPT=1 cargo test --test it openapi"
    );
}

#[test]
fn the_document_is_the_one_in_docs() {
    golden("openapi.json", http::document_text());
}

#[test]
fn every_error_code_is_in_docs() {
    let mut text = String::from(
        "# Error codes\n\n\
         Every answer other than success is `{\"error\": \"a sentence\", \"code\": \"machine_code\"}`, \
         always JSON. A program tells `code` apart; the sentence is for people and may change.\n\n\
         | status | code | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let (status, word) = (code.status(), code.as_str());
        writeln!(text, "| {status} | `{word}` | {} |", code.meaning()).unwrap();
    }
    golden("errors.md", &text);
}

#[test]
fn every_route_is_documented_and_every_documented_one_is_there() {
    let document: Value = serde_json::from_str(http::document_text()).unwrap();
    let documented: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let routed: BTreeSet<(String, String)> = http::table()
        .into_iter()
        .map(|(method, path)| (method.to_owned(), path.replace("{file:.*}", "{file}")))
        .collect();
    assert_eq!(documented, routed);
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn every_operation_has_a_name_of_its_own_and_says_what_it_does() {
    let document: Value = serde_json::from_str(http::document_text()).unwrap();
    let mut names = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} twice");
            assert!(operation["summary"].is_string(), "{name}");
        }
    }
}

#[tokio::test]
async fn the_document_is_served_and_browsed_without_anything_from_elsewhere() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--server-keys", "key"]).await;
    let served = app.get("/openapi.json").await;
    assert_eq!(served.headers()["content-type"], "application/json");
    assert_eq!(served.text().await.unwrap(), http::document_text());

    let page = app.get("/docs").await;

    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'self'"));
    assert_eq!(page.headers()["x-frame-options"], "DENY");
    let html = page.text().await.unwrap();
    let loaded: Vec<&str> = html
        .split(['"', '\''])
        .filter(|text| text.ends_with(".js") || text.ends_with(".css"))
        .collect();
    assert!(!loaded.is_empty());
    for file in loaded {
        assert!(!file.contains("//"), "{file} is from elsewhere");
        let part = app
            .get(&format!("/docs/{}", file.trim_start_matches("./")))
            .await;
        assert_eq!(part.status(), 200, "{file}");
        assert_eq!(part.headers()["x-content-type-options"], "nosniff");
    }
    assert_eq!(app.get("/docs/absent.js").await.status(), 404);
    assert_eq!(app.get("/docs/../Cargo.toml").await.status(), 404);
    app.stop().await;
}
