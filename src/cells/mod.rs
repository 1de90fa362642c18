//! Rooms spread over several databases: slots of them taken from one to another under load, and
//! which database owns which.

mod map;
mod moving;
mod rooms;

pub use map::{Cell, NoMap, slot_map};
pub use moving::{Move, MoveError, Moved};
