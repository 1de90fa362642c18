//! What is under way when its client goes away or the service stops.

use std::time::Duration;

use leasehold::access::Scope;
use leasehold::coalesce;
use leasehold::domain::JoinLimits;
use leasehold::presence::{Presence, PresenceSettings, PulseSettings};
use leasehold::telemetry::Metrics;
use leasehold::wake::Wakes;
use serde_json::{Value, json};
use sqlx::raw_sql;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::support::{App, Database, SECRET, Socket, join, mint, serve_args};

#[tokio::test]
async fn a_join_in_flight_on_a_socket_that_ends_is_reported_lost() {
    let database = Database::new().await;
    let flags = [
        "--timeout-ms",
        "20s",
        "--jwt-hs256-secret",
        SECRET,
        "--jwt-leeway",
        "0",
    ];
    let app = App::spawn_with(&database, &flags).await;
    let token = |user: &str, seconds| {
        let rooms = Some(vec!["r".to_owned()]);
        mint(
            &SECRET.into(),
            user.to_owned(),
            rooms,
            Scope::Member,
            seconds,
        )
        .unwrap()
    };
    let bob = token("bob", 600);
    let ask = async || -> Value {
        let list = app.client.get(format!("{}/rooms/r/participants", app.url));
        let list = list.bearer_auth(&bob).send().await.unwrap();
        list.json().await.unwrap()
    };
    let body = json!({ "userId": "bob", "leaseMs": 300_000 });
    let joining = app.client.post(format!("{}/rooms/r/join", app.url));
    let joined = joining.bearer_auth(&bob).json(&body).send().await.unwrap();
    assert_eq!(joined.status(), 200);
    let mut holder = database.connect().await;
    raw_sql("begin; select from leasehold.rooms where room_id = 'r' for update")
        .execute(&mut holder)
        .await
        .unwrap();
    // The socket ends with its token, while the join waits for the room.
    let alice = token("alice", 2);
    let address = format!("{}/rooms/r/socket?access_token={alice}", app.url);
    let mut socket = Socket::connect(&address).await;
    socket
        .send(json!({ "type": "join", "userId": "alice", "leaseMs": 300_000 }))
        .await;
    database.until_waiting_for_locks(1).await;
    sleep(Duration::from_millis(2_500)).await;

    raw_sql("commit").execute(&mut holder).await.unwrap();

    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let list = ask().await;
        let mut members = list["participants"].as_array().unwrap().iter();
        match members.find(|member| member["userId"] == "alice") {
            Some(alice) if alice["status"] == "reconnecting" => break,
            _ => assert!(Instant::now() < deadline, "{list}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(socket.closed().await, 1008);
    database.verify().await;
}

#[tokio::test]
async fn a_join_whose_caller_gave_up_is_finished_before_the_service_ends() {
    let database = Database::new().await;
    let mut tasks = JoinSet::new();
    let settings = PresenceSettings {
        limits: JoinLimits::default(),
        coalescing: coalesce::Settings {
            lanes: 4,
            max_batch: 500,
            queue: 100,
            timeout: Duration::from_secs(20),
        },
        held_rows: 2,
        pulse: PulseSettings {
            leases: serve_args(&[]).leases.rules().unwrap(),
            max_pause: Duration::ZERO,
        },
    };
    let presence = Presence::start(
        &database.store,
        settings,
        &Wakes::default(),
        &Metrics::new().unwrap(),
        &mut tasks,
    );
    // Nobody holds the room, and still the join cannot be written.
    let mut holder = database.connect().await;
    raw_sql("begin; lock table leasehold.membership_events in share mode")
        .execute(&mut holder)
        .await
        .unwrap();
    let asking = presence.join(join("r", "alice"));
    let asked = timeout(Duration::from_millis(300), asking).await;
    assert!(asked.is_err(), "the caller gives up");
    drop(presence);

    let releasing = async {
        sleep(Duration::from_millis(300)).await;
        raw_sql("commit").execute(&mut holder).await.unwrap();
    };
    tokio::join!(tasks.join_all(), releasing);

    assert_eq!(database.rows().await, (1, 1));
    database.verify().await;
}
