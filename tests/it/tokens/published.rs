//! Keys that an identity provider publishes, and what comes between.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{ED, ES, claims, status, until};
use crate::support::{App, Database, Service, serve_args};

/// Answers every request with what it was last told to.
struct Provider {
    url: String,
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<String>>,
}

impl Provider {
    async fn start(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::default(), Arc::new(Mutex::new(answer)));
        let (count, say) = (Arc::<AtomicUsize>::clone(&asked), Arc::clone(&answer));
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = say.lock().unwrap().clone();
                tokio::spawn(async move {
                    let mut head = [0; 4_096];
                    let _ = connection.read(&mut head).await;
                    if answer.is_empty() {
                        // It hangs.
                        std::future::pending::<()>().await;
                    }
                    let _ = connection.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { url, asked, answer }
    }

    fn say(&self, answer: String) {
        *self.answer.lock().unwrap() = answer;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn until_asked(&self, times: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.asked() < times {
            assert!(Instant::now() < deadline, "asked {} times", self.asked());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// A set of keys with these ids.
fn set(keys: &[(&str, &EncodingKey, Algorithm)]) -> String {
    let keys = keys.iter().map(|(id, key, algorithm)| {
        let mut jwk = Jwk::from_encoding_key(key, *algorithm).unwrap();
        jwk.common.key_id = Some((*id).to_owned());
        json!(jwk)
    });
    let keys: Vec<Value> = keys.collect();
    answer("200 OK", &json!({ "keys": keys }).to_string())
}

fn token(id: Option<&str>, key: &EncodingKey, algorithm: Algorithm) -> String {
    let mut header = Header::new(algorithm);
    header.kid = id.map(str::to_owned);
    encode(&header, &claims(), key).unwrap()
}

fn keys() -> (EncodingKey, EncodingKey) {
    let es = EncodingKey::from_ec_pem(ES).unwrap();
    (es, EncodingKey::from_ed_pem(ED).unwrap())
}

#[tokio::test]
async fn a_key_that_is_published_later_is_fetched_once_a_token_names_it() {
    let database = Database::new().await;
    let (es, ed) = keys();
    let provider = Provider::start(set(&[("one", &es, Algorithm::ES256)])).await;
    // Nothing but a token that names the key has it fetched in time.
    let flags = ["--jwks-url", &provider.url, "--jwks-refresh", "1h"];
    let app = App::spawn_with(&database, &flags).await;
    let one = token(Some("one"), &es, Algorithm::ES256);
    let two = token(Some("two"), &ed, Algorithm::EdDSA);
    assert_eq!(
        status(&app, &one).await,
        200,
        "fetched before the first answer"
    );
    assert_eq!(status(&app, &token(None, &es, Algorithm::ES256)).await, 200);
    let forged = token(
        Some("one"),
        &EncodingKey::from_ec_pem(&other_es()).unwrap(),
        Algorithm::ES256,
    );
    assert_eq!(status(&app, &forged).await, 401);
    assert_eq!(
        status(&app, &two).await,
        401,
        "the set is fresh and has it not"
    );

    provider.say(set(&[
        ("one", &es, Algorithm::ES256),
        ("two", &ed, Algorithm::EdDSA),
    ]));

    until(&app, &two, 200).await;
    assert_eq!(status(&app, &one).await, 200);
    assert_eq!(provider.asked(), 2);
    app.stop().await;
}

/// A private key that nobody published.
fn other_es() -> Vec<u8> {
    include_bytes!("../keys/es256-other.pem").to_vec()
}

#[tokio::test]
async fn a_flood_of_unknown_keys_asks_the_provider_no_more_than_one_does() {
    let database = Database::new().await;
    let (es, _) = keys();
    let provider = Provider::start(set(&[("one", &es, Algorithm::ES256)])).await;
    let flags = ["--jwks-url", &provider.url, "--jwks-refresh", "2s"];
    let app = App::spawn_with(&database, &flags).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        let bogus = format!("bogus-{}", rand::random::<u64>());
        let refused = status(&app, &token(Some(&bogus), &es, Algorithm::ES256)).await;
        assert!([401, 503].contains(&refused), "{refused}");
        assert_eq!(
            status(&app, &token(Some("one"), &es, Algorithm::ES256)).await,
            200
        );
    }
    assert!((2..=4).contains(&provider.asked()), "{}", provider.asked());
    app.stop().await;
}

#[tokio::test]
async fn a_provider_that_is_away_keeps_no_service_from_starting() {
    let database = Database::new().await;
    let (es, _) = keys();
    let provider = Provider::start(answer("500 Internal Server Error", "")).await;
    let flags = ["--jwks-url", &provider.url, "--jwks-refresh", "1s"];
    let app = App::spawn_with(&database, &flags).await;
    let genuine = token(Some("one"), &es, Algorithm::ES256);
    let request = app.client.get(format!("{}/rooms/r/participants", app.url));
    let waits = request.bearer_auth(&genuine).send().await.unwrap();
    assert_eq!(waits.status(), 503);
    assert!(waits.headers().contains_key("retry-after"));
    assert_eq!(status(&app, "nonsense").await, 401);
    assert_eq!(app.get("/healthz").await.status(), 200);

    provider.say(set(&[("one", &es, Algorithm::ES256)]));

    until(&app, &genuine, 200).await;
    app.stop().await;
}

#[tokio::test]
async fn keys_hold_on_while_what_is_published_cannot_be_used() {
    let database = Database::new().await;
    let (es, ed) = keys();
    let provider = Provider::start(set(&[("one", &es, Algorithm::ES256)])).await;
    let flags = ["--jwks-url", &provider.url, "--jwks-refresh", "1s"];
    let app = App::spawn_with(&database, &flags).await;
    let one = token(Some("one"), &es, Algorithm::ES256);
    let large = format!("{{\"keys\":[],\"x\":\"{}\"}}", "x".repeat(300_000));
    for useless in [
        answer("200 OK", "{\"keys\":[]}"),
        answer("200 OK", "<html>"),
        answer("404 Not Found", ""),
        answer("200 OK", &large),
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            provider.url
        ),
        // Closes in the middle.
        "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\nconnection: close\r\n\r\n{".to_owned(),
    ] {
        provider.say(useless);
        let asked = provider.asked();
        provider.until_asked(asked + 2).await;
        assert_eq!(status(&app, &one).await, 200);
    }

    provider.say(set(&[("two", &ed, Algorithm::EdDSA)]));

    until(&app, &token(Some("two"), &ed, Algorithm::EdDSA), 200).await;
    assert_ne!(
        status(&app, &one).await,
        200,
        "what is no longer published does not hold"
    );
    app.stop().await;
}

#[tokio::test]
async fn a_provider_that_hangs_delays_nobody() {
    let database = Database::new().await;
    let (es, _) = keys();
    let provider = Provider::start(set(&[("one", &es, Algorithm::ES256)])).await;
    let flags = ["--jwks-url", &provider.url, "--jwks-refresh", "1s"];
    let app = App::spawn_with(&database, &flags).await;
    provider.say(String::new());
    provider.until_asked(2).await;
    let began = Instant::now();
    for id in ["one", "unknown"] {
        status(&app, &token(Some(id), &es, Algorithm::ES256)).await;
    }
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    app.stop().await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "nor the end of the service"
    );
}

#[test]
fn an_address_that_is_none_is_refused() {
    use clap::Parser;
    use leasehold::cli::Cli;
    for wrong in [
        "",
        "id.example/jwks.json",
        "file:///etc/passwd",
        "ftp://id.example/x",
    ] {
        let flags = [
            "leasehold",
            "serve",
            "--database-url=postgres://x/y",
            "--jwks-url",
            wrong,
        ];
        let error = Cli::try_parse_from(flags).unwrap_err().to_string();
        assert!(error.contains("LEASEHOLD_JWKS_URL"), "{error}");
    }
    assert!(serve_args(&[]).auth.settings().tokens.published.is_none());
}

#[tokio::test]
async fn the_log_says_at_the_start_what_is_left_open() {
    let database = Database::new().await;
    let (es, _) = keys();
    let provider = Provider::start(set(&[("one", &es, Algorithm::ES256)])).await;
    let url = ["--jwks-url", &provider.url];
    let open = Service::serve(&database.url(), &url).await;
    let closed = [&url[..], &["--jwt-audience", "presence"]].concat();
    let closed = Service::serve(&database.url(), &closed).await;
    let warns = |service: &Service| service.said().contains("set LEASEHOLD_JWT_AUDIENCE");
    assert!(warns(&open) && !warns(&closed), "{}", closed.said());
    assert!(closed.said().contains("LEASEHOLD_JWKS_URL is not https"));

    // It hangs, and the service ends all the same.
    provider.say(String::new());
    let request = open
        .client
        .get(format!("{}/rooms/r/participants", open.url));
    let unknown = token(Some("two"), &es, Algorithm::ES256);
    request.bearer_auth(unknown).send().await.unwrap();
    open.stop(Signal::TERM).await;
    closed.stop(Signal::TERM).await;
}
