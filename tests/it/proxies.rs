//! Behind a proxy, whom limits and the log go by.

use serde_json::Value;

use super::support::{App, Database, Service};

/// The status of a request that a proxy passes on for this address.
async fn asks_for(app: &App, path: &str, client: &str) -> u16 {
    let request = app.client.get(format!("{}{path}", app.url));
    let answer = request.header("x-forwarded-for", client).send().await;
    answer.unwrap().status().as_u16()
}

/// How many of three requests are answered, where a client may make two at once.
async fn answered(app: &App, clients: [&str; 3]) -> usize {
    let mut answered = 0;
    for client in clients {
        match asks_for(app, "/rooms", client).await {
            200 => answered += 1,
            status => assert_eq!(status, 429),
        }
    }
    answered
}

const LIMITS: [&str; 2] = ["--rate-limit=1", "--rate-burst=2"];

#[tokio::test]
async fn clients_behind_a_trusted_proxy_have_a_rate_each() {
    let database = Database::new().await;
    let flags = [&LIMITS[..], &["--trusted-proxies", "10.0.0.0/8,127.0.0.1"]].concat();
    let app = App::spawn_with(&database, &flags).await;
    assert_eq!(
        answered(&app, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]).await,
        3
    );
    // What a client writes in front of it changes nothing.
    let same = [
        "192.0.2.9",
        "198.51.100.1, 192.0.2.9",
        "198.51.100.2,192.0.2.9:80, 10.0.0.7",
    ];
    assert_eq!(answered(&app, same).await, 2);
    let same = ["2001:db8::1", "[2001:db8::2]:443", "2001:db8::3"];
    assert_eq!(answered(&app, same).await, 2, "one host has a whole /64");
    assert_eq!(
        answered(&app, ["unknown", "_hidden", "192.0.2.1.5"]).await,
        2,
        "the proxy itself"
    );
    app.stop().await;
}

#[tokio::test]
async fn who_is_no_trusted_proxy_speaks_for_nobody() {
    let database = Database::new().await;
    let elsewhere = [&LIMITS[..], &["--trusted-proxies", "10.0.0.0/8"]].concat();
    for flags in [&LIMITS[..], &elsewhere] {
        let app = App::spawn_with(&database, flags).await;
        assert_eq!(
            answered(&app, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]).await,
            2
        );
        app.stop().await;
    }
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_have_seats_each() {
    let database = Database::new().await;
    let flags = [
        "--max-subscribers-per-client=1",
        "--trusted-proxies=127.0.0.1",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let open = async |client: &str| {
        let request = app.client.get(format!("{}/rooms/r/events", app.url));
        request
            .header("x-forwarded-for", client)
            .send()
            .await
            .unwrap()
    };
    let first = open("192.0.2.1").await;
    assert_eq!(first.status(), 200);
    assert_eq!(open("192.0.2.1").await.status(), 503);
    assert_eq!(open("192.0.2.2").await.status(), 200);
    app.stop().await;
}

#[tokio::test]
async fn the_log_says_who_asked() {
    let database = Database::new().await;
    let service =
        Service::serve_logging("info", &database.url(), &["--trusted-proxies", "127.0.0.1"]).await;
    let request = service.client.get(format!("{}/healthz", service.url));
    request
        .header("x-forwarded-for", "203.0.113.7")
        .send()
        .await
        .unwrap();
    service
        .client
        .get(format!("{}/rooms", service.url))
        .send()
        .await
        .unwrap();
    let said = service.said();
    let lines = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let requests: Vec<Value> = lines.filter(|line| line["message"] == "request").collect();
    let client = |path: &str| {
        let line = requests.iter().find(|line| line["path"] == path);
        line.unwrap()["client"].clone()
    };
    assert_eq!(client("/healthz"), "203.0.113.7");
    assert_eq!(client("/rooms"), "127.0.0.1");
}
