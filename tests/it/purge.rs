//! Forgetting closed history without ever letting an epoch or a generation go back.

use std::time::Duration;

use leasehold::domain::{JoinRefusal, Retention, StaleReason};
use leasehold::jobs::Purge;
use leasehold::store::{PurgeBatch, Store};
use sqlx::Connection;
use tokio_util::sync::CancellationToken;

use super::support::race::{Side, at};
use super::support::{Database, Renew, beat, join, purge_settled, room, session, t};

const DAY: Duration = Duration::from_hours(24);
const DAY_MS: i64 = 86_400_000;

/// A generation of one session that opens and closes within a second after `ms`.
async fn visit(database: &Database, room: &str, user: &str, ms: i64) -> (i64, i64) {
    let joined = database
        .at(t(ms))
        .join(&[join(room, user)], Default::default())
        .await
        .unwrap();
    let joined = joined[0].as_ref().unwrap().clone();
    let left = database
        .at(t(ms + 1))
        .leave(&[session(room, user, "", joined.epoch)])
        .await
        .unwrap();
    assert_eq!(left, [Ok(())]);
    (joined.epoch, joined.generation)
}

async fn purge_all(store: &Store) -> PurgeBatch {
    let batch = purge_settled(store, DAY).await;
    assert!(batch.ran && batch.finished, "{batch:?}");
    batch
}

#[tokio::test]
async fn what_closed_longer_ago_goes_and_the_rest_stays() {
    let database = Database::new().await;
    visit(&database, "r", "alice", 0).await;
    visit(&database, "r", "alice", DAY_MS).await;

    let batch = purge_all(&database.at(t(DAY_MS + 2))).await;

    assert_eq!((batch.generations_purged, batch.events_purged), (1, 2));
    let lives = database
        .store
        .lifetimes(&room("r"), None, 10)
        .await
        .unwrap();
    assert_eq!(lives.iter().map(|l| l.generation).collect::<Vec<_>>(), [2]);
    database.verify().await;
}

#[tokio::test]
async fn a_generation_that_closed_exactly_so_long_ago_stays() {
    let database = Database::new().await;
    visit(&database, "r", "alice", 0).await;
    let at_the_edge = purge_all(&database.at(t(1 + DAY_MS))).await;
    assert_eq!(at_the_edge.generations_purged, 0);
    let past_it = purge_all(&database.at(t(2 + DAY_MS))).await;
    assert_eq!(past_it.generations_purged, 1);
    database.verify().await;
}

#[tokio::test]
async fn epochs_and_generations_go_on_after_everything_was_purged() {
    let database = Database::new().await;
    assert_eq!(visit(&database, "r", "alice", 0).await, (1, 1));
    assert_eq!(visit(&database, "r", "alice", 10).await, (2, 2));
    assert_eq!(
        purge_all(&database.at(t(2 * DAY_MS)))
            .await
            .generations_purged,
        2
    );

    assert_eq!(visit(&database, "r", "alice", 2 * DAY_MS).await, (3, 3));
    assert_eq!(visit(&database, "r", "bob", 2 * DAY_MS + 10).await, (1, 4));

    assert_eq!(
        purge_all(&database.at(t(4 * DAY_MS)))
            .await
            .generations_purged,
        2
    );
    assert_eq!(visit(&database, "r", "alice", 4 * DAY_MS).await, (4, 5));
    database.verify().await;
}

/// Of a room that never empties.
#[tokio::test]
async fn sessions_go_when_they_ended_so_long_ago_whatever_the_room_does() {
    let database = Database::new().await;
    for (user, ms) in [("alice", 0), ("bob", 1), ("bob", 2), ("alice", 3)] {
        database
            .at(t(ms))
            .join(&[join("r", user)], Default::default())
            .await
            .unwrap();
    }
    let purged_until = async || {
        let lives = database
            .store
            .lifetimes(&room("r"), None, 10)
            .await
            .unwrap();
        assert_eq!(lives.len(), 1);
        lives[0].purged_until
    };
    assert_eq!(purged_until().await, None);

    let batch = purge_all(&database.at(t(9 * DAY_MS))).await;

    assert_eq!((batch.generations_purged, batch.events_purged), (0, 4));
    assert_eq!(purged_until().await, Some(t(3)));
    database.verify().await;
    let again = purge_all(&database.at(t(9 * DAY_MS))).await;
    assert_eq!((again.generations_purged, again.events_purged), (0, 0));

    // Who was purged joins with the next epoch, who is there is known by the one they have.
    assert_eq!(
        database
            .at(t(4))
            .join(&[join("r", "bob")], Default::default())
            .await
            .unwrap()[0]
            .as_ref()
            .unwrap()
            .epoch,
        3
    );
    let left = database
        .at(t(5))
        .leave(&[session("r", "alice", "", 2), session("r", "bob", "", 3)])
        .await
        .unwrap();
    assert_eq!(left, [Ok(()), Ok(())]);
    database.verify().await;
    let rest = purge_all(&database.at(t(9 * DAY_MS))).await;
    assert_eq!((rest.generations_purged, rest.events_purged), (1, 6));
    database.verify().await;
    assert_eq!(visit(&database, "r", "bob", 9 * DAY_MS).await, (4, 2));
    database.verify().await;
}

