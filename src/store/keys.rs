//! The one place that turns sessions into the arrays that SQL takes.

use crate::domain::SessionKey;

/// One array per column of a slice of sessions, in its order.
pub(super) struct KeyArrays<'a> {
    pub(super) rooms: Vec<&'a str>,
    pub(super) users: Vec<&'a str>,
    pub(super) devices: Vec<&'a str>,
    pub(super) epochs: Vec<i64>,
}

impl<'a> KeyArrays<'a> {
    pub(super) fn new(keys: impl Iterator<Item = &'a SessionKey> + Clone) -> Self {
        Self {
            rooms: keys.clone().map(|key| key.room_id.as_str()).collect(),
            users: keys.clone().map(|key| key.user_id.as_str()).collect(),
            devices: keys.clone().map(|key| key.device_id.as_sql()).collect(),
            epochs: keys.map(|key| key.epoch).collect(),
        }
    }
}
