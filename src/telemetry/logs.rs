//! The form of the logs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For a person at a terminal.
    Human,
    /// One JSON object a line.
    Json,
}

/// Sends logs to standard error. A second call changes nothing.
pub fn start_logs(filter: EnvFilter, format: LogFormat) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let outcome = match format {
        LogFormat::Human => builder.with_target(false).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .try_init(),
    };
    if outcome.is_err() {
        tracing::debug!("logs were set up before");
    }
}
