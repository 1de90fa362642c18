//! Lists over many rooms, the list within a join, and the history, in pages.

use leasehold::domain::UserId;
use serde_json::{Value, json};

use super::support::{App, Database, join, join_on, session, t};

async fn body(app: &App, path: &str) -> Value {
    let response = app.get(path).await;
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.unwrap()
}

/// One field of every entry, page after page.
async fn pages(app: &App, path: &str, list: &str, field: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let page = body(app, &format!("{path}limit=2{after}")).await;
        let entries = page[list].as_array().unwrap();
        assert!(entries.len() <= 2);
        found.extend(entries.iter().map(|entry| entry[field].clone()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn a_list_of_rooms_counts_who_lives_and_skips_rooms_where_nobody_does() {
    let database = Database::new().await;
    let early = [join("a", "alice"), join("b", "alice"), join("b", "bob")];
    database
        .at(t(0))
        .join(&early, Default::default())
        .await
        .unwrap();
    let late = [join("b", "carol"), join_on("b", "carol", "phone")];
    database
        .at(t(10_000))
        .join(&late, Default::default())
        .await
        .unwrap();

    let counts = async |ms| -> Vec<(String, i32)> {
        let rooms = database.at(t(ms)).list_rooms("", None, 10).await.unwrap();
        rooms
            .into_iter()
            .map(|room| (room.room_id.to_string(), room.member_count))
            .collect()
    };

    assert_eq!(
        counts(15_000).await,
        [("a".to_owned(), 1), ("b".to_owned(), 3)]
    );
    assert_eq!(counts(15_001).await, [("b".to_owned(), 1)]);
    assert_eq!(counts(25_001).await, []);
    database.verify().await;
}

#[tokio::test]
async fn a_prefix_is_taken_literally_and_to_the_last_character() {
    let database = Database::new().await;
    let ids = ["a", "a%", "a%\u{10ffff}\u{10ffff}", "a_", "ab", "b"];
    let joins: Vec<_> = ids.iter().map(|id| join(id, "alice")).collect();
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    let found = async |prefix: &str| -> Vec<String> {
        let rooms = database
            .at(t(1))
            .list_rooms(prefix, None, 10)
            .await
            .unwrap();
        rooms
            .into_iter()
            .map(|room| room.room_id.to_string())
            .collect()
    };
    assert_eq!(found("a%").await, ["a%", "a%\u{10ffff}\u{10ffff}"]);
    assert_eq!(found("a_").await, ["a_"]);
    assert_eq!(found("a").await.len(), 5);
    assert_eq!(found("c").await.len(), 0);
}

#[tokio::test]
async fn where_a_person_is_shows_each_room_once_with_the_newest_session() {
    let database = Database::new().await;
    let joins = [
        join_on("a", "alice", "x"),
        join_on("a", "alice", "y"),
        join("b", "bob"),
    ];
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    database
        .at(t(10_000))
        .join(&[join("c", "alice")], Default::default())
        .await
        .unwrap();
    let alice = UserId::parse("alice").unwrap();
    let rooms = async |ms| -> Vec<(String, i64)> {
        let found = database
            .at(t(ms))
            .user_rooms(&alice, None, 10)
            .await
            .unwrap();
        found
            .into_iter()
            .map(|place| (place.room_id.to_string(), place.epoch))
            .collect()
    };
    assert_eq!(
        rooms(15_000).await,
        [("a".to_owned(), 2), ("c".to_owned(), 1)]
    );
    assert_eq!(rooms(15_001).await, [("c".to_owned(), 1)]);
}

#[tokio::test]
async fn a_join_that_includes_participants_sees_itself_and_nobody_expired() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "gone")], Default::default())
        .await
        .unwrap();
    database
        .at(t(10_000))
        .join(&[join("r", "bob")], Default::default())
        .await
        .unwrap();

    let joins = [join("r", "alice"), join("other", "alice")];
    let outcomes = database
        .at(t(20_000))
        .join_and_list(&joins, Default::default())
        .await
        .unwrap();

    let (joined, listed) = outcomes[0].as_ref().unwrap();
    let users: Vec<_> = listed
        .participants
        .iter()
        .map(|p| p.user_id.as_str())
        .collect();
    assert_eq!(users, ["bob", "alice"]);
    assert_eq!((listed.as_of, joined.as_of), (t(20_000), t(20_000)));
    assert_eq!(listed.room.unwrap().version, 4, "two joins, an end, a join");
    assert_eq!(outcomes[1].as_ref().unwrap().1.participants.len(), 1);
    database.verify().await;
}

