//! What is under way when its client goes away or the service stops.

use std::time::Duration;

use serde_json::json;
use sqlx::raw_sql;
use tokio::time::{Instant, sleep, timeout};

use super::support::{App, Database};

#[tokio::test]
async fn a_join_in_flight_on_a_socket_that_closes_is_reported_lost() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms", "20s"]).await;
    app.join("r", "bob").await;
    let mut holder = database.connect().await;
    raw_sql("begin; select from leasehold.rooms where room_id = 'r' for update")
        .execute(&mut holder)
        .await
        .unwrap();
    let mut socket = app.socket("r").await;
    socket
        .send(json!({ "type": "join", "userId": "alice" }))
        .await;
    database.until_waiting_for_locks(1).await;
    drop(socket);
    sleep(Duration::from_millis(100)).await;

    raw_sql("commit").execute(&mut holder).await.unwrap();

    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let list = app.participants("r").await;
        let alice = list["participants"]
            .as_array()
            .unwrap()
            .iter()
            .find(|member| member["userId"] == "alice");
        match alice {
            Some(alice) if alice["status"] == "reconnecting" => break,
            _ => assert!(Instant::now() < deadline, "{list}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
    database.verify().await;
}

#[tokio::test]
async fn a_join_whose_caller_gave_up_is_finished_before_the_process_ends() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--timeout-ms", "20s"]).await;
    app.join("r", "bob").await;
    // Nobody holds the room, and still the join cannot be written.
    let mut holder = database.connect().await;
    raw_sql("begin; lock table leasehold.membership_events in share mode")
        .execute(&mut holder)
        .await
        .unwrap();
    let body = json!({ "userId": "alice" });
    let asked = timeout(Duration::from_millis(300), app.post("/rooms/r/join", body));
    assert!(asked.await.is_err(), "the caller gives up");

    let releasing = async {
        sleep(Duration::from_millis(300)).await;
        raw_sql("commit").execute(&mut holder).await.unwrap();
    };
    tokio::join!(app.stop(), releasing);

    assert_eq!(database.rows().await, (1, 2));
    database.verify().await;
}
