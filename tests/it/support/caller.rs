//! Somebody with a credential, and what they are answered.

use leasehold::access::Scope;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::Value;

use super::{App, Database, Events, SECRET, Socket, mint};

/// An answer, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

/// Who asks with a credential.
pub struct Caller<'a> {
    app: &'a App,
    credential: String,
}

/// A service that asks for credentials.
pub async fn guarded(database: &Database, flags: &[&str]) -> App {
    let ours = [
        "--jwt-hs256-secret",
        SECRET,
        "--server-keys",
        "a-server-key",
    ];
    App::spawn_with(database, &[&ours, flags].concat()).await
}

impl<'a> Caller<'a> {
    /// Of all rooms whose id begins with `r`.
    pub fn new(app: &'a App, subject: &str, scope: Scope) -> Self {
        let rooms = Some(vec!["r*".to_owned()]);
        let token = mint(&SECRET.into(), subject.to_owned(), rooms, scope, 600).unwrap();
        Self::with(app, token)
    }

    pub fn server(app: &'a App) -> Self {
        Self::with(app, "a-server-key".to_owned())
    }

    pub fn with(app: &'a App, credential: String) -> Self {
        Self { app, credential }
    }

    pub async fn ask(&self, method: Method, path: &str, body: Value) -> Reply {
        let mut request = self
            .app
            .client
            .request(method, format!("{}{path}", self.app.url))
            .bearer_auth(&self.credential);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.json().await.unwrap_or(Value::Null),
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path, Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.ask(Method::POST, path, body).await
    }

    pub async fn put(&self, path: &str) -> Reply {
        self.ask(Method::PUT, path, Value::Null).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.ask(Method::DELETE, path, Value::Null).await
    }

    /// An answer that goes on.
    pub async fn open(&self, path: &str) -> Response {
        let request = self.app.client.get(format!("{}{path}", self.app.url));
        request.bearer_auth(&self.credential).send().await.unwrap()
    }

    /// A subscriber of the room; its first event is the snapshot.
    pub async fn events(&self, room: &str) -> Events {
        Events::of(self.open(&format!("/rooms/{room}/events")).await)
    }

    /// The same over a WebSocket.
    pub async fn socket(&self, room: &str) -> Socket {
        let token = &self.credential;
        let url = &self.app.url;
        Socket::connect(&format!("{url}/rooms/{room}/socket?access_token={token}")).await
    }
}

impl Reply {
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}
