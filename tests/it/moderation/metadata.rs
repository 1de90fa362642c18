//! What others are shown of a member, changed by somebody else.

use leasehold::access::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use super::super::support::race::{Side, at, join_sql};
use super::super::support::{App, Caller, Database, guarded};

async fn patch(app: &App, body: Value) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let path = "/rooms/r/participants/alice";
    let response = app
        .send(Method::PATCH, path, &headers, body.to_string())
        .await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or(Value::Null))
}

#[tokio::test]
async fn metadata_is_replaced_and_no_lease_renewed() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let before = app.participants("r").await["participants"][0].clone();
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    let (status, _) = patch(&app, json!({ "metadata": { "hand": "down" } })).await;
    assert_eq!(status, 204);

    let updated = events.expect("updated").await.data;
    assert_eq!(
        updated["participant"]["metadata"],
        json!({ "hand": "down" })
    );
    assert_eq!(updated["memberCount"], 1);
    let after = app.participants("r").await["participants"][0].clone();
    for field in ["epoch", "lastSeenMs", "expiresAtMs"] {
        assert_eq!(before[field], after[field], "{field}");
    }
    assert_eq!(patch(&app, json!({ "metadata": null })).await.0, 204);
    let cleared = app.participants("r").await;
    assert_eq!(cleared["participants"][0]["metadata"], Value::Null);
    database.verify().await;
}

#[tokio::test]
async fn of_several_devices_the_newest_is_changed_or_the_one_that_is_named() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for device in ["phone", "desk"] {
        let body = json!({ "userId": "alice", "deviceId": device });
        app.post("/rooms/r/join", body).await;
    }
    patch(&app, json!({ "metadata": { "n": 2 } })).await;
    patch(&app, json!({ "metadata": { "n": 1 }, "epoch": 1 })).await;
    let list = app.participants("r").await;
    let devices = &list["participants"][0]["devices"];
    assert_eq!(devices[0]["metadata"], json!({ "n": 2 }));
    assert_eq!(devices[1]["metadata"], json!({ "n": 1 }));
    let (status, body) = patch(&app, json!({ "metadata": {}, "epoch": 7 })).await;
    assert_eq!((status, &body["code"]), (409, &json!("unknown_session")));
}

#[tokio::test]
async fn who_is_not_there_has_none_and_a_body_that_cannot_be_is_refused() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let (status, body) = patch(&app, json!({ "metadata": {} })).await;
    assert_eq!((status, &body["code"]), (404, &json!("member_not_found")));
    app.join("r", "alice").await;
    for body in [
        json!({}),
        json!({ "metadata": 1 }),
        json!({ "metadata": {}, "epoch": -1 }),
    ] {
        assert_eq!(patch(&app, body.clone()).await.0, 400, "{body}");
    }
}

#[tokio::test]
async fn a_lease_that_is_over_is_not_brought_back_by_it() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    side.run(join_sql("alice", 0)).await;
    let change = |ms| {
        format!(
            "select outcome from leasehold.set_metadata('r', 'alice', '{{}}', p_now => {})",
            at(ms)
        )
    };
    assert_eq!(side.run(change(15_000)).await, ["changed"]);
    assert_eq!(side.run(change(15_001)).await, ["absent"]);
    assert_eq!(side.run(join_sql("alice", 15_001)).await, ["joined 2 2"]);
    database.verify().await;
}

#[tokio::test]
async fn a_member_does_not_change_it_this_way() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    let member = Caller::new(&app, "alice", Scope::Member);
    let body = json!({ "metadata": { "name": "Moderator" } });
    let path = "/rooms/r/participants/alice";
    let refused = member.ask(Method::PATCH, path, body).await;
    assert_eq!(refused.code(), "forbidden");
}
