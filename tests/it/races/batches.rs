//! Where batches over the same rooms and members meet: they wait in one order, so none waits for ever.

use leasehold::domain::Join;

use super::super::support::race::{Side, at, beat_sql, join_sql, leave_sql, lock_room};
use super::super::support::{Database, join, join_on, lease, t};
use super::with_alice;

/// A database in which these are in room `r` at epoch 1.
async fn with_members(database: Database, users: &[&str]) -> Database {
    let joins: Vec<_> = users.iter().map(|user| join("r", user)).collect();
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    database
}

fn array(items: &[&str]) -> String {
    format!("array['{}']", items.join("', '"))
}

/// Leaves of these users' first epochs in room `r`, in this order.
fn leaves(users: &[&str]) -> String {
    format!(
        "select unnest(l.outcomes) from leasehold.leave_members(
             array_fill('r'::text, array[{n}]), {users}, array_fill(1::bigint, array[{n}]),
             array_fill(''::text, array[{n}]), {at}) l",
        n = users.len(),
        users = array(users),
        at = at(100),
    )
}

/// Joins of these rooms and users, in this order.
fn joins(requests: &[(&str, &str)]) -> String {
    let (rooms, users): (Vec<_>, Vec<_>) = requests.iter().copied().unzip();
    format!(
        "select unnest(j.outcomes) from leasehold.join_members(
             {rooms}, {users}, array_fill(''::text, array[{n}]), array_fill(15000, array[{n}]),
             p_now => {at}) j",
        n = requests.len(),
        rooms = array(&rooms),
        users = array(&users),
        at = at(100),
    )
}

fn lock_member(user: &str) -> String {
    format!("select from leasehold.members where user_id = '{user}' for update")
}

/// Both steps come to wait while the lock is held; what they answer once it is released.
async fn both(
    database: &Database,
    lock: String,
    first: String,
    second: String,
) -> Result<(Vec<String>, Vec<String>), sqlx::Error> {
    let mut holder = Side::holding(database, lock).await;
    let first = Side::new(database).await.waits(first).await;
    let second = Side::new(database).await.waits(second).await;
    holder.run("commit").await;
    let (first, second) = tokio::join!(first.answer(), second.answer());
    Ok((first?, second?))
}

/// A transaction that beats for these two one after the other, and a step that comes to wait for
/// it in between: what the second beat and the step answer.
async fn between_beats(
    database: &Database,
    [first, second]: [String; 2],
    step: String,
) -> Result<(String, Vec<String>), sqlx::Error> {
    let mut beats = Side::holding(database, first).await;
    let step = Side::new(database).await.waits(step).await;
    let beaten = beats.answer_of(second).await?;
    beats.run("commit").await;
    Ok((beaten.concat(), step.answer().await?))
}

fn beats_of_a_and_z() -> [String; 2] {
    [beat_sql("a", 1, 100), beat_sql("z", 1, 100)]
}

#[tokio::test]
async fn joins_of_the_same_rooms_in_opposite_orders_all_join() {
    let database = with_alice().await;
    let (first, second) = both(
        &database,
        lock_room("r"),
        joins(&[("r", "bob"), ("s", "bob"), ("t", "bob")]),
        joins(&[("t", "carol"), ("s", "carol"), ("r", "carol")]),
    )
    .await
    .unwrap();
    assert_eq!(first, ["joined"; 3]);
    assert_eq!(second, ["joined"; 3]);
    database.verify().await;
}

#[tokio::test]
async fn a_leave_of_members_waits_for_the_first_of_them_and_holds_no_other() {
    let database = with_members(Database::new().await, &["a", "z"]).await;
    let (beaten, left) = between_beats(&database, beats_of_a_and_z(), leaves(&["z", "a"]))
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(left, ["left", "left"]);
    database.verify().await;
}

#[tokio::test]
async fn a_rejoin_of_members_waits_for_the_first_of_them_and_holds_no_other() {
    let database = with_members(Database::new().await, &["a", "z"]).await;
    let rejoin = joins(&[("r", "z"), ("r", "a")]);
    let (beaten, joined) = between_beats(&database, beats_of_a_and_z(), rejoin)
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(joined, ["joined", "joined"]);
    database.verify().await;
}

/// What the order is for.
#[tokio::test]
async fn without_an_order_a_leave_of_members_would_deadlock_with_their_heartbeats() {
    let database = with_members(Database::new().await, &["a", "z"]).await;
    database
        .replace_in("lock_sessions", "order by 1, 2, 3", "order by 1, 2 desc, 3")
        .await;
    let answers = between_beats(&database, beats_of_a_and_z(), leaves(&["a", "z"])).await;
    let error = answers.unwrap_err();
    assert!(error.to_string().contains("deadlock"), "{error}");
}

/// A database in which room `r` holds `a` for a minute and `z` for 15 s.
async fn with_one_about_to_expire() -> Database {
    let database = with_members(Database::new().await, &["z"]).await;
    let stays = Join {
        lease: lease(60_000),
        ..join("r", "a")
    };
    let joined = database.at(t(0)).join(&[stays], Default::default()).await;
    joined.unwrap()[0].as_ref().unwrap();
    database
}

