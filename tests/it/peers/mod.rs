//! Clients that are gone, take nothing, or take too much: what they hold comes back.

mod gone;
mod seats;
mod stalled;
