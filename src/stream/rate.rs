//! How often a room's subscribers hear of it: the one place that says so.

use std::time::Duration;

/// The pause between two reads of the smallest room: 250 a second at most.
const BASE: Duration = Duration::from_millis(4);
/// What each person to read and each subscriber to write to adds to it.
const PER_HEAD: Duration = Duration::from_micros(200);
/// No room waits longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// The least time between two reads of a room, counted from the start of the
/// first: 4 ms and 0.2 ms for each person and each subscriber, up to a second.
/// What changes after a quiet while is read at once.
pub(crate) fn pause(persons: usize, subscribers: usize) -> Duration {
    let heads = u32::try_from(persons.saturating_add(subscribers)).unwrap_or(u32::MAX);
    BASE.saturating_add(PER_HEAD.saturating_mul(heads))
        .min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_room_is_read_less_often_and_each_once_a_second_at_least() {
        assert_eq!(pause(5, 5), Duration::from_millis(6));
        assert_eq!(pause(50, 1_000), Duration::from_millis(214));
        assert_eq!(pause(usize::MAX, 1), Duration::from_secs(1));
    }
}
