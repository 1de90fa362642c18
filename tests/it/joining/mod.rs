//! What a join finds, and what it may say.

mod again;
mod devices;
mod vouched;
