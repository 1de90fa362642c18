//! Everything about serving but where the database is.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Args;

use super::value::whole;
use super::{
    AuthArgs, CoalesceArgs, ConnectionArgs, EdgeArgs, InvalidSetting, LeaseArgs, LimitArgs,
    LiveArgs, LogArgs, PageArgs, PurgeArgs, WebhookArgs,
};
use crate::descriptors::Wanted;
use crate::http::{BodyLimits, ServerSettings, TrustedProxies};
use crate::presence::{PresenceSettings, PulseSettings};
use crate::wire::FieldRules;

/// Everything about serving but where the database is.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, env = "LEASEHOLD_BIND", default_value = "127.0.0.1:3000", value_parser = bind)]
    pub bind: SocketAddr,

    /// Threads that serve HTTP; 0 means one per core
    #[arg(long, env = "LEASEHOLD_WORKERS", default_value = "0",
          value_parser = whole::<usize>("LEASEHOLD_WORKERS", 0..=1_024))]
    pub workers: usize,

    /// How long leases are.
    #[command(flatten)]
    pub leases: LeaseArgs,

    /// How much of the database is used.
    #[command(flatten)]
    pub connections: ConnectionArgs,

    /// How requests are gathered.
    #[command(flatten)]
    pub coalescing: CoalesceArgs,

    /// How many there may be, and how large.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Event streams and sockets.
    #[command(flatten)]
    pub live: LiveArgs,

    /// How requests come in.
    #[command(flatten)]
    pub edge: EdgeArgs,

    /// Who may use the service.
    #[command(flatten)]
    pub auth: AuthArgs,

    /// Which pages there are beside the API.
    #[command(flatten)]
    pub pages: PageArgs,

    /// How long history is kept.
    #[command(flatten)]
    pub purge: PurgeArgs,

    /// What is delivered to others.
    #[command(flatten)]
    pub webhooks: WebhookArgs,

    /// What is logged.
    #[command(flatten)]
    pub logs: LogArgs,
}

/// An address and a port.
pub(super) fn bind(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "LEASEHOLD_BIND must be an address and a port, like 127.0.0.1:3000".to_owned())
}

impl ServeArgs {
    /// What the fields of a request may be.
    ///
    /// # Errors
    /// [`InvalidSetting`]
    pub fn field_rules(&self) -> Result<FieldRules, InvalidSetting> {
        Ok(FieldRules {
            leases: self.leases.rules()?,
            max_metadata_bytes: self.limits.max_metadata_bytes,
            max_cursor_bytes: self.limits.max_cursor_bytes,
        })
    }

    /// How requests are gathered, what joins are measured by, and how far an outage is made up for.
    ///
    /// # Errors
    /// [`InvalidSetting`]
    pub fn presence(&self) -> Result<PresenceSettings, InvalidSetting> {
        Ok(PresenceSettings {
            limits: self.limits.joins(),
            coalescing: self.coalescing.settings(self.connections.timeout),
            held_rows: self.connections.held_connections as usize,
            pulse: PulseSettings {
                leases: self.leases.rules()?,
                max_pause: self.leases.outage_grace,
            },
        })
    }

    /// What takes a descriptor each.
    pub fn descriptors(&self) -> Wanted {
        Wanted {
            subscribers: self.live.max_subscribers,
            database: self.connections.all(),
            workers: self.workers(),
        }
    }

    fn workers(&self) -> usize {
        match self.workers {
            0 => available_parallelism().map_or(1, NonZeroUsize::get),
            workers => workers,
        }
    }

    /// How the server listens, with or without authentication.
    pub fn server(
        &self,
        max_connections: usize,
        shutdown_timeout: Duration,
        has_authentication: bool,
    ) -> ServerSettings {
        ServerSettings {
            bind: self.bind,
            workers: self.workers(),
            max_connections,
            origins: self.edge.origins(),
            loopback_names_only: !has_authentication && !self.auth.insecure_no_auth,
            proxies: TrustedProxies(
                self.edge
                    .trusted_proxies
                    .iter()
                    .flatten()
                    .copied()
                    .collect(),
            ),
            bodies: BodyLimits {
                max_bytes: self.limits.max_body_bytes,
                max_batch_bytes: self.limits.max_batch_bytes,
                timeout: self.edge.request_timeout,
            },
            idle_timeout: self.edge.idle_timeout,
            stall_timeout: self.edge.stall_timeout,
            shutdown_timeout,
        }
    }
}
