//! What a join says that its member cannot say of itself.

use std::time::Duration;

use leasehold::access::Scope;
use leasehold::http::auth::{self, NewToken};
use serde_json::{Value, json};

use super::super::support::{App, Caller, Database, SECRET, guarded};

fn token(subject: &str, scope: Scope, info: Option<Value>, max_members: Option<i32>) -> String {
    let token = NewToken {
        subject: subject.to_owned(),
        room_ids: vec!["r".to_owned()],
        room_prefixes: Vec::new(),
        scope,
        info: info.and_then(|info| info.as_object().cloned()),
        max_members,
        audience: None,
        issuer: None,
        lifetime: Duration::from_secs(600),
    };
    auth::mint(&SECRET.into(), &token).unwrap()
}

#[tokio::test]
async fn what_the_token_says_of_its_holder_is_shown_and_nobody_else_can_say_it() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let info = json!({ "role": "teacher" });
    let alice = token("alice", Scope::Member, Some(info.clone()), None);
    let alice = Caller::with(&app, alice);
    let body = json!({ "userId": "alice", "metadata": { "role": "student" } });
    let joined = alice.post("/rooms/r/join", body).await;
    assert_eq!(joined.body["info"], info);
    let person = alice.get("/rooms/r/participants").await.body["participants"][0].clone();
    assert_eq!(person["info"], info);
    assert_eq!(person["metadata"], json!({ "role": "student" }));

    for extra in [
        json!({ "info": { "role": "root" } }),
        json!({ "maxMembers": 9 }),
    ] {
        let mut body = json!({ "userId": "bob" });
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let bob = Caller::with(&app, token("bob", Scope::Member, None, None));
        let refused = bob.post("/rooms/r/join", body).await;
        assert_eq!(refused.code(), "forbidden", "{extra}");
    }
    // An admin lets somebody else in: what the token says is not about them.
    let admin = token("mod", Scope::Admin, Some(json!({ "role": "mod" })), None);
    let admin = Caller::with(&app, admin);
    let joined = admin
        .post("/rooms/r/join", json!({ "userId": "carol" }))
        .await;
    assert_eq!((joined.status, &joined.body["info"]), (200, &Value::Null));
    database.verify().await;
}

#[tokio::test]
async fn a_server_key_passes_it_in_the_join_and_a_later_join_without_it_has_none() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let server = Caller::server(&app);
    let body = json!({ "userId": "alice", "info": { "plan": "pro" } });
    let joined = server.post("/rooms/r/join", body).await;
    assert_eq!(joined.body["info"], json!({ "plan": "pro" }));
    server
        .post("/rooms/r/join", json!({ "userId": "alice" }))
        .await;
    let list = server.get("/rooms/r/participants").await.body;
    assert_eq!(list["participants"][0]["info"], Value::Null);
    for info in [json!("text"), json!({ "x": "y".repeat(4_096) }), json!([1])] {
        let body = json!({ "userId": "alice", "info": info });
        let refused = server.post("/rooms/r/join", body).await;
        assert_eq!(refused.code(), "invalid_request");
    }
}

#[tokio::test]
async fn a_join_may_have_a_capacity_of_its_own() {
    let database = Database::new().await;
    let app = guarded(&database, &["--max-members-per-room", "3"]).await;
    let server = Caller::server(&app);
    let join = async |user: &str, capacity: Option<i64>| {
        let body = json!({ "userId": user, "maxMembers": capacity });
        let reply = server.post("/rooms/r/join", body).await;
        format!("{} {}", reply.status, reply.code())
    };
    assert_eq!(join("a", Some(1)).await, "200 ");
    assert_eq!(join("b", Some(1)).await, "409 room_full");
    assert_eq!(
        join("a", Some(1)).await,
        "200 ",
        "who is inside has a place"
    );
    assert_eq!(join("b", None).await, "200 ");
    assert_eq!(join("c", Some(9)).await, "200 ");
    assert_eq!(
        join("d", Some(9)).await,
        "409 room_full",
        "the server's limit"
    );
    for capacity in [0, -1, i64::MAX] {
        assert_eq!(join("e", Some(capacity)).await, "400 invalid_request");
    }
    let member = Caller::with(&app, token("d", Scope::Member, None, Some(2)));
    let refused = member.post("/rooms/r/join", json!({ "userId": "d" })).await;
    assert_eq!(refused.code(), "room_full");
    database.verify().await;
}

#[tokio::test]
async fn without_authentication_everybody_may_pass_it() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let body = json!({ "userId": "alice", "info": { "a": 1 }, "maxMembers": 1 });
    assert_eq!(app.post("/rooms/r/join", body).await.status(), 200);
}