#[tokio::test]
async fn over_http_a_join_answers_with_the_list_where_it_is_asked_for() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    assert!(app.join("r", "bob").await.get("participants").is_none());

    let response = app
        .post(
            "/rooms/r/join?include=participants",
            json!({ "userId": "alice" }),
        )
        .await;

    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["version"], 2);
    assert_eq!(answer["participants"][1]["userId"], "alice");
    assert_eq!(answer["participants"][1]["epoch"], answer["epoch"]);
    let wrong = app
        .post("/rooms/r/join?include=x", json!({ "userId": "alice" }))
        .await;
    assert_eq!(wrong.status(), 400);
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn every_list_comes_in_pages_that_lose_and_repeat_nothing() {
    let database = Database::new().await;
    for n in 0..5 {
        let ids = [format!("räum & {n}"), "r".to_owned()];
        for id in &ids {
            let user = if id == "r" {
                "alice".to_owned()
            } else {
                "bob".to_owned()
            };
            let joined = database
                .store
                .join(&[join(id, &user)], Default::default())
                .await
                .unwrap();
            let epoch = joined[0].as_ref().unwrap().epoch;
            if id == "r" {
                database
                    .store
                    .leave(&[session("r", "alice", "", epoch)])
                    .await
                    .unwrap()[0]
                    .unwrap();
            }
        }
    }
    let app = App::spawn(&database).await;

    let names: Vec<_> = (0..5).map(|n| json!(format!("räum & {n}"))).collect();
    assert_eq!(pages(&app, "/rooms?", "rooms", "roomId").await, names);
    assert_eq!(
        pages(&app, "/users/bob/rooms?", "rooms", "roomId").await,
        names
    );
    assert_eq!(
        pages(&app, "/rooms/r/generations?", "generations", "generation").await,
        [5, 4, 3, 2, 1]
    );
    assert_eq!(
        pages(&app, "/users/alice/sessions?", "sessions", "epoch").await,
        [5, 4, 3, 2, 1]
    );
    for n in 0..5 {
        app.join("many", &format!("u{n}")).await;
    }
    assert_eq!(
        pages(
            &app,
            "/rooms/many/generations/1/sessions?",
            "sessions",
            "userId"
        )
        .await,
        ["u0", "u1", "u2", "u3", "u4"]
    );
    for path in [
        "/rooms",
        "/users/bob/rooms",
        "/rooms/r/generations",
        "/users/alice/sessions",
    ] {
        for query in ["limit=0", "limit=x", "after=%25", "after=AAAA"] {
            assert_eq!(
                app.get(&format!("{path}?{query}")).await.status(),
                400,
                "{path}?{query}"
            );
        }
    }
    app.stop().await;
    database.verify().await;
}

#[tokio::test]
async fn a_generation_and_a_session_tell_how_they_ended() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    app.leave("r", "alice", 1).await;
    app.join("r", "alice").await;

    let lives = body(&app, "/rooms/r/generations").await;
    assert_eq!(lives["roomId"], "r");
    assert_eq!(lives["generations"][0]["closedAtMs"], Value::Null);
    assert_eq!(lives["generations"][1]["closeReason"], "left");
    assert_eq!(lives["generations"][1]["peakMembers"], 1);
    let sessions = body(&app, "/rooms/r/generations/1/sessions").await;
    assert_eq!(sessions["sessions"][0]["endReason"], "left");
    assert_eq!(sessions["sessions"][0]["deviceId"], Value::Null);
    assert_eq!(
        body(&app, "/rooms/r/generations/9/sessions").await["sessions"],
        json!([])
    );
    assert_eq!(
        app.get("/rooms/r/generations/x/sessions").await.status(),
        400
    );
    app.stop().await;
}

#[tokio::test]
async fn a_period_finds_the_sessions_that_were_under_way_in_it() {
    let database = Database::new().await;
    for (start, end) in [(0, 1_000), (5_000, 6_000)] {
        let joined = database
            .at(t(start))
            .join(&[join("r", "alice")], Default::default())
            .await;
        let epoch = joined.unwrap()[0].as_ref().unwrap().epoch;
        database
            .at(t(end))
            .leave(&[session("r", "alice", "", epoch)])
            .await
            .unwrap()[0]
            .unwrap();
    }
    let app = App::spawn(&database).await;
    let epochs = async |from: i64, to: i64| -> Vec<i64> {
        let (from, to) = (t(from).timestamp_millis(), t(to).timestamp_millis());
        let found = body(&app, &format!("/users/alice/sessions?from={from}&to={to}")).await;
        let sessions = found["sessions"].as_array().unwrap();
        sessions
            .iter()
            .map(|s| s["epoch"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(
        epochs(1_000, 5_000).await,
        [2, 1],
        "both ends belong to the period"
    );
    assert!(epochs(1_001, 4_999).await.is_empty());
    assert_eq!(epochs(500, 600).await, [1]);
    let far = format!("/users/alice/sessions?from={}", i64::MIN);
    assert_eq!(app.get(&far).await.status(), 400);
    app.stop().await;
}
