//! `GET /rooms/{roomId}/participants` and `GET /rooms/{roomId}`

use serde_json::{Value, json};

use super::{accepted, fields, int, refused};
use crate::support::{App, Database};

fn users(listed: &Value) -> Vec<&str> {
    listed["participants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["userId"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_list_has_one_entry_a_person_in_order_of_arrival() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for user in ["zoe", "alice", "bob"] {
        app.join("r", user).await;
    }
    let again = app.join("r", "zoe").await;

    let listed = app.participants("r").await;

    let named = [
        "asOfMs",
        "generation",
        "next",
        "participants",
        "roomId",
        "version",
    ];
    assert_eq!(fields(&listed), named);
    assert_eq!(listed["roomId"], "r");
    assert_eq!(listed["generation"], 1);
    assert_eq!(listed["version"], 5, "four joins and the end of one");
    assert!(int(&listed, "asOfMs") >= int(&again, "asOfMs"));
    assert_eq!(listed["next"], Value::Null);
    assert_eq!(users(&listed), ["zoe", "alice", "bob"]);
    let zoe = &listed["participants"][0];
    let named = [
        "arrivedAtMs",
        "cursor",
        "epoch",
        "expiresAtMs",
        "info",
        "joinedAtMs",
        "lastSeenMs",
        "metadata",
        "status",
        "userId",
    ];
    assert_eq!(fields(zoe), named);
    assert_eq!(zoe["epoch"], 2);
    assert_eq!(zoe["status"], "connected");
    assert_eq!(zoe["joinedAtMs"], again["asOfMs"]);
    assert_eq!(zoe["lastSeenMs"], again["asOfMs"]);
    assert_eq!(zoe["expiresAtMs"], again["expiresAtMs"]);
    assert_eq!(zoe["cursor"], Value::Null);
    assert_eq!(zoe["metadata"], Value::Null);
    database.verify().await;
}

#[tokio::test]
async fn a_person_on_several_devices_is_shown_by_the_newest_and_lists_all() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let phone = json!({ "userId": "alice", "deviceId": "phone", "cursor": { "line": 7 } });
    app.post("/rooms/r/join", phone).await;

    let listed = app.participants("r").await;

    assert_eq!(users(&listed), ["alice"]);
    let alice = &listed["participants"][0];
    assert_eq!(alice["epoch"], 2);
    assert_eq!(alice["cursor"], json!({ "line": 7 }));
    let devices = alice["devices"].as_array().unwrap();
    let named = [
        "cursor",
        "deviceId",
        "epoch",
        "expiresAtMs",
        "info",
        "joinedAtMs",
        "lastSeenMs",
        "metadata",
        "status",
    ];
    assert_eq!(fields(&devices[0]), named);
    assert_eq!(devices.len(), 2);
    assert_eq!(devices[0]["deviceId"], "phone");
    assert_eq!(devices[0]["epoch"], 2);
    assert_eq!(devices[1]["deviceId"], Value::Null);
    assert_eq!(devices[1]["epoch"], 1);
    assert_eq!(devices[1]["cursor"], Value::Null);

    accepted(app.leave("r", "alice", 1).await).await;
    let listed = app.participants("r").await;
    assert_eq!(listed["participants"][0].get("devices"), None);
    database.verify().await;
}

#[tokio::test]
async fn a_member_is_reconnecting_after_one_and_a_half_of_its_own_intervals() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "quick").await;
    let slow = json!({ "userId": "slow", "leaseMs": 30_000 });
    app.post("/rooms/r/join", slow).await;
    let statuses = async || {
        let listed = app.participants("r").await;
        let of = |i: usize| listed["participants"][i]["status"].clone();
        (of(0), of(1))
    };

    assert_eq!(statuses().await, (json!("connected"), json!("connected")));
    database.silence(7_500).await;
    assert_eq!(
        statuses().await,
        (json!("reconnecting"), json!("connected"))
    );
    database.silence(4_500).await;
    assert_eq!(
        statuses().await,
        (json!("reconnecting"), json!("connected"))
    );
    accepted(app.heartbeat("r", "quick", 1).await).await;
    database.silence(3_100).await;
    assert_eq!(
        statuses().await,
        (json!("connected"), json!("reconnecting"))
    );
    database.verify().await;
}

