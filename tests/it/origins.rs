//! Pages: which may ask, by which names, and what they are told before they do.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::support::{App, Database};

/// A request with these headers, with a body where it is a POST.
async fn ask(app: &App, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let body = match method {
        "POST" => json!({ "userId": "alice", "epoch": 1 }).to_string(),
        _ => String::new(),
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    app.send(method, path, headers, body).await
}

/// Whether it was refused as a page's, and answered as every refusal is.
async fn is_refused(answer: Response, names: &str) -> bool {
    if answer.status() != 403 {
        assert!(answer.status().as_u16() < 400, "{}", answer.status());
        return false;
    }
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["code"], "forbidden");
    let sentence = body["error"].as_str().unwrap();
    assert!(sentence.contains(names), "{sentence}");
    true
}

const HANDSHAKE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

#[tokio::test]
async fn a_page_of_elsewhere_is_refused_on_every_route() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let own = app.url.clone();
    let upper = own.to_uppercase().replace("HTTP", "http");
    for (method, path) in [
        ("POST", "/rooms/r/join"),
        ("POST", "/rooms/r/leave"),
        ("GET", "/rooms/r/participants"),
        ("GET", "/rooms/r/events"),
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/docs/"),
    ] {
        for strange in [
            "https://evil.example",
            "http://127.0.0.1:1",
            "http://localhost:5173",
            "null",
            "",
            "file://",
            &own.replace("127.0.0.1", "localhost"),
            &format!("{own}.evil.example"),
        ] {
            let answer = ask(&app, method, path, &[("origin", strange)]).await;
            assert!(
                is_refused(answer, "LEASEHOLD_CORS_ORIGINS").await,
                "{method} {path} {strange:?}"
            );
        }
        for origin in [
            &[][..],
            &[("origin", own.as_str())],
            &[("origin", upper.as_str())],
        ] {
            let answer = ask(&app, method, path, origin).await;
            assert!(!is_refused(answer, "").await, "{method} {path} {origin:?}");
        }
    }
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn a_page_of_elsewhere_neither_joins_without_a_content_type_nor_opens_a_socket() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let strange = ("origin", "https://evil.example");
    assert_eq!(
        ask(&app, "POST", "/rooms/r/join", &[strange])
            .await
            .status(),
        403
    );
    let plain = ("content-type", "text/plain");
    app.join("r", "alice").await;
    assert_eq!(
        ask(&app, "POST", "/rooms/r/leave", &[strange, plain])
            .await
            .status(),
        403
    );
    let (own, with) = (app.url.clone(), |origin| {
        [&HANDSHAKE[..], &[("origin", origin)]].concat()
    });
    let refused = ask(
        &app,
        "GET",
        "/rooms/r/socket",
        &with("https://evil.example"),
    )
    .await;
    assert!(is_refused(refused, "LEASEHOLD_CORS_ORIGINS").await);
    let opened = ask(&app, "GET", "/rooms/r/socket", &with(&own)).await;
    assert_eq!(opened.status(), 101);
    let members = app.participants("r").await;
    assert_eq!(members["participants"].as_array().unwrap().len(), 1);
    app.stop().await;
}

#[tokio::test]
async fn pages_that_are_named_may_ask_and_their_likes_may_not() {
    let database = Database::new().await;
    let named = "https://app.example, https://*.example.com,http://localhost:*,null";
    let app = App::spawn_with(&database, &["--cors-origins", named]).await;
    for (origin, may) in [
        ("https://app.example", true),
        ("https://a.example.com", true),
        ("https://a.b.example.com", true),
        ("http://localhost:5173", true),
        ("null", true),
        ("https://example.com", false),
        ("https://evilexample.com", false),
        ("https://app.example:8443", false),
        ("https://localhost:5173", false),
    ] {
        let answer = ask(&app, "GET", "/rooms/r/participants", &[("origin", origin)]).await;
        let told = answer.headers().get("access-control-allow-origin").cloned();
        assert_eq!(told.is_some_and(|told| told == origin), may, "{origin}");
        assert_eq!(
            is_refused(answer, "LEASEHOLD_CORS_ORIGINS").await,
            !may,
            "{origin}"
        );
    }
    app.stop().await;
    let open = App::spawn_with(&database, &["--cors-origins", "*"]).await;
    for origin in ["https://evil.example", "null"] {
        let answer = ask(&open, "GET", "/rooms/r/participants", &[("origin", origin)]).await;
        assert!(!is_refused(answer, "").await, "{origin}");
    }
    open.stop().await;
}

#[tokio::test]
async fn a_preflight_allows_what_pages_send() {
    let database = Database::new().await;
    let flags = [
        "--cors-origins",
        "https://app.example",
        "--server-keys",
        "key",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let headers = "authorization,content-type,last-event-id,x-request-id,cache-control,traceparent,tracestate";
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] {
        let answer = ask(
            &app,
            "OPTIONS",
            "/rooms/r/events",
            &[
                ("origin", "https://app.example"),
                ("access-control-request-method", method),
                ("access-control-request-headers", headers),
            ],
        )
        .await;
        assert_eq!(answer.status(), 200, "{method}");
        let told = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(told("access-control-allow-headers"), headers);
        assert!(told("access-control-allow-methods").contains(method));
        assert!(
            !answer
                .headers()
                .contains_key("access-control-allow-credentials")
        );
    }
    let refused = ask(&app, "GET", "/rooms", &[("origin", "https://app.example")]).await;
    assert_eq!(refused.status(), 401);
    let exposed = refused.headers()["access-control-expose-headers"]
        .to_str()
        .unwrap();
    for header in ["retry-after", "x-request-id", "www-authenticate"] {
        assert!(exposed.contains(header), "{exposed}");
    }
    app.stop().await;
}

#[tokio::test]
async fn without_authentication_only_loopback_names_are_answered() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for path in ["/rooms/r/participants", "/healthz", "/metrics", "/nowhere"] {
        for rebound in [
            "rebound.example",
            "rebound.example:3000",
            "10.0.0.7",
            "localhost.evil.example",
            "[::2]",
        ] {
            let page = format!("http://{rebound}");
            for headers in [
                &[("host", rebound)][..],
                &[("host", rebound), ("origin", &page)],
            ] {
                let answer = ask(&app, "GET", path, headers).await;
                assert!(
                    is_refused(answer, "--insecure-no-auth").await,
                    "{path} {rebound}"
                );
            }
        }
    }
    for host in [
        "localhost",
        "localhost:3000",
        "app.localhost:1",
        "127.0.0.1",
        "127.8.9.1:80",
        "[::1]:3000",
    ] {
        let page = format!("http://{host}");
        let answer = ask(
            &app,
            "GET",
            "/rooms/r/participants",
            &[("host", host), ("origin", &page)],
        )
        .await;
        assert_eq!(answer.status(), 200, "{host}");
    }
    app.stop().await;

    for flags in [&["--insecure-no-auth"][..], &["--server-keys", "key"]] {
        let app = App::spawn_with(&database, flags).await;
        let answer = ask(&app, "GET", "/healthz", &[("host", "rooms.example")]).await;
        assert_eq!(answer.status(), 200);
        // Behind a proxy that takes the encryption off.
        let page = [
            ("host", "rooms.example"),
            ("origin", "https://rooms.example"),
        ];
        assert_eq!(ask(&app, "GET", "/healthz", &page).await.status(), 200);
        let other = [
            ("host", "rooms.example"),
            ("origin", "https://evil.example"),
        ];
        assert_eq!(ask(&app, "GET", "/healthz", &other).await.status(), 403);
        app.stop().await;
    }
}
