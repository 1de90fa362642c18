//! Rooms spread over several databases.

mod citus;
mod elsewhere;
mod haproxy;
mod killed;
mod load;
mod map;
mod moving;
mod paused;
mod slots;
mod streams;

use std::time::Duration;

use leasehold::cells::Move;
use leasehold::domain::{SlotState, Slots, slot_of};

use super::support::race::Side;
use super::support::{Database, room};

/// Longer than any transaction of a test that is not about that.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A database that owns these slots, under a name of its own: those of tests are copies of one.
pub async fn cell(slots: &str) -> Database {
    let database = Database::new().await;
    database
        .execute("update leasehold.feed set name = left(gen_random_uuid()::text, 8)")
        .await;
    if slots != "all" {
        let slots = slots.parse().unwrap();
        database.store.own_slots(&slots).await.unwrap();
    }
    database
}

/// A database that owns every slot without having been told, and one that owns none.
pub async fn pair() -> (Database, Database) {
    (cell("all").await, cell("none").await)
}

/// What a statement answers.
pub async fn ask(database: &Database, sql: &str) -> Vec<String> {
    Side::new(database).await.run(sql).await
}

/// Outcome, epoch and generation of a join.
pub async fn join(database: &Database, room: &str, user: &str) -> String {
    let sql = format!(
        "select concat_ws(' ', outcome, epoch, generation) from leasehold.join_member('{room}', '{user}')"
    );
    ask(database, &sql).await.remove(0)
}

/// The slots of these rooms.
pub fn slots_of(rooms: &[&str]) -> Slots {
    rooms.iter().map(|id| slot_of(&room(id))).collect()
}

/// A move that is about to begin.
pub async fn moving(source: &Database, target: &Database, slots: &Slots) -> Move {
    let (source, target) = (source.settings(), target.settings());
    Move::begin(&source, &target, slots, PATIENCE)
        .await
        .unwrap()
}

/// Takes all of them in one group.
pub async fn take(source: &Database, target: &Database, slots: &Slots) {
    let mut moving = moving(source, target, slots).await;
    moving.take(slots).await.unwrap();
    moving.close().await.unwrap();
}

/// What a database is to a slot.
pub async fn state(database: &Database, slot: i32) -> SlotState {
    let slots = database.store.slots().await.unwrap();
    slots[usize::try_from(slot).unwrap()].1
}
