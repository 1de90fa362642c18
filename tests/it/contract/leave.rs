//! `POST /rooms/{roomId}/leave`

use serde_json::json;

use super::{accepted, refused, stale};
use crate::support::{App, Database};

#[tokio::test]
async fn a_leave_ends_the_session_and_the_room_that_it_empties() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    app.join("r", "bob").await;

    accepted(app.leave("r", "alice", 1).await).await;
    assert_eq!(database.rows().await, (1, 1));
    accepted(app.leave("r", "bob", 1).await).await;
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn a_leave_that_is_stale_or_unknown_is_accepted_and_changes_nothing() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    app.join("r", "alice").await;
    let before = database.digest().await;

    accepted(app.leave("r", "alice", 1).await).await;
    accepted(app.leave("r", "alice", 0).await).await;
    accepted(app.leave("r", "alice", i64::MAX).await).await;
    accepted(app.leave("r", "nobody", 1).await).await;
    accepted(app.leave("nowhere", "alice", 2).await).await;
    let other_device = json!({ "userId": "alice", "epoch": 2, "deviceId": "phone" });
    accepted(app.post("/rooms/r/leave", other_device).await).await;

    assert_eq!(database.digest().await, before);
    accepted(app.heartbeat("r", "alice", 2).await).await;
    database.verify().await;
}

#[tokio::test]
async fn a_leave_of_one_device_leaves_the_person_on_the_other() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let phone = json!({ "userId": "alice", "deviceId": "phone" });
    app.post("/rooms/r/join", phone).await;

    accepted(app.leave("r", "alice", 1).await).await;

    let listed = app.participants("r").await;
    assert_eq!(listed["participants"][0]["epoch"], 2);
    stale(app.heartbeat("r", "alice", 1).await, "left").await;
    database.verify().await;
}

#[tokio::test]
async fn a_page_that_unloads_may_send_its_leave_as_text() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let labels = [
        Some("text/plain"),
        Some("text/plain;charset=UTF-8"),
        Some("application/json; charset=utf-8"),
        None,
    ];
    for (epoch, label) in (1..).zip(labels) {
        app.join("r", "alice").await;
        let mut request = app
            .client
            .post(format!("{}/rooms/r/leave", app.url))
            .body(format!(r#"{{"userId":"alice","epoch":{epoch}}}"#));
        if let Some(label) = label {
            request = request.header("content-type", label);
        }
        accepted(request.send().await.unwrap()).await;
        assert_eq!(database.rows().await, (0, 0), "{label:?}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_leave_that_is_not_well_formed_is_refused() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for body in [
        json!({}),
        json!({ "userId": "alice" }),
        json!({ "epoch": 1 }),
        json!({ "userId": "alice", "epoch": "1" }),
    ] {
        let response = app.post("/rooms/r/leave", body).await;
        refused(response, 400, "invalid_request").await;
    }
}
