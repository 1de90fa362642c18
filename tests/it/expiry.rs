//! Each boundary three times: just before the end of the lease, exactly at it and just past it. At it the member lives.

use leasehold::domain::{IfPresent, Join, JoinRefusal, StaleReason};
use leasehold::store::SweepBatch;

use super::support::{Database, Renew, beat, join, join_on, room, session, t};

/// A lease of 15 s that begins at 0 ends at 15,000.
const BOUNDARY: [(i64, bool); 3] = [(14_999, true), (15_000, true), (15_001, false)];

/// A database in which alice has been in a room for each instant of the boundary, named after it, since 0.
async fn with_rooms() -> Database {
    let database = Database::new().await;
    let joins = BOUNDARY.map(|(ms, _)| join(&ms.to_string(), "alice"));
    let joined = database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    assert!(joined.iter().all(Result::is_ok));
    database
}

async fn rows(database: &Database, room: &str) -> i64 {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from leasehold.members where room_id = $1"#,
        room
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_list_shows_a_member_up_to_the_end_of_its_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let id = ms.to_string();
        let found = database.at(t(ms)).participants(&[room(&id)]).await.unwrap();
        assert_eq!(
            found[&room(&id)].participants.len(),
            usize::from(lives),
            "at {ms}"
        );
        assert_eq!(found[&room(&id)].room.is_some(), lives, "at {ms}");
        assert_eq!(rows(&database, &id).await, i64::from(lives), "at {ms}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_heartbeat_renews_up_to_the_end_of_the_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let beat = beat(&ms.to_string(), "alice", "", 1);
        let outcome = database.at(t(ms)).renew(&[beat]).await.unwrap();
        let expected = if lives {
            Ok(())
        } else {
            Err(StaleReason::Expired)
        };
        assert_eq!(outcome, [expected], "at {ms}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_join_that_rejects_the_present_finds_one_up_to_the_end_of_its_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let join = Join {
            if_present: IfPresent::Reject,
            ..join_on(&ms.to_string(), "alice", "another")
        };
        let outcome = database
            .at(t(ms))
            .join(&[join], Default::default())
            .await
            .unwrap();
        match &outcome[0] {
            Err(refusal) => assert!(
                lives && matches!(refusal, JoinRefusal::AlreadyPresent(_)),
                "at {ms}"
            ),
            Ok(joined) => {
                assert!(!lives, "at {ms}");
                assert_eq!((joined.epoch, joined.generation), (2, 2));
            }
        }
    }
    database.verify().await;
}

#[tokio::test]
async fn a_rejoin_supersedes_up_to_the_end_of_the_lease_and_opens_a_new_generation_past_it() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let id = ms.to_string();
        let outcome = database
            .at(t(ms))
            .join(&[join(&id, "alice")], Default::default())
            .await
            .unwrap();
        let joined = outcome[0].as_ref().unwrap();
        assert_eq!(joined.epoch, 2);
        assert_eq!(joined.generation, if lives { 1 } else { 2 }, "at {ms}");
        let reason = sqlx::query_scalar!(
            r#"select reason as "reason!" from leasehold.membership_events
                where room_id = $1 and epoch = 1 and kind = 'ended'"#,
            id
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        assert_eq!(
            reason,
            if lives { "superseded" } else { "expired" },
            "at {ms}"
        );
    }
    database.verify().await;
}

#[tokio::test]
async fn a_leave_ends_a_session_up_to_the_end_of_its_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let id = ms.to_string();
        let outcome = database
            .at(t(ms))
            .leave(&[session(&id, "alice", "", 1)])
            .await
            .unwrap();
        let expected = if lives {
            Ok(())
        } else {
            Err(StaleReason::Expired)
        };
        assert_eq!(outcome, [expected], "at {ms}");
        let closed = sqlx::query!(
            "select close_reason, closed_at from leasehold.closed_generations where room_id = $1",
            id
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        let (reason, at) = if lives {
            ("left", ms)
        } else {
            ("expired", 15_000)
        };
        assert_eq!(closed.close_reason, reason, "at {ms}");
        assert_eq!(closed.closed_at, t(at), "at {ms}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_sweep_removes_only_past_the_end_of_the_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let swept = database.at(t(ms)).sweep(1000).await.unwrap();
        let gone = if lives { 0 } else { 3 };
        let expected = SweepBatch {
            ran: true,
            members_expired: gone,
            rooms_closed: gone,
            finished: true,
        };
        assert_eq!(swept, expected, "at {ms}");
    }
    database.verify().await;
}

