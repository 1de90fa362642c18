//! Parses the command line and runs one subcommand.

use std::process::ExitCode;

use clap::Parser;
use leasehold::cli::Cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::print_stderr,
    reason = "the answer to the person at the terminal, where there may be no log yet"
)]
fn main() -> ExitCode {
    let cli = Cli::parse();
    match actix_web::rt::System::new().block_on(cli.run()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("leasehold: {error:#}");
            ExitCode::FAILURE
        }
    }
}
