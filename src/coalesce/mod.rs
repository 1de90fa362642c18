//! Many requests, one commit.
//!
//! Each kind of operation has a queue and a task that takes everything that
//! waits in it, makes one call of it, answers every caller, and starts over.
//! There is no timer: an idle one starts at once, and a busy one gathers what
//! arrives meanwhile, so the batch is as large as the load needs.
//!
//! A call never waits long for a row that another transaction holds: requests
//! that need such a row wait for it in a place of their own, and come back to
//! the queue when it is released, under the deadline with which they came.
//!
//! A call runs in a task of its own: a caller that goes away cancels nothing.

mod coalescer;
mod holds;
mod operation;
#[cfg(test)]
mod tests;

pub use coalescer::{Coalescer, Settings};
pub use holds::{Await, Holds};
pub use operation::{Answered, NoAnswer, Operation};
