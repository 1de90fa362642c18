//! The lease clock in fake time, with the beats of a service that comes and goes.

use std::time::Duration;

use leasehold::domain::{Beat, Beaten, EndReason, Join, StaleReason};

use super::super::support::{Database, Renew, beat, join, lease, room, t};

const GRACE: Duration = Duration::from_secs(600);

/// A beat of an instance that has just started.
fn first() -> Beat {
    Beat {
        heartbeat_ms: 5_000,
        longest_lease_ms: 300_000,
        max_pause: GRACE,
        instance: 1,
        since: None,
    }
}

/// A beat of one that goes on.
fn next() -> Beat {
    Beat {
        since: Some(Duration::from_secs(1)),
        ..first()
    }
}

async fn beats_at(database: &Database, ms: i64, beat: Beat) -> Beaten {
    database.at(t(ms)).beat(beat).await.unwrap()
}

/// Serves from one instant to another, a beat a second.
async fn serves(database: &Database, from: i64, to: i64) {
    for ms in (from..=to).step_by(1_000) {
        beats_at(database, ms, next()).await;
    }
}

/// What becomes of a heartbeat of alice's.
async fn renewal(database: &Database, ms: i64) -> Result<(), StaleReason> {
    let beats = [beat("r", "alice", "", 1)];
    database
        .at(t(ms))
        .renew(&beats)
        .await
        .unwrap()
        .swap_remove(0)
}

/// A database in which alice joined at 0 and the service beat from then until `ms`.
async fn served_until(ms: i64) -> Database {
    let database = Database::new().await;
    beats_at(&database, 0, first()).await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    serves(&database, 1_000, ms).await;
    database
}

/// Whether alice is in the list at an instant, and in every other answer too.
async fn is_there(database: &Database, ms: i64) -> bool {
    let store = database.at(t(ms));
    let listed = store.participants(&[room("r")]).await.unwrap();
    let listed = !listed[&room("r")].participants.is_empty();
    let user = leasehold::domain::UserId::parse("alice").unwrap();
    let rooms = store.list_rooms("", None, 10).await.unwrap().len();
    let places = store.user_rooms(&user, None, 10).await.unwrap().len();
    let census = store.census().await.unwrap();
    let counted = (census.active_rooms, census.active_members);
    let here = usize::from(listed);
    assert_eq!((rooms, places), (here, here), "lists at {ms}");
    assert_eq!(counted, (i64::from(listed), i64::from(listed)), "at {ms}");
    listed
}

#[tokio::test]
async fn an_outage_longer_than_the_lease_empties_no_room() {
    let database = served_until(5_000).await;
    // From the first question on, before anybody has beaten.
    assert!(is_there(&database, 40_000).await);
    let swept = database.at(t(40_000)).sweep(100).await.unwrap();
    assert_eq!((swept.members_expired, swept.rooms_closed), (0, 0));

    let beaten = beats_at(&database, 45_000, first()).await;

    // The 40 s without beats but for the moment that each reaches, and a heartbeat to come back in.
    let paused = Beaten {
        was_outage: true,
        paused_ms: 43_500,
    };
    assert_eq!(beaten, paused);
    assert!(is_there(&database, 45_000).await);
    assert_eq!(renewal(&database, 46_000).await, Ok(()));
    let found = database.at(t(46_000)).participants(&[room("r")]).await;
    let head = found.unwrap()[&room("r")].room.unwrap();
    assert_eq!((head.generation, head.version), (1, 1), "nothing happened");
    database.verify().await;
}

#[tokio::test]
async fn what_was_left_of_a_lease_is_left_after_the_outage() {
    let database = served_until(13_000).await;
    beats_at(&database, 60_000, first()).await;
    // Half a second was left when the last beat had run out, and the clock stands for five more.
    serves(&database, 61_000, 65_000).await;
    assert!(is_there(&database, 65_500).await);
    assert!(!is_there(&database, 65_501).await);
    assert_eq!(renewal(&database, 65_501).await, Err(StaleReason::Expired));
    database.verify().await;
}

#[tokio::test]
async fn the_history_says_when_the_lease_really_ended_however_late_it_is_written() {
    let database = served_until(13_000).await;
    beats_at(&database, 60_000, first()).await;
    serves(&database, 61_000, 70_000).await;
    beats_at(&database, 200_000, first()).await;
    database.at(t(201_000)).sweep(100).await.unwrap();
    let (id, store) = (room("r"), &database.store);
    let mut past = store.generation_sessions(&id, 1, 0, 10).await.unwrap();
    let alice = past.swap_remove(0);
    assert_eq!(alice.end_reason, Some(EndReason::Expired));
    assert_eq!(alice.ended_at, Some(t(65_500)));
    database.verify().await;
}

#[tokio::test]
async fn who_had_expired_before_the_outage_stays_gone() {
    let database = served_until(16_000).await;
    assert!(!is_there(&database, 16_000).await);
    beats_at(&database, 60_000, first()).await;
    assert!(!is_there(&database, 60_000).await);
    assert_eq!(renewal(&database, 60_000).await, Err(StaleReason::Expired));
    database.verify().await;
}

