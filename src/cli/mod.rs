//! The subcommands.

mod cell;
mod commands;
mod dev;

pub use commands::Cli;
