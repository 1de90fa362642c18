//! A private PostgreSQL for scripts.
//!
//! ```text
//! private-postgres bin                  prints the directory of initdb and postgres
//! private-postgres run COMMAND [ARG…]   runs it with DATABASE_URL naming an empty database
//! ```

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use private_postgres::{Cluster, ClusterError, ClusterOptions, Programs};

/// So many commands may run at a time from one directory; what an earlier one left behind is removed.
const AT_ONCE: u32 = 16;

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the answer to the person at the terminal"
)]
fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let outcome = match (arguments.next(), arguments.next()) {
        (Some(word), None) if word == "bin" => Programs::find().map(|programs| {
            println!("{}", programs.bin().display());
            ExitCode::SUCCESS
        }),
        (Some(word), Some(command)) if word == "run" => run(command, arguments),
        _ => {
            eprintln!("usage: private-postgres bin | private-postgres run COMMAND [ARGUMENT...]");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("private-postgres: {error}");
        ExitCode::FAILURE
    })
}

/// The exit code is the command's.
fn run(
    command: OsString,
    arguments: impl Iterator<Item = OsString>,
) -> Result<ExitCode, ClusterError> {
    let bin = Programs::find()?.bin().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    // As it is where they are on it already: builds look at whether it has changed.
    let path = match env::split_paths(&path).any(|directory| directory == bin) {
        true => Ok(path),
        false => env::join_paths([bin].into_iter().chain(env::split_paths(&path))),
    };
    let cluster = start()?;
    let status = Command::new(&command)
        .args(arguments)
        .env("DATABASE_URL", cluster.url("postgres"))
        .env("PATH", path.unwrap_or_default())
        .status()
        .map_err(|source| ClusterError::Io {
            action: "run",
            path: command.into(),
            source,
        })?;
    cluster.stop()?;
    // A command that a signal ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The first throw-away cluster of this directory that nobody uses.
fn start() -> Result<Cluster, ClusterError> {
    let mut place = 0;
    loop {
        match Cluster::start(ClusterOptions::throw_away(&format!("run-{place}"))) {
            Err(ClusterError::InUse { .. }) if place + 1 < AT_ONCE => place += 1,
            started => return started,
        }
    }
}
