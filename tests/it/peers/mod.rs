//! Clients that are gone, take nothing, or take too much: what they hold comes back.

mod descriptors;
mod gone;
mod hasty;
mod seats;
mod stalled;
