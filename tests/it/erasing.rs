//! Erasing a person: nobody's history, with everything that holds still holding.

use serde_json::json;

use super::support::race::{Side, at};
use super::support::{App, Database, join, purge_settled, run, session, t, text};

/// The tables of which any row has this word in it.
#[expect(clippy::disallowed_methods, reason = "the table is a variable")]
async fn is_found(database: &Database, word: &str) -> Vec<String> {
    let tables = sqlx::query_scalar!(
        r#"select table_name::text as "name!" from information_schema.tables
            where table_schema = 'leasehold' and table_type = 'BASE TABLE'"#
    );
    let mut found = Vec::new();
    for table in tables.fetch_all(&database.pool).await.unwrap() {
        let sql =
            format!("select count(*) from leasehold.{table} r where r::text like '%' || $1 || '%'");
        let rows: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(word)
            .fetch_one(&database.pool)
            .await
            .unwrap();
        if rows > 0 {
            found.push(table);
        }
    }
    found
}

#[tokio::test]
async fn an_erased_person_is_found_nowhere_and_their_epochs_still_rise() {
    let database = Database::new().await;
    let app = App::spawn_with(&database, &["--sweep-interval-ms=0"]).await;
    for room in ["r", "s"] {
        let body = json!({ "userId": "mallory", "deviceId": "mallory-phone", "joinId": "mallory-1",
                           "info": { "name": "mallory" }, "metadata": { "name": "mallory" } });
        assert_eq!(
            app.post(&format!("/rooms/{room}/join"), body)
                .await
                .status(),
            200
        );
        app.join(room, "bob").await;
    }
    app.join("r", "mallory").await;
    // What mallory decided, and what was said of mallory.
    let by = "by=mallory&reason=because";
    assert_eq!(
        app.delete(&format!("/rooms/r/participants/bob?{by}&blockForMs=60000"))
            .await
            .status(),
        204
    );
    let by = "by=bob&reason=mallory+was+rude";
    assert_eq!(
        app.delete(&format!("/rooms/s/participants/mallory?{by}"))
            .await
            .status(),
        204
    );
    let mut events = app.events("r").await;
    events.expect("snapshot").await;

    let erased = app.delete("/users/mallory/history").await;

    assert_eq!(erased.status(), 200);
    let erased: serde_json::Value = erased.json().await.unwrap();
    assert_eq!(erased, json!({ "sessionsErased": 3 }));
    assert_eq!(is_found(&database, "mallory").await, [] as [&str; 0]);
    assert_eq!(
        events.until("left").await.data["userId"],
        "mallory",
        "readers are told of the end"
    );
    database.verify().await;
    let pseudonym = sqlx::query_scalar!(
        "select distinct user_id from leasehold.membership_events where user_id like 'erased-%'"
    );
    let pseudonym = pseudonym.fetch_one(&database.pool).await.unwrap();
    assert_eq!(
        is_found(&database, &pseudonym).await.len(),
        2,
        "in the history and as who decided a block"
    );

    assert_eq!(app.join("r", "mallory").await["epoch"], 3);
    assert_eq!(app.join("s", "mallory").await["epoch"], 2);
    assert_eq!(app.join("new", "mallory").await["epoch"], 1);
    database.verify().await;
    let again: serde_json::Value = app
        .delete("/users/mallory/history")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(again, json!({ "sessionsErased": 3 }));
    assert_eq!(app.join("r", "mallory").await["epoch"], 4);
    database.verify().await;
    let nobody: serde_json::Value = app
        .delete("/users/nobody/history")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(nobody, json!({ "sessionsErased": 0 }));
}

#[tokio::test]
async fn what_was_purged_before_or_is_purged_after_still_counts() {
    let database = Database::new().await;
    let visit = async |ms| {
        let joined = database
            .at(t(ms))
            .join(&[join("r", "mallory")], Default::default())
            .await
            .unwrap();
        let epoch = joined[0].as_ref().unwrap().epoch;
        database
            .at(t(ms + 1))
            .leave(&[session("r", "mallory", "", epoch)])
            .await
            .unwrap();
        epoch
    };
    let purge = async |ms| {
        let day = std::time::Duration::from_hours(24);
        purge_settled(&database.at(t(ms)), day)
            .await
            .generations_purged
    };
    assert_eq!(visit(0).await, 1);
    assert_eq!(purge(90_000_000).await, 1);
    assert_eq!(visit(90_000_000).await, 2);
    database
        .execute(format!(
            "select leasehold.erase_user('mallory', {})",
            at(90_000_010)
        ))
        .await;
    database.verify().await;
    assert_eq!(is_found(&database, "mallory").await, [] as [&str; 0]);
    assert_eq!(purge(190_000_000).await, 1);
    database.verify().await;
    assert_eq!(visit(190_000_000).await, 3);
    database.verify().await;
    assert_eq!(purge(290_000_000).await, 1);
    assert_eq!(visit(290_000_000).await, 4);
    database.verify().await;
}

#[tokio::test]
async fn a_join_in_flight_is_erased_and_one_that_comes_meanwhile_begins_after_it() {
    let database = Database::new().await;
    database
        .execute("select leasehold.join_member('r', 'mallory')")
        .await;
    let mut joining = Side::holding(
        &database,
        "select leasehold.join_member('s', 'mallory')".to_owned(),
    )
    .await;
    let erase = "select sessions_erased from leasehold.erase_user('mallory')";
    let erasing = Side::new(&database).await.waits(erase.to_owned()).await;
    joining.run("commit").await;
    assert_eq!(erasing.word().await, "2");

    let mut erasing = Side::holding(&database, erase.to_owned()).await;
    let join = "select epoch from leasehold.join_member('s', 'mallory')";
    let joining = Side::new(&database).await.waits(join.to_owned()).await;
    erasing.run("commit").await;
    assert_eq!(joining.word().await, "2");
    database.verify().await;
}

#[tokio::test]
async fn from_the_command_line_several_at_a_time() {
    let database = Database::new().await;
    database
        .execute(
            "select leasehold.join_member('r', u) from unnest(array['alice', 'bob', 'carol']) as u",
        )
        .await;
    let erased = run(
        &["erase", "--user", "alice", "--user", "bob"],
        &database.url(),
    );
    assert!(erased.status.success(), "{}", text(&erased.stderr));
    let line = "1 sessions erased, 1 of them ended\n";
    assert_eq!(text(&erased.stdout), line.repeat(2));
    assert_eq!(is_found(&database, "alice").await, [] as [&str; 0]);
    assert_eq!(is_found(&database, "carol").await.len(), 2);
    database.verify().await;
    let nobody = run(&["erase"], &database.url());
    assert_eq!(nobody.status.code(), Some(2));
}
