//! Decisions about other people's sessions, by row, whatever those do meanwhile.

mod doors;
mod everywhere;
mod metadata;
mod reading;
mod removal;
