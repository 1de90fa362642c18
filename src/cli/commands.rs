//! Which commands there are, and what each does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use futures_util::Stream;
use futures_util::stream::poll_fn;
use private_postgres::default_data_dir;
use secrecy::{ExposeSecret, SecretString};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::cell::CellCommand;
use super::dev::dev;
use crate::app::Application;
use crate::config::{
    AGES, DatabaseArgs, HealthcheckArgs, ReachArgs, ServeArgs, TokenArgs, duration,
};
use crate::domain::{Retention, RoomId, UserId, WebhookSecret};
use crate::http::auth::mint;
use crate::jobs::{Purge, Sweep};
use crate::store::{DatabaseSettings, MigrationTool, Migrations, Store, export_migrations};
use crate::telemetry::{LogFormat, Metrics, start_logs};
use crate::webhooks::send_example;

/// How long a receiver has for an example.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Presence as a fact in Postgres: who is in the room, by lease and epoch.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a private local Postgres whose data lasts across runs, migrate it and serve on it
    Dev {
        /// Where the private Postgres keeps its data
        #[arg(long, env = "LEASEHOLD_DATA_DIR", default_value_os_t = default_data_dir())]
        data_dir: PathBuf,
        #[command(flatten)]
        serve: Box<ServeArgs>,
    },
    /// Serve on DATABASE_URL
    Serve {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        serve: Box<ServeArgs>,
    },
    /// Ask the service on this machine whether it is ready; exit with 1 if it is not
    Healthcheck(HealthcheckArgs),
    /// Apply the migrations that are pending; safe to run from many instances at once
    Migrate {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Change nothing; exit with 1 if anything is pending
        #[arg(long)]
        check: bool,
        /// Stop after the migration with this number
        #[arg(long, conflicts_with = "check")]
        to: Option<i64>,
        /// Change nothing; print what would be applied
        #[arg(long, conflicts_with = "check")]
        dry_run: bool,
        /// How long to wait for locks that others hold, like 30s or 10m
        #[arg(long, env = "LEASEHOLD_LOCK_WAIT", default_value = "1m",
              value_parser = duration("LEASEHOLD_LOCK_WAIT", AGES))]
        lock_wait: Duration,
    },
    /// The embedded migrations
    #[command(subcommand)]
    Migrations(MigrationsCommand),
    /// Run the expiry job once and print what it removed
    Sweep {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Remove the history of sessions that ended long ago, and blocks that have ended
    Purge {
        #[command(flatten)]
        database: DatabaseArgs,
        /// How long the history of a session is kept after its end, like 30d or 12h
        #[arg(long, value_parser = duration("--older-than", AGES))]
        older_than: Duration,
    },
    /// Erase people from the history, ending their sessions
    Erase {
        #[command(flatten)]
        database: DatabaseArgs,
        /// The userId of one; repeat for several
        #[arg(long = "user", required = true, value_parser = |id: &str| UserId::parse(id))]
        users: Vec<UserId>,
    },
    /// Rooms spread over several databases
    #[command(subcommand)]
    Cell(CellCommand),
    /// Mint a client token for development, signed with HS256, and print it
    Token(TokenArgs),
    /// Send a signed example to a receiver of webhooks, and say what it answered
    WebhookTest {
        /// The address of the receiver
        url: String,
        /// The secret that it verifies with: whsec_ and base64
        #[arg(long, env = "LEASEHOLD_WEBHOOK_SECRET", hide_env_values = true)]
        secret: SecretString,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Check every invariant in the database, print each violation, exit with 1 if there is any
    Verify {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Only this room
        #[arg(long, value_parser = |id: &str| RoomId::parse(id))]
        room: Option<RoomId>,
        /// Only rooms in which something happened within this time, like 1h or 7d
        #[arg(long, conflicts_with = "room", value_parser = duration("--since", AGES))]
        since: Option<Duration>,
    },
}

#[derive(Debug, Subcommand)]
enum MigrationsCommand {
    /// Write them as files for another tool, which then applies them instead of `migrate`
    Export {
        /// sql, flyway, dbmate or goose
        #[arg(long, value_parser = |word: &str| MigrationTool::parse(word)
              .ok_or("a format is sql, flyway, dbmate or goose"))]
        format: MigrationTool,
        /// Where to; files that are there already stay
        directory: PathBuf,
    },
}

