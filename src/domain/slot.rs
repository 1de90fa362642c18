//! Which rooms belong together where they are spread over several databases.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::RoomId;
use super::word::words;

/// How many slots there are; every room is of one of them.
pub const SLOTS: i32 = 4_096;

/// The slot of a room, as the SQL function `leasehold.slot_of` has it: the first three hexadecimal
/// digits of the SHA-256 of its id.
pub fn slot_of(room_id: &RoomId) -> i32 {
    let hash = Sha256::digest(room_id.as_str().as_bytes());
    i32::from(hash[0]) << 4 | i32::from(hash[1]) >> 4
}

words! {
    /// What a database is to a slot.
    SlotState {
        /// Its rooms are there.
        Owned => "owned",
        /// They were, and go to another database.
        Leaving => "leaving",
        /// They come from another database.
        Arriving => "arriving",
        /// They are elsewhere.
        Absent => "absent",
    }
}

/// Some of the slots, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots(BTreeSet<i32>);

/// A text that names no slots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no slots; write numbers and ranges from 0 to 4095 like 0-1023,2048, or all or none"
)]
pub struct InvalidSlots(String);

impl Slots {
    /// Their numbers.
    pub fn numbers(&self) -> Vec<i32> {
        self.0.iter().copied().collect()
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<i32> for Slots {
    fn from_iter<I: IntoIterator<Item = i32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl FromStr for Slots {
    type Err = InvalidSlots;

    fn from_str(text: &str) -> Result<Self, InvalidSlots> {
        let invalid = || InvalidSlots(text.to_owned());
        match text {
            "all" => return Ok((0..SLOTS).collect()),
            "none" => return Ok(Self::default()),
            _ => {}
        }
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.filter(|n| (0..SLOTS).contains(n))
        };
        let mut slots = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = number(first).zip(number(last));
            let (first, last) = range.filter(|(a, b)| a <= b).ok_or_else(invalid)?;
            slots.extend(first..=last);
        }
        Ok(Self(slots))
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let mut numbers = self.0.iter().copied().peekable();
        let mut is_first = true;
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if_eq(&(last + 1)) {
                last = next;
            }
            if !std::mem::replace(&mut is_first, false) {
                f.write_str(",")?;
            }
            match last == first {
                true => write!(f, "{first}")?,
                false => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_as_they_are_written() {
        for text in ["0", "4095", "0-3", "0-1023,2048", "7,9,11-12", "none"] {
            assert_eq!(text.parse::<Slots>().unwrap().to_string(), text);
        }
        assert_eq!("all".parse::<Slots>().unwrap().to_string(), "0-4095");
        assert_eq!("3,1,2,2".parse::<Slots>().unwrap().to_string(), "1-3");
    }

    #[test]
    fn what_names_no_slots_is_refused() {
        for text in ["", "4096", "-1", "3-1", "1,,2", "a", "0-4096"] {
            assert!(text.parse::<Slots>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_room_is_of_the_slot_that_the_first_digits_of_its_hash_name() {
        // printf kitchen | sha256sum
        let kitchen = RoomId::parse("kitchen").unwrap();
        assert_eq!(slot_of(&kitchen), 0x317);
    }
}
