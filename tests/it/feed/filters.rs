//! For less than everything: rooms, prefixes and kinds, for who administers them.

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::read;
use crate::support::{App, Caller, Database, guarded};

const NO_SWEEP: &[&str] = &["--sweep-interval-ms=0"];

fn told(items: &[Value]) -> Vec<String> {
    let told = items.iter().map(|item| {
        format!(
            "{} {}",
            item["kind"].as_str().unwrap(),
            item["roomId"].as_str().unwrap()
        )
    });
    told.collect()
}

#[tokio::test]
async fn a_reader_is_told_of_the_rooms_and_kinds_that_it_asked_for() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_SWEEP).await;
    for room in ["a-1", "b-1", "a-2"] {
        app.join(room, "alice").await;
        app.leave(room, "alice", 1).await;
    }
    read(&app, "", 12).await;
    for (query, expected) in [
        (
            "room=b-1",
            vec![
                "room_opened b-1",
                "joined b-1",
                "ended b-1",
                "room_closed b-1",
            ],
        ),
        ("prefix=a-&kinds=joined", vec!["joined a-1", "joined a-2"]),
        (
            "kinds=room_closed",
            vec!["room_closed a-1", "room_closed b-1", "room_closed a-2"],
        ),
        (
            "room=a-1&kinds=joined,ended",
            vec!["joined a-1", "ended a-1"],
        ),
        ("room=a-1&prefix=b-&kinds=joined", vec![]),
        ("room=a", vec![]),
        ("prefix=%25", vec![]),
    ] {
        let (items, next) = read(&app, query, expected.len()).await;
        assert_eq!(told(&items), expected, "{query}");
        let (rest, _) = read(&app, &format!("{query}&after={next}"), 0).await;
        assert_eq!(rest, [] as [Value; 0], "{query}");
    }
    database.verify().await;
}

/// More than a call looks through, of which nothing is for the reader.
#[tokio::test]
async fn what_is_left_out_is_passed_and_not_looked_through_again() {
    let database = Database::new().await;
    database
        .execute(
            "select leasehold.join_members(array_agg('r'::text), array_agg('u' || n), array_agg(''::text), array_agg(300000))
               from generate_series(1, 12000) n;
             select leasehold.join_member('other', 'alice')",
        )
        .await;
    let app = App::spawn_with(&database, NO_SWEEP).await;
    let page: Value = app.get("/changes?room=other").await.json().await.unwrap();
    assert_eq!(
        page["changes"],
        json!([]),
        "a call looks through so many only"
    );
    let (items, _) = read(
        &app,
        &format!("room=other&after={}", page["next"].as_str().unwrap()),
        2,
    )
    .await;
    assert_eq!(told(&items), ["room_opened other", "joined other"]);
    let (items, _) = read(&app, "room=other", 2).await;
    assert_eq!(items.len(), 2);
}

#[tokio::test]
async fn items_say_who_vouched_for_what_and_when_somebody_was_last_heard_of() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, NO_SWEEP).await;
    let body = json!({ "userId": "alice", "deviceId": "phone", "info": { "role": "host" } });
    assert_eq!(app.post("/rooms/r/join", body).await.status(), 200);
    let body = json!({ "userId": "alice", "deviceId": "phone", "epoch": 1 });
    assert_eq!(app.post("/rooms/r/leave", body).await.status(), 204);
    let (items, _) = read(&app, "", 4).await;
    for item in &items[1..3] {
        assert_eq!(item["info"], json!({ "role": "host" }));
        assert_eq!(item["deviceId"], "phone");
    }
    assert_eq!(items[1]["memberCount"], 1);
    assert!(items[1].get("lastSeenMs").is_none());
    assert!(items[2]["lastSeenMs"].as_i64().unwrap() <= items[2]["atMs"].as_i64().unwrap());
    assert!(items[0].get("info").is_none());
}

#[tokio::test]
async fn an_admin_of_some_rooms_reads_of_those_and_of_no_others() {
    let database = Database::new().await;
    let app = guarded(&database, NO_SWEEP).await;
    let admin = Caller::new(&app, "mod", Scope::Admin);
    let member = Caller::new(&app, "mod", Scope::Member);
    for (query, status) in [
        ("?room=r1", 200),
        ("?prefix=r", 200),
        ("?prefix=r-", 200),
        ("?room=s", 403),
        ("?prefix=s", 403),
        ("?prefix=", 403),
        ("?room=s&prefix=r", 403),
        ("", 403),
        ("?kinds=joined", 403),
    ] {
        for path in ["/changes", "/changes/events"] {
            let got = admin.open(&format!("{path}{query}")).await.status();
            assert_eq!(got, status, "{path}{query}");
            let got = member.open(&format!("{path}{query}")).await.status();
            assert_eq!(got, 403, "{path}{query} as a member");
        }
    }
    assert_eq!(Caller::server(&app).get("/changes").await.status, 200);
}
