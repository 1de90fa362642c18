//! The service as a whole: build, run, and stop in order.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::web::Data;
use anyhow::Context;
use futures_util::{Stream, StreamExt};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ServeArgs;
use crate::descriptors;
use crate::http::auth::{Authentication, Gate};
use crate::http::{self, Api, Drain, Holders, Pulse};
use crate::jobs::{Purge, Sweep, Tidy, every};
use crate::presence::Presence;
use crate::store::{DatabaseSettings, DatabaseUrl, Hints, Migrations, Store};
use crate::stream::Live;
use crate::telemetry::Metrics;
use crate::wake::{Hinting, Wakes};
use crate::webhooks::{Webhooks, apply_file};

/// How long requests under way have to finish when the service stops, and the database as long again.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// A service that is bound to its address and not yet running.
pub struct Application {
    server: actix_web::dev::Server,
    address: SocketAddr,
    store: Store,
    lanes: JoinSet<()>,
    jobs: JoinSet<()>,
    watchers: TaskTracker,
    drain: Drain,
    stop: CancellationToken,
}

impl Application {
    /// Checks the settings and the schema, binds the address and starts what works in the background.
    ///
    /// # Errors
    /// Names the setting, the schema's state with the command to run, or the address.
    pub async fn build(args: &ServeArgs, database_url: DatabaseUrl) -> anyhow::Result<Self> {
        let fields = args.field_rules()?;
        let authentication = Authentication::new(args.auth.settings()).await?;
        let has_authentication = authentication.is_required();
        args.auth.check_exposure(args.bind, has_authentication)?;
        let database = args.connections.serving(database_url.clone());
        require_schema(&database).await?;
        if !has_authentication {
            tracing::warn!(
                "no authentication is configured: everybody who reaches {} may do everything",
                args.bind
            );
        }

        let shares = descriptors::share(descriptors::raise_limit(), args.descriptors());
        let store = Store::new(&database)?;
        let metrics = Metrics::new()?;
        let stop = CancellationToken::new();
        let mut lanes = JoinSet::new();
        let wakes = Wakes::default();
        let presence = Presence::start(&store, args.presence()?, &wakes, &metrics, &mut lanes);
        // Before the first answer, which is then judged by a clock that runs.
        presence
            .beat()
            .await
            .context("the database does not take the first beat")?;
        let mut jobs = JoinSet::new();
        let tidy = Tidy(metrics.clone());
        if let Some(interval) = args.leases.sweep_interval() {
            let sweep = Sweep::new(store.clone(), metrics.clone());
            jobs.spawn(every(interval, stop.clone(), sweep));
        }
        if let Some(kept) = args.purge.kept() {
            let store = Store::new(&args.connections.purging(database_url.clone()))?;
            let purge = Purge::new(store, kept);
            jobs.spawn(every(args.purge.interval, stop.clone(), purge));
        }
        if args.live.hints {
            let hinting = Hinting::new(Hints::new(&database)?, wakes.clone(), metrics.clone());
            jobs.spawn(hinting.run(stop.clone()));
        }
        let webhooks = Webhooks::new(
            Store::new(&args.connections.delivering(database_url.clone()))?,
            args.webhook_settings()?,
            wakes.clone(),
            metrics.webhooks.clone(),
        )?;
        if let Some(path) = &args.webhooks.webhooks_file {
            apply_file(path, &store, webhooks.reach()).await?;
        }
        jobs.spawn(webhooks.clone().run(stop.clone()));
        let live = Live::new(
            presence.clone(),
            wakes.clone(),
            args.live.settings(shares.subscribers),
            metrics.clone(),
            stop.clone(),
        );
        let watchers = live.watchers();
        let pulse_key = format!("{:032x}", rand::random::<u128>());
        let drain = Drain::new(args.edge.drain);
        let api = Api {
            presence,
            pulse_key: pulse_key.clone(),
            live,
            wakes,
            webhooks,
            metrics,
            fields,
            max_batch_items: args.limits.max_batch_items,
            max_message_bytes: args.limits.max_body_bytes,
            pages: args.pages.pages(),
            holders: Holders::default(),
            keep_alive: args.live.keep_alive,
            stall_timeout: args.edge.stall_timeout,
            poll: args.live.poll,
            sweep_interval: args.leases.sweep_interval(),
            drain: drain.clone(),
            timeout: args.connections.timeout,
            stop: stop.clone(),
        };
        if let Some(refreshing) = authentication.refreshing(stop.clone()) {
            jobs.spawn(refreshing);
        }
        let gate = Gate::new(authentication, args.edge.rate());
        let (server, address) = http::server(
            args.server(shares.connections, SHUTDOWN, has_authentication),
            Data::new(api),
            Data::new(gate),
        )?;
        let pulse = Pulse::new(address, pulse_key);
        jobs.spawn(every(Pulse::INTERVAL, stop.clone(), pulse));
        jobs.spawn(every(Tidy::INTERVAL, stop.clone(), tidy));
        Ok(Self {
            server,
            address,
            store,
            lanes,
            jobs,
            watchers,
            drain,
            stop,
        })
    }

    /// Where it listens, with the port that was taken for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is asked to stop and the drain is over, which ends early where it is asked again.
    /// Then stops: no new requests, answers for those under way, the end of every stream, the jobs'
    /// transactions, the last batches, the connections.
    ///
    /// # Errors
    /// Where the server itself fails.
    pub async fn run_until(
        mut self,
        mut stopping: impl Stream<Item = ()> + Unpin,
    ) -> anyhow::Result<()> {
        let handle = self.server.handle();
        let mut server = tokio::spawn(self.server);
        let drain = self.drain.clone();
        let drained = async move {
            stopping.next().await;
            tokio::select! {
                () = drain.run() => {}
                Some(()) = stopping.next() => tracing::info!("asked again to stop: the drain ends"),
            }
        };
        let ended = tokio::select! {
            ended = &mut server => Some(ended),
            () = drained => None,
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
        let finished = tokio::time::timeout(SHUTDOWN, async {
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

/// Refuses a schema that this program cannot serve on.
async fn require_schema(database: &DatabaseSettings) -> anyhow::Result<()> {
    let migrations = Migrations::check_for_serving(database).await?;
    migrations.require_fit()?;
    if !migrations.unknown.is_empty() {
        tracing::warn!(
            newer = ?migrations.unknown,
            "the schema is newer than this program and works with it"
        );
    }
    Ok(())
}
