//! A transport that was lost: others see it at once, and the lease decides.

use leasehold::domain::{SessionKey, StaleReason, Status};
use serde_json::json;

use super::support::{App, Database, Renew, beat, join, room, session as key, t};

fn lost(epoch: i64) -> SessionKey {
    key("r", "alice", "", epoch)
}

#[tokio::test]
async fn a_disconnect_changes_no_lease_and_a_heartbeat_undoes_it() {
    let database = Database::new().await;
    let store = database.at(t(0));
    store
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let session = async |ms| {
        let found = database.at(t(ms)).participants(&[room("r")]).await.unwrap();
        let session = &found[&room("r")].participants[0].sessions[0];
        (
            session.status == Status::Reconnecting,
            session.lease_expires_at,
        )
    };

    let outcome = database
        .at(t(5_000))
        .disconnect(&[lost(1), lost(1)])
        .await
        .unwrap();
    assert_eq!(outcome, [Some(Ok(())), Some(Ok(()))]);
    assert_eq!(session(5_000).await, (true, t(15_000)));

    database
        .at(t(6_000))
        .renew(&[beat("r", "alice", "", 1)])
        .await
        .unwrap();
    assert_eq!(session(6_000).await, (false, t(21_000)));
    database.verify().await;
}

#[tokio::test]
async fn a_disconnect_is_guarded_as_a_heartbeat_is() {
    let database = Database::new().await;
    for ms in [0, 1] {
        database
            .at(t(ms))
            .join(&[join("r", "alice")], Default::default())
            .await
            .unwrap();
    }
    let at_the_end = database
        .at(t(15_001))
        .disconnect(&[lost(1), lost(2), lost(9)])
        .await
        .unwrap();
    assert_eq!(
        at_the_end,
        [
            Some(Err(StaleReason::Superseded)),
            Some(Ok(())),
            Some(Err(StaleReason::UnknownSession))
        ]
    );
    let past_it = database.at(t(15_002)).disconnect(&[lost(2)]).await.unwrap();
    assert_eq!(past_it, [Some(Err(StaleReason::Expired))]);
    database.verify().await;
}

async fn disconnected_at(database: &Database) -> Option<chrono::DateTime<chrono::Utc>> {
    sqlx::query_scalar!("select disconnected_at from leasehold.members")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_rejoin_undoes_a_disconnect() {
    let database = Database::new().await;
    let join = [join("r", "alice")];
    database
        .at(t(0))
        .join(&join, Default::default())
        .await
        .unwrap();
    database.at(t(1)).disconnect(&[lost(1)]).await.unwrap();
    assert_eq!(disconnected_at(&database).await, Some(t(1)));

    database
        .at(t(2))
        .join(&join, Default::default())
        .await
        .unwrap();

    assert_eq!(disconnected_at(&database).await, None);
    database.verify().await;
}

#[tokio::test]
async fn of_two_reports_of_a_lost_transport_the_first_says_since_when() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    for ms in [1, 2] {
        let outcome = database.at(t(ms)).disconnect(&[lost(1)]).await.unwrap();
        assert_eq!(outcome, [Some(Ok(()))]);
    }
    assert_eq!(disconnected_at(&database).await, Some(t(1)));
    database.verify().await;
}

#[tokio::test]
async fn over_http_a_lost_member_is_reconnecting_at_once() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    let body = json!({ "userId": "alice", "epoch": 1 });

    assert_eq!(
        app.post("/rooms/r/disconnect", body.clone()).await.status(),
        204
    );

    assert_eq!(
        app.participants("r").await["participants"][0]["status"],
        "reconnecting"
    );
    assert_eq!(app.heartbeat("r", "alice", 1).await.status(), 204);
    assert_eq!(
        app.participants("r").await["participants"][0]["status"],
        "connected"
    );
    app.leave("r", "alice", 1).await;
    assert_eq!(app.post("/rooms/r/disconnect", body).await.status(), 409);
    app.stop().await;
    database.verify().await;
}
