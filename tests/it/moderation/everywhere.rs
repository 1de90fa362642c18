//! Out of all rooms at once, also against joins that are under way.

use serde_json::{Value, json};

use super::super::support::race::{Side, at, join_sql, lock_room};
use super::super::support::{App, Database};

fn expel(block_ms: &str, ms: i64) -> String {
    format!(
        "select sessions_ended from leasehold.remove_user('alice', {block_ms}, 'mod', p_now => {})",
        at(ms)
    )
}

fn join_of(room: &str, user: &str, ms: i64) -> String {
    join_sql(user, ms).replace("'r'", &format!("'{room}'"))
}

#[tokio::test]
async fn everywhere_means_every_room_and_device_and_nobody_else() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for room in ["a", "b", "c"] {
        app.join(room, "alice").await;
        app.join(room, "bob").await;
    }
    let phone = json!({ "userId": "alice", "deviceId": "phone" });
    app.post("/rooms/a/join", phone).await;

    let gone = app
        .delete("/users/alice/sessions?blockForMs=60000&by=mod")
        .await;
    assert_eq!(gone.status(), 204);

    for room in ["a", "b", "c"] {
        let list = app.participants(room).await;
        assert_eq!(list["participants"].as_array().unwrap().len(), 1);
        let refused = app
            .post(&format!("/rooms/{room}/join"), json!({ "userId": "alice" }))
            .await;
        assert_eq!(refused.status(), 403);
    }
    let elsewhere = app
        .post("/rooms/new/join", json!({ "userId": "alice" }))
        .await;
    let body: Value = elsewhere.json().await.unwrap();
    assert_eq!(body["code"], "blocked");
    let sessions: Value = app.get("/users/alice/sessions").await.json().await.unwrap();
    for session in sessions["sessions"].as_array().unwrap() {
        assert_eq!(session["endReason"], "removed");
        assert_eq!(session["by"], "mod");
        assert!(session["lastSeenMs"].is_i64());
    }

    assert_eq!(
        app.delete("/users/alice/sessions?blockForMs=0")
            .await
            .status(),
        204
    );
    app.join("new", "alice").await;
    database.verify().await;
}

#[tokio::test]
async fn a_join_in_flight_is_waited_for_and_ended() {
    let database = Database::new().await;
    let mut joining = Side::holding(&database, join_of("new", "alice", 0)).await;
    let expelling = Side::new(&database).await.waits(expel("null", 10)).await;
    joining.run("commit").await;

    assert_eq!(expelling.word().await, "1");
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_comes_meanwhile_waits_and_finds_the_block() {
    let database = Database::new().await;
    let mut expelling = Side::holding(&database, expel("1000", 0)).await;
    let joining = Side::new(&database)
        .await
        .waits(join_of("new", "alice", 10))
        .await;
    expelling.run("commit").await;

    assert_eq!(joining.word().await, "blocked");
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn who_expels_and_who_joins_again_do_not_wait_in_a_circle() {
    let database = Database::new().await;
    Side::new(&database)
        .await
        .run(join_of("r", "alice", 0))
        .await;
    // Holds the room that the other needs, and then comes for the user that the other holds.
    let mut joining = Side::holding(&database, lock_room("r")).await;
    let expelling = Side::new(&database).await.waits(expel("null", 10)).await;
    let again = joining.answer_of(join_of("r", "alice", 20)).await;
    let expelled = match again {
        Ok(words) => {
            assert_eq!(words, ["joined 2 1"]);
            joining.run("commit").await;
            expelling.answer().await
        }
        // Postgres chose it to give way.
        Err(_) => {
            joining.run("rollback").await;
            expelling.answer().await
        }
    };
    // One of the two was told to try again; what is left is whole.
    let _ = expelled;
    database.verify().await;
}

#[tokio::test]
async fn a_transaction_that_holds_a_join_open_delays_an_expulsion_and_no_other_join() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms", "1000"]).await;
    let held = Side::holding(&database, join_of("held", "alice", 0)).await;
    let expelling = app.delete("/users/alice/sessions");
    let others = async {
        for user in 0..40 {
            app.join("free", &format!("user-{user}")).await;
        }
    };
    let (expelled, ()) = tokio::join!(expelling, others);
    assert_eq!(expelled.status(), 503);
    drop(held);
    assert_eq!(app.delete("/users/alice/sessions").await.status(), 204);
    database.verify().await;
}
