//! Parses the command line and runs one subcommand.

use std::process::ExitCode;

use clap::Parser;
use leasehold::cli::Cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