#[tokio::test]
async fn a_rejoin_that_prunes_another_member_locks_both_in_one_order() {
    let database = with_one_about_to_expire().await;
    let rejoin = join_sql("a", 15_001);
    let (beaten, joined) = between_beats(&database, beats_of_a_and_z(), rejoin)
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(joined, ["joined 2 1"]);
    database.verify().await;
}

#[tokio::test]
async fn a_leave_that_prunes_another_member_locks_both_in_one_order() {
    let database = with_one_about_to_expire().await;
    let leave = leave_sql("a", 1, 15_001);
    let (beaten, left) = between_beats(&database, beats_of_a_and_z(), leave)
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(left, ["left"]);
    database.verify().await;
}

#[tokio::test]
async fn closing_a_room_locks_its_expired_and_its_other_members_in_one_order() {
    let database = with_one_about_to_expire().await;
    let close = format!(
        "select concat_ws(' ', outcome, sessions_ended)
           from leasehold.close_room('r', p_now => {})",
        at(15_001)
    );
    let (beaten, closed) = between_beats(&database, beats_of_a_and_z(), close)
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(closed, ["closed 2"]);
    database.verify().await;
}

#[tokio::test]
async fn closing_a_room_locks_the_room_before_its_members() {
    let database = with_members(Database::new().await, &["a", "z"]).await;
    let close = format!(
        "select concat_ws(' ', outcome, sessions_ended)
           from leasehold.close_room('r', p_now => {})",
        at(100)
    );
    let (closed, left) = both(&database, lock_member("a"), close, leave_sql("a", 1, 100))
        .await
        .unwrap();
    assert_eq!(closed, ["closed 2"]);
    assert_eq!(left, ["room_closed"]);
    database.verify().await;
}

#[tokio::test]
async fn removing_a_person_locks_all_devices_in_one_order() {
    let database = Database::new().await;
    let stays = Join {
        lease: lease(60_000),
        ..join_on("r", "alice", "a")
    };
    let joins = [join_on("r", "alice", "z"), stays];
    database
        .at(t(0))
        .join(&joins, Default::default())
        .await
        .unwrap();
    let beat = |device, epoch| {
        format!(
            "select leasehold.heartbeat_member('r', 'alice', {epoch}, '{device}', p_now => {})",
            at(100)
        )
    };
    let remove = format!(
        "select concat_ws(' ', outcome, sessions_ended)
           from leasehold.remove_member('r', 'alice', p_now => {})",
        at(15_001)
    );
    let (beaten, removed) = between_beats(&database, [beat("a", 2), beat("z", 1)], remove)
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(removed, ["removed 2"]);
    database.verify().await;
}

/// Ids are compared by their bytes, whatever the language of the database.
#[tokio::test]
async fn in_a_database_that_sorts_like_a_dictionary_joins_and_leaves_still_share_one_order() {
    let Some(database) = Database::sorted_like_a_dictionary().await else {
        return;
    };
    database
        .at(t(0))
        .join(
            &[join("B", "alice"), join("a", "alice")],
            Default::default(),
        )
        .await
        .unwrap();
    let leaves = format!(
        "select unnest(l.outcomes) from leasehold.leave_members(
             array['a', 'B'], array['alice', 'alice'], array[1, 1]::bigint[], array['', ''], {}) l",
        at(100)
    );
    let (left, joined) = both(
        &database,
        lock_room("B"),
        leaves,
        joins(&[("B", "bob"), ("a", "bob")]),
    )
    .await
    .unwrap();
    assert_eq!(left, ["left", "left"]);
    assert_eq!(joined, ["joined", "joined"]);
    database.verify().await;
}

#[tokio::test]
async fn in_a_database_that_sorts_like_a_dictionary_sessions_are_locked_by_their_bytes() {
    let Some(database) = Database::sorted_like_a_dictionary().await else {
        return;
    };
    let database = with_members(database, &["B", "a"]).await;
    let beats = [beat_sql("B", 1, 100), beat_sql("a", 1, 100)];
    let (beaten, left) = between_beats(&database, beats, leaves(&["a", "B"]))
        .await
        .unwrap();
    assert_eq!(beaten, "renewed");
    assert_eq!(left, ["left", "left"]);
    database.verify().await;
}

#[tokio::test]
async fn a_second_sweep_returns_at_once_while_the_first_is_under_way() {
    let database = with_alice().await;
    let sweep = format!(
        "select concat_ws(' ', ran, members_expired, rooms_closed, finished)
           from leasehold.sweep(p_now => {})",
        at(15_001)
    );
    let mut first = Side::holding(&database, "select").await;
    assert_eq!(first.run(sweep.clone()).await, ["t 1 1 t"]);
    let mut second = Side::new(&database).await;
    assert_eq!(second.run(sweep.clone()).await, ["f 0 0 f"]);
    first.run("commit").await;
    assert_eq!(second.run(sweep).await, ["t 0 0 t"]);
    database.verify().await;
}
