//! Settings of the pages beside the API.

use clap::{ArgAction, Args};

use super::value::on_or_off;
use crate::http::Pages;

/// Which pages there are.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// Whether there is a console at /console; it needs a key or token as any other client does
    #[arg(long, env = "LEASEHOLD_CONSOLE", default_value = "on", action = ArgAction::Set,
          value_parser = on_or_off("LEASEHOLD_CONSOLE"))]
    pub console: bool,

    /// Whether there is a demo at /demo: on or off; if left out only in `leasehold dev`
    #[arg(long, env = "LEASEHOLD_DEMO", action = ArgAction::Set, value_parser = on_or_off("LEASEHOLD_DEMO"))]
    pub demo: Option<bool>,
}

impl PageArgs {
    /// Those that are on.
    pub fn pages(&self) -> Pages {
        Pages {
            console: self.console,
            demo: self.demo.unwrap_or(false),
        }
    }
}