impl Cli {
    /// Runs one subcommand.
    ///
    /// # Errors
    /// A sentence for the person at the terminal.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Dev { data_dir, serve } => dev(data_dir, *serve).await,
            Command::Serve { database, serve } => serve_until_signal(database, &serve).await,
            Command::Healthcheck(health) => {
                let question = health.question();
                println!("{}", spawn_blocking(move || question.ask()).await??);
                Ok(ExitCode::SUCCESS)
            }
            Command::Migrate {
                database,
                check,
                to,
                dry_run,
                lock_wait,
            } => {
                // Migrations may take their time.
                start_logs(EnvFilter::new("warn,sqlx=error"), LogFormat::Human);
                let settings = DatabaseSettings {
                    timeout: lock_wait,
                    ..database.once()
                };
                if check {
                    check_migrations(&settings).await
                } else {
                    migrate(&settings, to, dry_run).await
                }
            }
            Command::Migrations(MigrationsCommand::Export { format, directory }) => {
                for path in export_migrations(format, &directory)? {
                    println!("{}", path.display());
                }
                Ok(ExitCode::SUCCESS)
            }
            Command::Cell(command) => command.run().await,
            Command::Sweep { database } => sweep(&database).await,
            Command::Purge {
                database,
                older_than,
            } => purge(&database, older_than).await,
            Command::Token(token) => {
                println!("{}", mint(&token.secret, &token.claims())?);
                Ok(ExitCode::SUCCESS)
            }
            Command::WebhookTest { url, secret, reach } => {
                let secret = WebhookSecret::parse(secret.expose_secret())?;
                let said = send_example(&url, secret, reach.reach(), EXAMPLE_TIMEOUT).await?;
                println!("{said}");
                Ok(ExitCode::SUCCESS)
            }
            Command::Erase { database, users } => erase(&database, &users).await,
            Command::Verify {
                database,
                room,
                since,
            } => verify(&database, room.as_ref(), since).await,
        }
    }
}

async fn serve_until_signal(database: DatabaseArgs, args: &ServeArgs) -> anyhow::Result<ExitCode> {
    start_logs(EnvFilter::new(&args.logs.log), args.logs.log_format);
    let application = Application::build(args, database.url()).await?;
    tracing::info!(address = %application.address(), "listening");
    application.run_until(stop_signals()?).await?;
    Ok(ExitCode::SUCCESS)
}

/// An item for each SIGINT and SIGTERM.
pub(super) fn stop_signals() -> anyhow::Result<impl Stream<Item = ()> + Unpin> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    Ok(poll_fn(move |context| {
        let interrupted = interrupt.poll_recv(context);
        if interrupted.is_ready() {
            return interrupted;
        }
        terminate.poll_recv(context)
    }))
}

async fn check_migrations(settings: &DatabaseSettings) -> anyhow::Result<ExitCode> {
    let migrations = Migrations::check(settings).await?;
    for title in &migrations.pending {
        println!("pending: {title}");
    }
    for version in &migrations.unknown {
        let served = !migrations.unserved.contains(version);
        let remark = if served {
            ""
        } else {
            ", and does not say that it works with it"
        };
        println!("newer than this program: {version:04}{remark}");
    }
    for version in &migrations.changed {
        println!("applied with another text: {version:04}");
    }
    if migrations.require_fit().is_ok() {
        println!("the schema is up to date");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

async fn migrate(
    settings: &DatabaseSettings,
    to: Option<i64>,
    dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let target = to.unwrap_or_else(Migrations::newest);
    if dry_run {
        let migrations = Migrations::check(settings).await?;
        migrations.require_known()?;
        for title in migrations.due(target)? {
            println!("would apply: {title}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    for title in Migrations::apply_to(settings, target).await? {
        println!("applied: {title}");
    }
    match Migrations::check(settings).await?.pending.len() {
        0 => println!("the schema is up to date"),
        pending => println!("{pending} migrations are pending"),
    }
    Ok(ExitCode::SUCCESS)
}

async fn sweep(database: &DatabaseArgs) -> anyhow::Result<ExitCode> {
    let store = Store::new(&database.once())?;
    let swept = Sweep::new(store.clone(), Metrics::new()?)
        .run_once(&CancellationToken::new())
        .await?;
    store.close().await;
    if swept.ran {
        println!(
            "{} members expired, {} rooms closed",
            swept.members_expired, swept.rooms_closed
        );
    } else {
        println!("another sweep is under way; nothing to do");
    }
    Ok(ExitCode::SUCCESS)
}

async fn purge(database: &DatabaseArgs, older_than: Duration) -> anyhow::Result<ExitCode> {
    let store = Store::new(&database.once())?;
    let purged = Purge::new(store.clone(), Retention::of(older_than))
        .run_once(&CancellationToken::new())
        .await?;
    store.close().await;
    if purged.ran {
        println!(
            "{} generations with {} events purged, {} blocks ended",
            purged.generations, purged.events, purged.blocks
        );
    } else {
        println!("another purge is under way; nothing to do");
    }
    Ok(ExitCode::SUCCESS)
}

async fn erase(database: &DatabaseArgs, users: &[UserId]) -> anyhow::Result<ExitCode> {
    let store = Store::new(&database.once())?;
    for user in users {
        let erased = store.erase_user(user).await?;
        println!(
            "{} sessions erased, {} of them ended",
            erased.sessions,
            erased.room_ids.len()
        );
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn verify(
    database: &DatabaseArgs,
    room: Option<&RoomId>,
    since: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let store = Store::new(&database.once())?;
    let violations = store.verify_part(room, since).await?;
    store.close().await;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("every invariant holds");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
