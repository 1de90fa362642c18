//! The scheduled job: batch by batch, one at a time, held up by nobody.

use leasehold::jobs::{Sweep, Swept, every};
use leasehold::telemetry::Metrics;
use tokio_util::sync::CancellationToken;

use super::support::race::Side;
use super::support::{Database, join, t};

/// Expired members in rooms `a` to `e`, two in each.
async fn with_expired() -> Database {
    let database = Database::new().await;
    let joins: Vec<_> = ["a", "b", "c", "d", "e"]
        .iter()
        .flat_map(|room| [join(room, "alice"), join(room, "bob")])
        .collect();
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    database
}

fn job(database: &Database, ms: i64) -> Sweep {
    Sweep::new(database.at(t(ms)), Metrics::new().unwrap())
}

async fn rooms(database: &Database) -> Vec<String> {
    sqlx::query_scalar!("select room_id from leasehold.rooms order by room_id")
        .fetch_all(&database.pool)
        .await
        .unwrap()
}

async fn last_swept_at(database: &Database) -> Option<chrono::DateTime<chrono::Utc>> {
    sqlx::query_scalar!("select last_swept_at from leasehold.sweeps")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_batch_takes_on_only_the_rooms_of_so_many_members() {
    let database = with_expired().await;
    let store = database.at(t(15_001));
    let mut left = 10;
    let mut batches = 0;
    loop {
        let swept = store.sweep(2).await.unwrap();
        assert!(swept.ran);
        assert_eq!(swept.members_expired, 2 * swept.rooms_closed);
        left -= swept.members_expired;
        if swept.finished {
            break;
        }
        batches += 1;
        assert!((2..=4).contains(&swept.members_expired), "{swept:?}");
        assert_eq!(last_swept_at(&database).await, None, "there is more to do");
    }
    assert_eq!(left, 0);
    assert!(batches >= 3);
    assert_eq!(last_swept_at(&database).await, Some(t(15_001)));
    database.verify().await;
}

#[tokio::test]
async fn a_run_goes_on_until_nothing_is_due() {
    let database = Database::new().await;
    let joins: Vec<_> = (0..1_100)
        .map(|n| join(&format!("room {n}"), "alice"))
        .collect();
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    database
        .at(t(10_000))
        .join(&[join("lives", "alice")], Default::default())
        .await
        .unwrap();

    let swept = job(&database, 15_001)
        .run_once(&CancellationToken::new())
        .await
        .unwrap();
    let expected = Swept {
        ran: true,
        members_expired: 1_100,
        rooms_closed: 1_100,
    };
    assert_eq!(swept, expected, "more than one batch holds");
    assert_eq!(rooms(&database).await, ["lives"]);
    database.verify().await;
}

#[tokio::test]
async fn a_run_that_finds_nothing_says_that_it_ran() {
    let database = Database::new().await;
    let swept = job(&database, 0)
        .run_once(&CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        swept,
        Swept {
            ran: true,
            ..Swept::default()
        }
    );
    assert_eq!(last_swept_at(&database).await, Some(t(0)));
}

#[tokio::test]
async fn a_run_that_is_told_to_stop_takes_no_further_batch() {
    let database = with_expired().await;
    let stop = CancellationToken::new();
    stop.cancel();
    let swept = job(&database, 15_001).run_once(&stop).await.unwrap();
    assert_eq!(swept, Swept::default());
    assert_eq!(rooms(&database).await.len(), 5);
    database.verify().await;
}

#[tokio::test]
async fn the_loop_ends_at_once_when_told_to_stop() {
    let database = with_expired().await;
    let stop = CancellationToken::new();
    let hour = std::time::Duration::from_secs(3_600);
    let running = tokio::spawn(every(hour, stop.clone(), job(&database, 15_001)));
    let patience = std::time::Duration::from_secs(20);
    tokio::time::timeout(patience, async {
        while !rooms(&database).await.is_empty() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        running.await.unwrap();
    })
    .await
    .unwrap();
    database.verify().await;
}

#[tokio::test]
async fn a_run_leaves_the_work_to_the_one_that_is_at_it() {
    let database = with_expired().await;
    let mut other = Side::holding(
        &database,
        "select pg_advisory_xact_lock(hashtext('leasehold'), hashtext('sweep'))",
    )
    .await;
    let sweep = job(&database, 15_001);
    let swept = sweep.run_once(&CancellationToken::new()).await.unwrap();
    assert_eq!(swept, Swept::default());
    assert_eq!(rooms(&database).await.len(), 5);

    other.run("rollback").await;
    let swept = sweep.run_once(&CancellationToken::new()).await.unwrap();
    assert_eq!((swept.ran, swept.rooms_closed), (true, 5));
    database.verify().await;
}

#[tokio::test]
async fn a_room_that_somebody_is_changing_is_passed_over_and_holds_up_no_other() {
    let database = with_expired().await;
    let mut other = Side::holding(
        &database,
        "select from leasehold.rooms where room_id in ('a', 'b') for update",
    )
    .await;
    let store = database.at(t(15_001));
    let mut finished = false;
    // As many as are held: were they found first every time, no other would ever be.
    for _ in 0..5 {
        finished = store.sweep(4).await.unwrap().finished;
    }
    assert!(finished);
    assert_eq!(rooms(&database).await, ["a", "b"]);

    other.run("rollback").await;
    let swept = store.sweep(1000).await.unwrap();
    assert_eq!((swept.members_expired, swept.rooms_closed), (4, 2));
    database.verify().await;
}

#[tokio::test]
async fn a_sweep_passes_over_a_member_who_is_being_renewed() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    let beat = super::support::race::beat_sql("alice", 1, 15_000);
    let mut beat = Side::holding(&database, beat).await;
    let sweep = format!(
        "select concat_ws(' ', ran, members_expired, rooms_closed, finished)
           from leasehold.sweep(p_now => {})",
        super::support::race::at(15_001)
    );
    let mut sweeper = Side::new(&database).await;
    assert_eq!(sweeper.run(sweep.clone()).await, ["t 0 0 t"]);
    beat.run("commit").await;
    assert_eq!(sweeper.run(sweep).await, ["t 0 0 t"]);
    assert_eq!(rooms(&database).await, ["r"]);
    database.verify().await;
}
