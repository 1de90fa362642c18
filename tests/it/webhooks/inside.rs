//! No webhook leads inside: by its address, by a name, or by a redirect.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{FLAGS, SECRET, put, until};
use crate::support::{App, Database, Receiver, Reply, Service};

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_inside_is_refused_at_once_however_it_is_written() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for url in [
        "http://127.0.0.1:8080/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fd00::1]/",
        "http://0.0.0.0/",
    ] {
        let request = app.client.put(format!("{}/webhooks/hook", app.url));
        let request = request.json(&json!({ "url": url, "secret": SECRET }));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400, "{url}");
        let body: Value = response.json().await.unwrap();
        assert!(
            body["error"]
                .as_str()
                .unwrap()
                .contains("LEASEHOLD_WEBHOOKS_ALLOW"),
            "{body}"
        );
    }
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_inside_is_connected_to_only_where_a_setting_allows_it() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let by_name = receiver.url.replace("127.0.0.1", "localhost");
    let app = App::spawn_with(&database, &["--poll-ms=100"]).await;
    put(&app, "hook", &json!({ "url": by_name, "secret": SECRET })).await;
    app.join("r", "alice").await;
    let failed = until(&app, "failed", |state| state["failures"] != 0).await;
    let why = failed["lastFailure"].as_str().unwrap();
    assert!(why.contains("LEASEHOLD_WEBHOOKS_ALLOW"), "{why}");
    assert_eq!(receiver.count(), 0);
    app.stop().await;

    let app = App::spawn_with(&database, &FLAGS).await;
    receiver.until(1).await;
    until(&app, "delivered", |state| state["pendingDeliveries"] == 0).await;
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_put_into_the_table_by_hand_is_refused_too() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let app = App::spawn_with(&database, &["--poll-ms=100"]).await;
    database
        .execute(format!(
            "select leasehold.set_webhook('hook', '{}', '{SECRET}')",
            receiver.url
        ))
        .await;
    app.join("r", "alice").await;
    let failed = until(&app, "failed", |state| state["failures"] != 0).await;
    let why = failed["lastFailure"].as_str().unwrap();
    assert!(why.contains("127.0.0.1"), "{why}");
    assert_eq!(receiver.count(), 0);
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_no_proxy_is_asked() {
    let database = Database::new().await;
    let inside = Receiver::content().await;
    let location = format!("location: {}\r\n", inside.url);
    let receiver = Receiver::answering(move |_| Reply::With(307, location.clone())).await;
    let mut serve = crate::support::command(&["serve", "--bind=127.0.0.1:0", "--log-format=json"]);
    serve.args(FLAGS).stdin(Stdio::null());
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "all_proxy",
        "ALL_PROXY",
    ] {
        serve.env(name, &inside.url);
    }
    serve
        .args(["--log", "warn,leasehold::cli=info"])
        .env("DATABASE_URL", database.url());
    let service = Service::start(serve, "\"address\":\"").await.unwrap();
    let hook = service.client.put(format!("{}/webhooks/hook", service.url));
    let hook = hook.json(&json!({ "url": receiver.url, "secret": SECRET }));
    assert_eq!(hook.send().await.unwrap().status(), 200);
    let join = service.client.post(format!("{}/rooms/r/join", service.url));
    join.json(&json!({ "userId": "alice" }))
        .send()
        .await
        .unwrap();
    receiver.until(2).await;
    assert_eq!(inside.count(), 0);
    database.verify().await;
}
