//! What is logged, and how it looks.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::telemetry::LogFormat;

/// The log, on standard error.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// What is logged: error, warn, info, debug, or a filter like info,sqlx=debug
    #[arg(long, env = "LEASEHOLD_LOG", default_value = "info", value_parser = log_filter)]
    pub log: String,

    /// How a log line looks: human or json
    #[arg(long, env = "LEASEHOLD_LOG_FORMAT", default_value = "human", value_parser = log_format)]
    pub log_format: LogFormat,
}

fn log_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "LEASEHOLD_LOG must be a level or a filter like info,sqlx=debug: {error}"
        )),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    <LogFormat as ValueEnum>::from_str(text, true)
        .map_err(|_| "LEASEHOLD_LOG_FORMAT must be one of human, json".to_owned())
}