#[tokio::test]
async fn the_dead_do_not_live_on_where_a_service_flaps() {
    let database = served_until(13_000).await;
    // Twenty outages of twenty seconds, with half a second of service in between; only the first
    // has time for clients to come back.
    let mut now = 13_000;
    let mut served = 0;
    while is_there(&database, now).await {
        now += 20_000;
        beats_at(&database, now, first()).await;
        now += 500;
        beats_at(&database, now, next()).await;
        served += 500;
        assert!(
            served <= 2_000 + 5_500,
            "{served} ms served, and still there"
        );
    }
    database.verify().await;
}

#[tokio::test]
async fn members_who_fall_silent_while_somebody_serves_expire_on_time() {
    let database = Database::new().await;
    beats_at(&database, 0, first()).await;
    let joins: Vec<_> = (0..10).map(|n| join("r", &format!("u{n}"))).collect();
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    for second in 1..=15 {
        beats_at(&database, second * 1_000, next()).await;
        // One of ten goes on.
        let lives = [beat("r", "u3", "", 1)];
        database.at(t(second * 1_000)).renew(&lives).await.unwrap();
    }
    let found = database.at(t(15_001)).participants(&[room("r")]).await;
    let found = found.unwrap().remove(&room("r")).unwrap();
    assert_eq!(found.participants.len(), 1);
    database.verify().await;
}

#[tokio::test]
async fn an_outage_stops_the_clock_no_longer_than_its_grace() {
    let database = served_until(5_000).await;
    // Ten seconds were left when the beats stopped.
    assert!(is_there(&database, 5_000 + 610_000).await);
    assert!(!is_there(&database, 5_000 + 610_001).await);
    beats_at(&database, 5_000 + 620_000, first()).await;
    assert!(!is_there(&database, 5_000 + 620_000).await);
    database.verify().await;
}

#[tokio::test]
async fn without_a_grace_leases_run_on() {
    let database = Database::new().await;
    let off = |beat| Beat {
        max_pause: Duration::ZERO,
        ..beat
    };
    beats_at(&database, 0, off(first())).await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert!(is_there(&database, 15_000).await);
    assert!(!is_there(&database, 15_001).await);
    let beaten = beats_at(&database, 60_000, off(first())).await;
    assert_eq!((beaten.was_outage, beaten.paused_ms), (true, 0));
    assert!(!is_there(&database, 60_000).await);
    database.verify().await;
}

#[tokio::test]
async fn a_jump_of_the_databases_clock_in_either_direction_expires_nobody() {
    // What was judged before the beat that told of it stands: up to half a second.
    for (jump_ms, judged) in [(3_600_000_i64, 500), (-3_600_000, 0)] {
        let database = served_until(5_000).await;
        let later = 6_000 + jump_ms;
        // It was heard of a second ago by a clock that does not jump.
        let beaten = beats_at(&database, later, next()).await;
        assert_eq!(
            (beaten.was_outage, beaten.paused_ms),
            (true, jump_ms - judged)
        );
        // Six of the fifteen seconds are over.
        let end = later + 9_000 - judged;
        serves(&database, later + 1_000, later + 8_000).await;
        assert!(is_there(&database, end).await, "{jump_ms}");
        assert!(!is_there(&database, end + 1).await, "{jump_ms}");
        database.verify().await;
    }
}

#[tokio::test]
async fn an_instance_that_was_slow_to_beat_does_not_take_anothers_time_for_its_own() {
    for (jump_ms, left_ms) in [(3_600_000_i64, 7_600), (-3_600_000, 9_100)] {
        let database = served_until(3_000).await;
        let another = Beat {
            instance: 2,
            ..next()
        };
        beats_at(&database, 5_900, another).await;
        // A tenth of a second after the other's beat, and three after its own.
        let slow = Beat {
            since: Some(Duration::from_millis(2_900)),
            ..first()
        };
        let later = 6_000 + jump_ms;
        assert!(beats_at(&database, later, slow).await.was_outage);
        // The clock stood where the other's beat had left it, or a reach behind that.
        serves(&database, later + 1_000, later + left_ms - 600).await;
        assert!(is_there(&database, later + left_ms).await, "{jump_ms}");
        assert!(!is_there(&database, later + left_ms + 1).await, "{jump_ms}");
        database.verify().await;
    }
}

#[tokio::test]
async fn it_does_not_matter_who_comes_back_first_or_how_many() {
    let database = served_until(5_000).await;
    for instance in 0..5 {
        let beaten = beats_at(&database, 45_000 + instance, first()).await;
        assert_eq!(beaten.was_outage, instance == 0, "instance {instance}");
    }
    // Eight and a half seconds were left, and the clock stands for five more.
    serves(&database, 46_000, 58_000).await;
    assert!(is_there(&database, 58_500).await);
    assert!(!is_there(&database, 58_501).await);
    database.verify().await;
}

