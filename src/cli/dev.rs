//! `leasehold dev`: a private Postgres, and the service on it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use private_postgres::{Cluster, ClusterOptions};
use tokio::task::spawn_blocking;
use tracing_subscriber::EnvFilter;

use super::commands::stop_signals;
use crate::app::Application;
use crate::config::{DatabaseArgs, ServeArgs};
use crate::http::Pages;
use crate::store::Migrations;
use crate::telemetry::start_logs;

pub(super) async fn dev(data_dir: PathBuf, mut args: ServeArgs) -> anyhow::Result<ExitCode> {
    args.pages.demo.get_or_insert(true);
    start_logs(EnvFilter::new(&args.logs.log), args.logs.log_format);
    let stopping = stop_signals()?;
    let cluster = spawn_blocking(|| Cluster::start(ClusterOptions::durable(data_dir))).await??;
    let database = DatabaseArgs {
        database_url: Some(cluster.url("postgres").into()),
        database_url_file: None,
    };
    Migrations::apply(&database.once()).await?;
    let application = Application::build(&args, database.url()).await?;
    println!(
        "{}",
        welcome(application.address(), args.pages.pages(), &cluster)
    );
    application.run_until(stopping).await?;
    spawn_blocking(|| cluster.stop()).await??;
    println!("stopped; the data stays for the next run");
    Ok(ExitCode::SUCCESS)
}

/// What to try first.
fn welcome(address: SocketAddr, pages: Pages, cluster: &Cluster) -> String {
    // A room of its own for each run, so that its first epoch is 1; the demo shows what is tried in it.
    let name = format!("tour-{:04x}", rand::random::<u16>());
    let pages = [
        (pages.demo, format!("demo?room={name}")),
        (pages.console, "console".to_owned()),
    ];
    let pages: String = pages
        .iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, path)| format!("  http://{address}/{path}\n"))
        .collect();
    let room = format!("http://{address}/rooms/{name}");
    let post = |action: &str, body: &str| {
        format!("  curl {room}/{action} -H 'content-type: application/json' -d '{body}'")
    };
    format!(
        "Leasehold listens on http://{address}\n\
         \n\
         {pages}\
         \n\
         {}\n\
         {}\n  \
           curl {room}/participants\n\
         {}\n\
         \n  \
           psql '{}'\n\
         \n\
         Ctrl-C stops it; the data stays.",
        post("join", r#"{"userId":"alice"}"#),
        post("heartbeat", r#"{"userId":"alice","epoch":1}"#),
        post("leave", r#"{"userId":"alice","epoch":1}"#),
        cluster.url("postgres"),
    )
}
