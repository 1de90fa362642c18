//! Webhooks are for admins of all rooms.

use leasehold::access::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use super::SECRET;
use crate::support::{Caller, Database, guarded, mint};

#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_of_all_rooms_has_to_do_with_webhooks() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let body = json!({ "url": "https://hooks.example.com/", "secret": SECRET });
    let requests = [
        (Method::PUT, "/webhooks/hook", &body),
        (Method::GET, "/webhooks/hook", &Value::Null),
        (Method::GET, "/webhooks", &Value::Null),
        (Method::POST, "/webhooks/hook/disable", &Value::Null),
        (Method::POST, "/webhooks/hook/resume", &Value::Null),
        (Method::DELETE, "/webhooks/hook", &Value::Null),
    ];
    let secret = crate::support::SECRET.into();
    let everywhere = mint(&secret, "root".to_owned(), None, Scope::Admin, 600).unwrap();
    for (caller, may) in [
        (Caller::new(&app, "alice", Scope::Member), false),
        (Caller::new(&app, "alice", Scope::Observer), false),
        // Of some rooms.
        (Caller::new(&app, "alice", Scope::Admin), false),
        (Caller::with(&app, "nobody".to_owned()), false),
        (Caller::with(&app, everywhere), true),
        (Caller::server(&app), true),
    ] {
        for (method, path, body) in &requests {
            let reply = caller.ask(method.clone(), path, (*body).clone()).await;
            let is_let = !matches!(reply.status, 401 | 403);
            assert_eq!(is_let, may, "{method} {path}: {reply:?}");
            assert!(!may || reply.status < 300, "{method} {path}: {reply:?}");
        }
    }
    database.verify().await;
}