#[tokio::test]
async fn beats_that_race_to_be_the_first_make_up_for_the_gap_once() {
    let database = served_until(5_000).await;
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = database.at(t(45_000));
        racing.spawn(async move { store.beat(first()).await.unwrap() });
    }
    let beaten = racing.join_all().await;
    let outages = beaten.iter().filter(|beaten| beaten.was_outage);
    assert_eq!(outages.count(), 1, "{beaten:?}");
    database.verify().await;
}

#[tokio::test]
async fn the_clock_runs_as_far_as_a_beat_reaches_and_never_goes_back() {
    let database = served_until(5_000).await;
    let clock = async |ms| {
        sqlx::query_scalar!(
            r#"select leasehold.lease_clock($1) - leasehold.micros($2) as "micros!""#,
            t(ms),
            t(0)
        )
        .fetch_one(&database.pool)
        .await
        .unwrap()
    };
    assert_eq!(clock(6_500).await, 6_500_000);
    for later in [6_501, 8_000, 8_001, 40_000] {
        assert_eq!(clock(later).await, 6_500_000, "at {later}");
    }
    assert_eq!(clock(4_000).await, 5_000_000, "never before the last beat");
    // A beat that is late, and within the gap, lets it catch up.
    let beaten = beats_at(&database, 8_000, next()).await;
    assert_eq!((beaten.was_outage, beaten.paused_ms), (false, 0));
    assert_eq!(clock(8_000).await, 8_000_000);
    database.verify().await;
}

#[tokio::test]
async fn where_no_instance_has_ever_served_leases_run_by_the_databases_clock() {
    let database = Database::new().await;
    database
        .at(t(0))
        .join(&[join("r", "alice")], Default::default())
        .await
        .unwrap();
    assert!(is_there(&database, 15_000).await);
    assert!(!is_there(&database, 15_001).await);
    // Its first beat is no outage, however long the database was there before.
    let beaten = beats_at(&database, 20_000, first()).await;
    assert_eq!((beaten.was_outage, beaten.paused_ms), (false, 0));
    assert_eq!(renewal(&database, 20_000).await, Err(StaleReason::Expired));
    database.verify().await;
}

#[tokio::test]
async fn coming_back_writes_one_row_however_many_members_there_are() {
    let database = served_until(5_000).await;
    database
        .execute(
            "select from leasehold.join_members(
                 array(select 'room-' || n / 10 from generate_series(1, 5000) n),
                 array(select 'user-' || n from generate_series(1, 5000) n),
                 array_fill(''::text, array[5000]), array_fill(15000, array[5000]),
                 p_now => (select last_at from leasehold.pulse))",
        )
        .await;
    let digest = database.digest().await;
    beats_at(&database, 45_000, first()).await;
    assert_eq!(database.digest().await, digest, "no session is touched");
    let census = database.at(t(49_000)).census().await.unwrap();
    assert_eq!(census.active_members, 5_001);
    assert_eq!(census.outages, 1);
    database.verify().await;
}

#[tokio::test]
async fn verify_finds_a_lease_clock_that_its_outages_do_not_explain() {
    let database = served_until(5_000).await;
    beats_at(&database, 45_000, first()).await;
    database
        .execute("update leasehold.pulse set paused = paused + 1")
        .await;
    let violations = database.store.verify().await.unwrap();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].invariant, 4);
}

/// A session of bob's alone in a room, with a lease of 2.5 s.
async fn bob_joins(database: &Database, ms: i64) {
    let bob = Join {
        lease: lease(2_500),
        ..join("s", "bob")
    };
    let store = database.at(t(ms));
    store.join(&[bob], Default::default()).await.unwrap();
}

async fn bob_renews(database: &Database, ms: i64) -> Result<(), StaleReason> {
    let beats = [beat("s", "bob", "", 1)];
    let outcomes = database.at(t(ms)).renew(&beats).await;
    outcomes.unwrap().swap_remove(0)
}

#[tokio::test]
async fn a_lease_that_begins_while_a_beat_is_late_is_no_shorter() {
    let database = served_until(5_000).await;
    bob_joins(&database, 7_800).await;
    // It is late, but no outage: the clock catches up.
    beats_at(&database, 7_900, next()).await;
    assert_eq!(bob_renews(&database, 9_500).await, Ok(()));

    beats_at(&database, 9_900, next()).await;
    assert_eq!(bob_renews(&database, 11_900).await, Ok(()));
    beats_at(&database, 12_800, next()).await;
    beats_at(&database, 13_800, next()).await;
    assert_eq!(bob_renews(&database, 14_200).await, Ok(()));
    beats_at(&database, 14_800, next()).await;
    beats_at(&database, 15_800, next()).await;
    beats_at(&database, 16_800, next()).await;
    assert_eq!(
        bob_renews(&database, 16_800).await,
        Err(StaleReason::Expired)
    );
    database.verify().await;
}

#[tokio::test]
async fn no_renewal_after_an_outage_shortens_a_lease_that_began_at_its_start() {
    let database = served_until(5_000).await;
    bob_joins(&database, 7_900).await;
    beats_at(&database, 20_000, first()).await;
    assert_eq!(bob_renews(&database, 20_000).await, Ok(()));
    database.verify().await;
}
