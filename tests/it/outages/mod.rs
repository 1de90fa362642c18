//! Time in which nobody could renew: the lease clock stands still, for every reader and writer.

mod fake_time;
mod listing;
mod processes;