#[tokio::test]
async fn a_room_that_does_not_exist_is_an_empty_list() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let listed = app.participants("nowhere").await;
    assert!(listed["asOfMs"].is_i64());
    assert_eq!(
        listed,
        json!({ "roomId": "nowhere", "generation": null, "version": null,
                "asOfMs": listed["asOfMs"], "participants": [], "next": null })
    );
    let response = app.get("/rooms/nowhere").await;
    refused(response, 404, "room_not_found").await;
}

#[tokio::test]
async fn after_a_list_nothing_expired_and_no_empty_room_is_in_the_tables() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms=0"]).await;
    app.join("r", "alice").await;
    app.join("other", "carol").await;
    database.silence(10_000).await;
    app.join("r", "bob").await;
    database.silence(10_000).await;
    assert_eq!(database.rows().await, (2, 3));

    assert_eq!(users(&app.participants("r").await), ["bob"]);
    assert_eq!(database.rows().await, (2, 2), "of that room");

    database.silence(10_000).await;
    let listed = app.participants("r").await;
    assert_eq!(listed["generation"], Value::Null);
    assert_eq!(database.rows().await, (1, 1));
    let response = app.get("/rooms/other").await;
    refused(response, 404, "room_not_found").await;
    assert_eq!(database.rows().await, (0, 0));
    database.verify().await;
}

#[tokio::test]
async fn a_room_shows_its_lifetime_and_how_many_are_in_it() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let first = app.join("r", "alice").await;
    app.join("r", "bob").await;
    let phone = json!({ "userId": "bob", "deviceId": "phone" });
    app.post("/rooms/r/join", phone).await;

    let response = app.get("/rooms/r").await;
    assert_eq!(response.status(), 200);
    let room: Value = response.json().await.unwrap();
    assert_eq!(
        room,
        json!({ "roomId": "r", "generation": 1, "openedAtMs": first["asOfMs"],
                "memberCount": 2, "version": 3 })
    );
    database.verify().await;
}

#[tokio::test]
async fn pages_of_a_room_show_everybody_once_and_in_order() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let everybody: Vec<String> = (0..7).map(|n| format!("user-{n}")).collect();
    for user in &everybody {
        app.join("r", user).await;
    }

    for limit in 1..=8 {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = app
                .participants_page("r", &format!("limit={limit}{after}"))
                .await;
            assert!(users(&page).len() <= limit);
            seen.extend(users(&page).into_iter().map(str::to_owned));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(seen, everybody, "limit {limit}");
    }

    // Who leaves or joins between two pages moves nobody else.
    let page = app.participants_page("r", "limit=3").await;
    accepted(app.leave("r", "user-0", 1).await).await;
    app.join("r", "late").await;
    let after = page["next"].as_str().unwrap();
    let rest = app.participants_page("r", &format!("after={after}")).await;
    assert_eq!(
        users(&rest),
        ["user-3", "user-4", "user-5", "user-6", "late"]
    );
    database.verify().await;
}

#[tokio::test]
async fn a_page_that_cannot_be_meant_is_refused() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    for query in [
        "limit=0",
        "limit=-1",
        "limit=x",
        "limit=1.5",
        "limit=99999999999999999999",
        "limit=1&limit=2",
        "after=x",
        "after=1",
        "after=",
        "after=1.x",
        "after=%00",
        "after=%FF",
    ] {
        let response = app.get(&format!("/rooms/r/participants?{query}")).await;
        refused(response, 400, "invalid_request").await;
    }
}