#[tokio::test]
async fn a_pruning_removes_only_past_the_end_of_the_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let id = ms.to_string();
        database
            .at(t(ms))
            .prune(std::slice::from_ref(&id))
            .await
            .unwrap();
        assert_eq!(rows(&database, &id).await, i64::from(lives), "at {ms}");
    }
    database.verify().await;
}

#[tokio::test]
async fn the_census_counts_up_to_the_end_of_the_lease() {
    let database = with_rooms().await;
    for (ms, lives) in BOUNDARY {
        let census = database.at(t(ms)).census().await.unwrap();
        let alive = if lives { 3 } else { 0 };
        assert_eq!(
            (census.active_rooms, census.active_members),
            (alive, alive),
            "at {ms}"
        );
    }
    database.verify().await;
}

/// Views read the clocks themselves: here they stand still at an instant of fake time.
async fn views_at(database: &Database, ms: i64) {
    let instant = super::support::race::at(ms);
    database
        .replace_in("clocks", "clock_timestamp()", &instant)
        .await;
}

#[tokio::test]
async fn the_views_show_a_session_as_live_up_to_the_end_of_its_lease() {
    for (ms, lives) in BOUNDARY {
        let database = with_rooms().await;
        views_at(&database, ms).await;
        let live = sqlx::query_scalar!(r#"select count(*) as "n!" from leasehold.live_members"#)
            .fetch_one(&database.pool)
            .await
            .unwrap();
        assert_eq!(live, if lives { 3 } else { 0 }, "at {ms}");

        let end = (!lives).then(|| t(15_000));
        let reason = (!lives).then_some("expired");
        let session = sqlx::query!(
            "select ended_at, end_reason, last_seen_at, end_recorded_at from leasehold.sessions limit 1"
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        assert_eq!(session.ended_at, end, "at {ms}");
        assert_eq!(session.end_reason.as_deref(), reason, "at {ms}");
        assert_eq!(session.last_seen_at, Some(t(0)));
        assert_eq!(session.end_recorded_at, None, "no sweep has run");
        let lifetime = sqlx::query!(
            "select closed_at, close_reason, peak_members from leasehold.room_lifetimes limit 1"
        )
        .fetch_one(&database.pool)
        .await
        .unwrap();
        assert_eq!(lifetime.closed_at, end, "at {ms}");
        assert_eq!(lifetime.close_reason.as_deref(), reason, "at {ms}");
        assert_eq!(lifetime.peak_members, Some(1));
        database.verify().await;
    }
}

#[tokio::test]
async fn the_history_says_the_same_before_and_after_the_sweep() {
    let database = with_rooms().await;
    let read = || async {
        let rows = sqlx::query_scalar!(
            r#"select concat_ws(' ', s.room_id, s.ended_at, s.end_reason, s.last_seen_at,
                                 l.closed_at, l.close_reason, l.peak_members) as "row!"
                 from leasehold.sessions s
                 join leasehold.room_lifetimes l using (room_id, generation)
                order by s.room_id"#
        );
        rows.fetch_all(&database.pool).await.unwrap()
    };
    let before = read().await;
    database.at(t(20_000)).sweep(1000).await.unwrap();
    assert_eq!(read().await, before);
    database.verify().await;
}

#[tokio::test]
async fn a_member_that_never_sent_a_heartbeat_expires() {
    let database = with_rooms().await;
    let swept = database.at(t(15_001)).sweep(1000).await.unwrap();
    assert_eq!((swept.members_expired, swept.rooms_closed), (3, 3));
    let ends = sqlx::query!(
        "select reason, occurred_at, recorded_at, last_seen_at
           from leasehold.membership_events where kind = 'ended'"
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert_eq!(ends.len(), 3);
    for end in ends {
        assert_eq!(end.reason.as_deref(), Some("expired"));
        assert_eq!(end.occurred_at, t(15_000), "when its lease ended");
        assert_eq!(end.recorded_at, t(15_001), "when the sweep found it");
        assert_eq!(end.last_seen_at, Some(t(0)), "when it joined");
    }
    database.verify().await;
}