#[tokio::test]
async fn what_a_clock_that_ran_ahead_has_recorded_does_not_stop_a_purge() {
    let database = Database::new().await;
    visit(&database, "first", "alice", 0).await;
    visit(&database, "ahead", "alice", 3_000 * DAY_MS).await;
    visit(&database, "second", "alice", 1).await;
    visit(&database, "ahead-too", "alice", 3_000 * DAY_MS).await;

    let batch = purge_all(&database.at(t(2 * DAY_MS))).await;

    assert_eq!((batch.generations_purged, batch.events_purged), (3, 6));
    database.verify().await;
}

#[tokio::test]
async fn joins_of_who_is_still_there_do_not_stop_a_purge_of_small_batches() {
    let database = Database::new().await;
    for n in 0..5 {
        database
            .at(t(n))
            .join(&[join("r", &format!("u{n}"))], Default::default())
            .await
            .unwrap();
    }
    visit(&database, "other", "alice", 10).await;
    let store = database.at(t(2 * DAY_MS));
    let done = Purge::new(store.clone(), Retention::of(DAY))
        .run_once(&CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((done.generations, done.events), (1, 2));
    let mut events = 0;
    for _ in 0..4 {
        events += store
            .purge(Retention::of(DAY), 2)
            .await
            .unwrap()
            .events_purged;
    }
    assert_eq!(events, 0);
    database.verify().await;
}

#[tokio::test]
async fn a_session_of_purged_history_is_unknown() {
    let database = Database::new().await;
    visit(&database, "r", "alice", 0).await;
    purge_all(&database.at(t(2 * DAY_MS))).await;
    let late = database
        .at(t(2 * DAY_MS))
        .renew(&[beat("r", "alice", "", 1)])
        .await
        .unwrap();
    assert_eq!(late, [Err(StaleReason::UnknownSession)]);
    database.verify().await;
}

#[tokio::test]
async fn a_batch_is_bounded_and_the_job_goes_on_until_nothing_is_due() {
    let database = Database::new().await;
    for n in 0..5 {
        visit(&database, &format!("r{n}"), "alice", n).await;
    }
    let store = database.at(t(2 * DAY_MS));
    let first = store.purge(Retention::of(DAY), 4).await.unwrap();
    assert_eq!(
        (
            first.generations_purged,
            first.events_purged,
            first.finished
        ),
        (2, 4, false)
    );
    let smallest = store.purge(Retention::of(DAY), 1).await.unwrap();
    assert_eq!(
        (smallest.events_purged, smallest.finished),
        (0, false),
        "a join goes with its end"
    );

    let rest = Purge::new(store, Retention::of(DAY))
        .run_once(&CancellationToken::new())
        .await
        .unwrap();

    assert_eq!((rest.ran, rest.generations, rest.events), (true, 3, 6));
    database.verify().await;
}

#[tokio::test]
async fn the_highest_purged_place_is_remembered_and_only_ever_rises() {
    let database = Database::new().await;
    let place = async || {
        sqlx::query!(
            r#"select purged_xact_id::text as xact_id, purged_event_id from leasehold.purges"#
        )
        .fetch_one(&database.pool)
        .await
        .unwrap()
    };
    assert!(place().await.xact_id.is_none());
    // Written first, closed last: its events are purged after younger ones.
    database
        .at(t(0))
        .join(&[join("old", "alice")], Default::default())
        .await
        .unwrap();
    visit(&database, "young", "bob", 10).await;
    let highest = sqlx::query!(
        r#"select xact_id::text as xact_id, event_id from leasehold.membership_events
           where room_id = 'young' order by xact_id desc, event_id desc limit 1"#
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();

    purge_all(&database.at(t(2 * DAY_MS))).await;

    let after = place().await;
    assert_eq!(after.xact_id, highest.xact_id);
    assert_eq!(after.purged_event_id, Some(highest.event_id));
    database.verify().await;
}

#[tokio::test]
async fn a_block_that_ended_is_purged_and_one_that_holds_is_not() {
    let database = Database::new().await;
    database
        .execute(
            "insert into leasehold.blocks values ('r', 'alice', to_timestamp(0), to_timestamp(0)), \
             ('r', 'bob', 'infinity', to_timestamp(0))",
        )
        .await;
    assert_eq!(purge_all(&database.at(t(0))).await.blocks_purged, 1);
    let left = sqlx::query_scalar!("select user_id from leasehold.blocks")
        .fetch_all(&database.pool)
        .await
        .unwrap();
    assert_eq!(left, ["bob"]);
}

#[tokio::test]
async fn a_block_that_somebody_prolongs_meanwhile_is_kept() {
    let database = Database::new().await;
    let block = |ms| {
        format!(
            "select leasehold.remove_member('r', 'alice', p_block_ms => 1000, p_now => {})",
            at(ms)
        )
    };
    database.execute(block(0)).await;
    let mut prolonging = Side::holding(&database, block(1_500)).await;
    let purge = format!(
        "select blocks_purged from leasehold.purge('1 day', p_now => {})",
        at(2_000)
    );
    let purging = Side::new(&database).await.waits(purge.clone()).await;
    prolonging.run("commit").await;

    assert_eq!(purging.word().await, "0");
    let refused = database
        .at(t(2_499))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert!(matches!(refused[0], Err(JoinRefusal::Blocked(_))));
    database.verify().await;
}

#[tokio::test]
async fn a_join_in_flight_and_a_purge_do_not_make_an_epoch_go_back() {
    let database = Database::new().await;
    visit(&database, "r", "alice", 0).await;
    let mut joining = database.connect().await;
    let mut transaction = joining.begin().await.unwrap();
    let joined = sqlx::query!(
        r#"select epoch as "epoch!", generation as "generation!"
           from leasehold.join_member('r', 'alice', p_now => $1)"#,
        t(2 * DAY_MS)
    )
    .fetch_one(&mut *transaction)
    .await
    .unwrap();

    // Not delayed by the join: it looks at other rows.
    assert_eq!(
        purge_all(&database.at(t(2 * DAY_MS)))
            .await
            .generations_purged,
        1
    );
    transaction.commit().await.unwrap();

    assert_eq!((joined.epoch, joined.generation), (2, 2));
    database.verify().await;
    let left = database
        .at(t(2 * DAY_MS))
        .leave(&[session("r", "alice", "", 2)])
        .await
        .unwrap();
    assert_eq!(left, [Ok(())]);
    assert_eq!(visit(&database, "r", "alice", 2 * DAY_MS + 5).await, (3, 3));
    database.verify().await;
}

#[tokio::test]
async fn a_purge_in_flight_and_a_join_do_not_make_an_epoch_go_back() {
    let database = Database::new().await;
    visit(&database, "r", "alice", 0).await;
    let mut purging = database.connect().await;
    let mut transaction = purging.begin().await.unwrap();
    sqlx::query!(
        "select ran from leasehold.purge('1 day', 10, p_now => $1)",
        t(2 * DAY_MS)
    )
    .fetch_one(&mut *transaction)
    .await
    .unwrap();

    assert_eq!(visit(&database, "r", "alice", 2 * DAY_MS).await, (2, 2));
    let second = database
        .at(t(2 * DAY_MS))
        .purge(Retention::of(DAY), 10)
        .await
        .unwrap();
    assert!(!second.ran, "one at a time");
    transaction.commit().await.unwrap();

    assert_eq!(visit(&database, "r", "alice", 2 * DAY_MS + 5).await, (3, 3));
    database.verify().await;
}

#[tokio::test]
async fn verify_sees_history_that_went_without_leaving_a_floor() {
    let database = Database::new().await;
    visit(&database, "r", "alice", 0).await;
    visit(&database, "r", "alice", 10).await;
    database
        .execute(
            "delete from leasehold.membership_events where generation = 1; \
             delete from leasehold.closed_generations where generation = 1",
        )
        .await;
    let found: Vec<i32> = database
        .store
        .verify()
        .await
        .unwrap()
        .iter()
        .map(|v| v.invariant)
        .collect();
    assert_eq!(found, [2, 6]);
}
