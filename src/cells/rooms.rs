//! The rooms that a move has to look at, by their slots.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::Slots;
use crate::store::{CellEnd, FeedPlace, StoreError};

/// Every room of the slots of a move of which its source knows something: found once, and from then
/// on those in which something happened.
pub(super) struct MovingRooms {
    slots: Slots,
    since: FeedPlace,
    by_slot: BTreeMap<i32, BTreeSet<String>>,
}

impl MovingRooms {
    pub(super) async fn find(source: &mut CellEnd, slots: &Slots) -> Result<Self, StoreError> {
        // Before the look: whatever is not seen by it has yet to be settled.
        let since = source.feed_place().await?;
        let mut found = Self {
            slots: slots.clone(),
            since,
            by_slot: BTreeMap::new(),
        };
        let rooms = source.rooms(slots).await?;
        found.add(rooms);
        Ok(found)
    }

    /// Learns of those that changed since the last time.
    pub(super) async fn refresh(&mut self, source: &mut CellEnd) -> Result<(), StoreError> {
        let now = source.feed_place().await?;
        let changed = source.changed_rooms(&self.slots, &self.since).await?;
        self.add(changed);
        self.since = now;
        Ok(())
    }

    fn add(&mut self, rooms: Vec<(i32, String)>) {
        for (slot, room) in rooms {
            self.by_slot.entry(slot).or_default().insert(room);
        }
    }

    /// Those of these slots.
    pub(super) fn of(&self, slots: &Slots) -> Vec<String> {
        let rooms = slots.numbers().into_iter();
        let rooms = rooms.filter_map(|slot| self.by_slot.get(&slot));
        rooms.flatten().cloned().collect()
    }
}
