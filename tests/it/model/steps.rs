//! Random sequences of batches over few rooms, users and devices, with steps of time that meet the leases' ends.

use proptest::prelude::*;

#[derive(Debug, Clone)]
pub struct Join {
    pub room: String,
    pub user: String,
    pub device: String,
    pub lease_ms: u32,
    pub cursor: Option<i64>,
    pub metadata: Option<i64>,
    pub reject: bool,
    /// What its caller calls it.
    pub id: Option<u8>,
    pub capacity: Option<i32>,
}

#[derive(Debug, Clone)]
pub struct Beat {
    pub room: String,
    pub user: String,
    pub device: String,
    pub epoch: Epoch,
    pub lease_ms: Option<u32>,
    pub cursor: Option<Option<i64>>,
    pub metadata: Option<Option<i64>>,
}

#[derive(Debug, Clone)]
pub struct Leave {
    pub room: String,
    pub user: String,
    pub device: String,
    pub epoch: Epoch,
}

/// An epoch as the state at that moment gives it.
#[derive(Debug, Clone, Copy)]
pub enum Epoch {
    /// That of the device's session, or the newest of the user.
    Held,
    /// The newest of the user, less this many.
    Back(i64),
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub members: Option<i32>,
    pub devices: Option<i32>,
    pub rooms: Option<i32>,
}

#[derive(Debug, Clone)]
pub enum Operation {
    Join(Vec<Join>, Limits),
    Beat(Vec<Beat>),
    Leave(Vec<Leave>),
    List(Vec<String>),
    Prune(Vec<String>),
    /// An instance serves; after three seconds without, nobody did.
    Pulse,
    /// In batches of so many members, until finished.
    Sweep(i32),
}

/// An operation, and how long after the one before, in milliseconds.
#[derive(Debug, Clone)]
pub struct Step {
    pub after_ms: i64,
    pub operation: Operation,
}

fn room() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "B", "c"]).prop_map(str::to_owned)
}

fn user() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["u", "V", "w", "x"]).prop_map(str::to_owned)
}

fn device() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "", "phone", "Tab"]).prop_map(str::to_owned)
}

fn lease_ms() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1_000, 2_000, 5_000])
}

fn epoch() -> impl Strategy<Value = Epoch> {
    prop_oneof![
        6 => Just(Epoch::Held),
        2 => (0..3_i64).prop_map(Epoch::Back),
        1 => Just(Epoch::Back(-1)),
    ]
}

fn json() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(0..9_i64)
}

fn join() -> impl Strategy<Value = Join> {
    (
        room(),
        user(),
        device(),
        lease_ms(),
        json(),
        json(),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.4, 0..3_u8),
        prop::option::weighted(0.2, 1..4),
    )
        .prop_map(
            |(room, user, device, lease_ms, cursor, metadata, reject, id, capacity)| Join {
                room,
                user,
                device,
                lease_ms,
                cursor,
                metadata,
                reject,
                id,
                capacity,
            },
        )
}

fn limits() -> impl Strategy<Value = Limits> {
    let limit = |most| prop::option::weighted(0.3, 1..=most);
    (limit(3), limit(2), limit(2)).prop_map(|(members, devices, rooms)| Limits {
        members,
        devices,
        rooms,
    })
}

fn beat() -> impl Strategy<Value = Beat> {
    let lease_ms = prop::option::weighted(0.25, lease_ms());
    let set = || prop::option::weighted(0.3, json());
    (room(), user(), device(), epoch(), lease_ms, set(), set()).prop_map(
        |(room, user, device, epoch, lease_ms, cursor, metadata)| Beat {
            room,
            user,
            device,
            epoch,
            lease_ms,
            cursor,
            metadata,
        },
    )
}

/// About half of them of the first one's session, so that sessions ask more than once.
fn beats() -> impl Strategy<Value = Vec<Beat>> {
    prop::collection::vec((any::<bool>(), beat()), 1..9).prop_map(|draws| {
        let first = draws[0].1.clone();
        let like_first = |(is_same, beat): (bool, Beat)| {
            if !is_same {
                return beat;
            }
            Beat {
                room: first.room.clone(),
                user: first.user.clone(),
                device: first.device.clone(),
                epoch: first.epoch,
                ..beat
            }
        };
        draws.into_iter().map(like_first).collect()
    })
}

fn leave() -> impl Strategy<Value = Leave> {
    (room(), user(), device(), epoch()).prop_map(|(room, user, device, epoch)| Leave {
        room,
        user,
        device,
        epoch,
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let rooms = || prop::collection::vec(room(), 1..4);
    prop_oneof![
        5 => (prop::collection::vec(join(), 1..7), limits())
            .prop_map(|(joins, limits)| Operation::Join(joins, limits)),
        5 => beats().prop_map(Operation::Beat),
        3 => prop::collection::vec(leave(), 1..5).prop_map(Operation::Leave),
        2 => rooms().prop_map(Operation::List),
        1 => rooms().prop_map(Operation::Prune),
        4 => Just(Operation::Pulse),
        1 => prop::sample::select(vec![1, 2, 1_000]).prop_map(Operation::Sweep),
    ]
}

/// Steps of time that come to stand just before, at and just past the end of a lease, and of the lease clock's reach.
fn after_ms() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => Just(0),
        2 => prop::sample::select(vec![1, 999, 1_000, 1_001, 1_500, 2_000, 3_000, 3_001, 4_999, 5_000]),
        2 => 0..1_500_i64,
    ]
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (after_ms(), operation()).prop_map(|(after_ms, operation)| Step {
        after_ms,
        operation,
    });
    prop::collection::vec(step, 1..40)
}
