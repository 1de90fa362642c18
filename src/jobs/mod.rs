//! What runs on a schedule: a step that says what it did, apart from the loop that repeats it.

mod sweep;

pub use sweep::{Sweep, Swept};
