//! The service as a whole: build, run, and stop in order.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::middleware::{Condition, from_fn};
use actix_web::web::Data;
use actix_web::{App, HttpServer};
use anyhow::Context;
use secrecy::SecretString;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ServeArgs;
use crate::http::auth::{Authentication, RateLimit};
use crate::http::{self, Api};
use crate::jobs::{Purge, Sweep};
use crate::presence::Presence;
use crate::store::{Hints, Migrations, Store};
use crate::stream::{Hinting, Live};
use crate::telemetry::Metrics;
use crate::wake::Wakes;

/// Seconds that requests under way have to finish when the service stops, and the
/// database as many again.
const DRAIN_SECONDS: u64 = 10;

/// A service that is bound to its address and not yet running.
pub struct Application {
    server: actix_web::dev::Server,
    address: SocketAddr,
    store: Store,
    lanes: JoinSet<()>,
    jobs: JoinSet<()>,
    watchers: TaskTracker,
    stop: CancellationToken,
}

impl Application {
    /// Checks the settings and the schema, binds the address and starts what works in the background.
    ///
    /// # Errors
    /// Names the setting, the schema's state with the command to run, or the address.
    pub async fn build(args: &ServeArgs, database_url: SecretString) -> anyhow::Result<Self> {
        let leases = args.leases()?;
        let auth = Authentication::new(args.auth.settings()?)?;
        args.auth.check_exposure(args.bind, auth.is_required())?;
        let database = args.database(database_url.clone());
        let migrations = Migrations::check(&database).await?;
        migrations.require_fit()?;
        if !migrations.unknown.is_empty() {
            tracing::warn!(
                newer = ?migrations.unknown,
                "the schema is newer than this program and works with it"
            );
        }

        let store = Store::new(&database)?;
        if !auth.is_required() {
            tracing::warn!(
                "no authentication is configured: everybody who reaches {} may do everything",
                args.bind
            );
        }
        let metrics = Metrics::new()?;
        let stop = CancellationToken::new();
        let mut lanes = JoinSet::new();
        let wakes = Wakes::default();
        let presence =
            Presence::start(&store, args.limits(), args.coalescing(), &wakes, &mut lanes);
        let mut jobs = JoinSet::new();
        if let Some(interval) = args.sweep_interval() {
            let sweep = Sweep::new(store.clone(), metrics.clone());
            jobs.spawn(sweep.repeat(interval, stop.clone()));
        }
        if let Some(older_than) = args.purge.older_than {
            let store = Store::new(&args.purge_database(database_url))?;
            let purge = Purge::new(store, older_than);
            jobs.spawn(purge.repeat(args.purge.interval, stop.clone()));
        }

        if args.hints {
            let hinting = Hinting::new(Hints::new(&database)?, wakes.clone(), metrics.clone());
            jobs.spawn(hinting.run(stop.clone()));
        }
        let live = Live::new(
            presence.clone(),
            wakes.clone(),
            leases,
            args.live(),
            metrics.clone(),
            stop.clone(),
        );
        let watchers = live.watchers();

        let api = Data::new(Api {
            presence,
            live,
            wakes,
            keep_alive: args.keep_alive(),
            poll: args.poll(),
            stop: stop.clone(),
            store: store.clone(),
            auth,
            rate_limit: args.edge.rate().map(RateLimit::new),
            leases,
            metrics,
            sweep_interval: args.sweep_interval(),
            timeout: args.timeout(),
            max_metadata_bytes: args.max_metadata_bytes,
            max_cursor_bytes: args.max_cursor_bytes,
            max_batch_items: args.max_batch_items,
            body_limit: args.max_body_bytes,
            batch_body_limit: args.max_batch_bytes,
            body_timeout: args.edge.request_timeout(),
        });
        let origins: Vec<String> = args
            .edge
            .origins()
            .iter()
            .map(|o| (*o).to_owned())
            .collect();
        let mut server = HttpServer::new(move || {
            App::new()
                .app_data(api.clone())
                .app_data(http::query_config())
                .wrap(Condition::new(!origins.is_empty(), http::cors(&origins)))
                .wrap(from_fn(http::log))
                .configure(http::routes)
        })
        .disable_signals()
        .client_request_timeout(args.edge.request_timeout())
        .shutdown_timeout(DRAIN_SECONDS);
        if args.workers > 0 {
            server = server.workers(args.workers);
        }
        let server = server.bind(args.bind).with_context(|| {
            format!(
                "cannot listen on {}; set LEASEHOLD_BIND to a free address",
                args.bind
            )
        })?;
        let address = server.addrs()[0];
        Ok(Self {
            server: server.run(),
            address,
            store,
            lanes,
            jobs,
            watchers,
            stop,
        })
    }

    /// Where it listens, with the port that was taken for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopping` is done, then drains: no new requests, answers for
    /// those under way, the end of every stream, the jobs' transactions, the last batches, the connections.
    ///
    /// # Errors
    /// Where the server itself fails.
    pub async fn run_until(mut self, stopping: impl Future<Output = ()>) -> anyhow::Result<()> {
        let handle = self.server.handle();
        let mut server = tokio::spawn(self.server);
        let ended = tokio::select! {
            ended = &mut server => Some(ended),
            () = stopping => None,
        };
        self.stop.cancel();
        match ended {
            Some(ended) => ended??,
            None => {
                tracing::info!("stopping");
                handle.stop(true).await;
                server.await??;
            }
        }
        // Everybody is answered; a database that is silent must not hold the process.
        let finished = tokio::time::timeout(Duration::from_secs(DRAIN_SECONDS), async {
            while self.jobs.join_next().await.is_some() {}
            self.watchers.close();
            self.watchers.wait().await;
            while self.lanes.join_next().await.is_some() {}
            self.store.close().await;
        });
        if finished.await.is_err() {
            tracing::warn!("stopped without an answer of the database to what was under way");
        }
        Ok(())
    }
}
