//! A join whose answer was lost is asked again.

use serde_json::{Value, json};

use super::super::support::race::{Side, at};
use super::super::support::{App, Database};

async fn join(app: &App, id: &str) -> (u16, Value) {
    let body = json!({ "userId": "alice", "joinId": id });
    let response = app.post("/rooms/r/join", body).await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

#[tokio::test]
async fn the_same_join_twice_is_one_and_another_is_another() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let (_, first) = join(&app, "one").await;
    let (status, again) = join(&app, "one").await;
    assert_eq!((status, &again["epoch"]), (200, &first["epoch"]));
    assert!(again["expiresAtMs"].as_i64() >= first["expiresAtMs"].as_i64());
    let room: Value = app.get("/rooms/r").await.json().await.unwrap();
    assert_eq!(room["version"], 1, "asking again is no change");

    assert_eq!(join(&app, "two").await.1["epoch"], 2);
    let (status, stale) = join(&app, "one").await;
    assert_eq!((status, &stale["code"]), (409, &json!("superseded")));
    assert_eq!(app.heartbeat("r", "alice", 2).await.status(), 204);
    app.leave("r", "alice", 2).await;
    assert_eq!(join(&app, "two").await.1["code"], "left");
    assert_eq!(join(&app, "three").await.1["epoch"], 3);
    database.verify().await;
}

#[tokio::test]
async fn both_at_once_are_one_whoever_is_first() {
    let database = Database::new().await;
    let sql = |ms| {
        format!(
            "select concat_ws(' ', outcome, epoch)
               from leasehold.join_member('r', 'alice', p_join_id => 'one', p_now => {})",
            at(ms)
        )
    };
    let mut first = Side::holding(&database, sql(0)).await;
    let second = Side::new(&database).await.waits(sql(10)).await;
    first.run("commit").await;
    assert_eq!(second.word().await, "joined 1");
    database.verify().await;
}

#[tokio::test]
async fn asking_again_is_a_sign_of_life_but_does_not_raise_the_dead() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    let mut ask = async |ms| {
        let sql = format!(
            "select concat_ws(' ', outcome, epoch)
               from leasehold.join_member('r', 'alice', p_join_id => 'one', p_now => {})",
            at(ms)
        );
        side.run(sql).await.swap_remove(0)
    };
    assert_eq!(ask(0).await, "joined 1");
    assert_eq!(ask(15_000).await, "joined 1");
    assert_eq!(ask(30_000).await, "joined 1");
    assert_eq!(ask(45_001).await, "expired");
    database.verify().await;
}

#[tokio::test]
async fn a_join_id_is_an_id() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for id in ["", "a\nb", &"x".repeat(257)] {
        let (status, body) = join(&app, id).await;
        assert_eq!((status, &body["code"]), (400, &json!("invalid_request")));
    }
}
