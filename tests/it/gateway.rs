//! Many heartbeats or leaves in one call, each with its own outcome.

use serde_json::{Value, json};

use super::support::{App, Database};

async fn results(app: &App, path: &str, body: Value) -> Value {
    let response = app.post(path, body).await;
    assert_eq!(response.status(), 200);
    response.json::<Value>().await.unwrap()["results"].clone()
}

#[tokio::test]
async fn each_item_of_a_batch_has_its_own_outcome_in_order() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("a", "alice").await;
    app.join("b", "bob").await;
    app.join("b", "bob").await;

    let items = json!([
        { "roomId": "a", "userId": "alice", "epoch": 1, "cursor": { "line": 3 } },
        { "roomId": "b", "userId": "bob", "epoch": 1 },
        { "roomId": "b", "userId": "bob" },
        { "roomId": "b", "userId": "bob", "epoch": "x" },
        { "roomId": "", "userId": "bob", "epoch": 1 },
        7,
        { "roomId": "b", "userId": "bob", "epoch": 2, "cursor": null },
    ]);
    let found = results(&app, "/heartbeats", json!({ "heartbeats": items })).await;

    let statuses: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["status"].clone())
        .collect();
    assert_eq!(statuses, [204, 409, 400, 400, 400, 400, 204]);
    assert_eq!(found[0], json!({ "status": 204 }));
    assert_eq!(found[1]["code"], "superseded");
    assert_eq!(found[2]["error"], "epoch is required");
    let list = app.participants("a").await;
    assert_eq!(list["participants"][0]["cursor"], json!({ "line": 3 }));
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn a_batch_of_leaves_ends_what_is_current_and_answers_the_rest_as_a_leave_does() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("a", "alice").await;
    app.join("b", "bob").await;
    app.join("b", "bob").await;

    let items = json!([
        { "roomId": "a", "userId": "alice", "epoch": 1 },
        { "roomId": "b", "userId": "bob", "epoch": 1 },
        { "userId": "bob", "epoch": 1 },
    ]);
    let found = results(&app, "/leaves", json!({ "leaves": items })).await;

    let statuses: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["status"].clone())
        .collect();
    assert_eq!(statuses, [204, 204, 400]);
    assert_eq!(app.get("/rooms/a").await.status(), 404);
    assert_eq!(app.get("/rooms/b").await.status(), 200);
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn a_thousand_heartbeats_fit_in_one_call_and_one_more_does_not() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let item =
        json!({ "roomId": "r", "userId": "alice", "epoch": 1, "cursor": { "x": "é".repeat(500) } });

    let found = results(
        &app,
        "/heartbeats",
        json!({ "heartbeats": vec![item.clone(); 1_000] }),
    )
    .await;
    assert!(found.as_array().unwrap().iter().all(|r| r["status"] == 204));

    let over = app
        .post("/heartbeats", json!({ "heartbeats": vec![item; 1_001] }))
        .await;
    assert_eq!(over.status(), 400);
    assert_eq!(
        over.json::<Value>().await.unwrap()["code"],
        "batch_too_large"
    );
    app.stop().await;
    database.verify().await;
}
