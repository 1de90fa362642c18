//! The pulse: once a second this instance shows that it serves, by which the lease clock runs.
//!
//! A beat travels as a heartbeat does: through the instance's own door, the
//! queue and the connections of heartbeats. A ticker on the side would go on
//! while no client can renew.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Api, ApiError};
use crate::jobs::Job;
use crate::store::StoreError;

/// Where beats come in. Not part of the API: only this process knows the key.
pub(crate) const PULSE_PATH: &str = "/pulse";

/// The header with the key.
const PULSE_KEY: &str = "x-leasehold-pulse";

/// How long a beat may take; one that takes longer than `pulse.gap` is an outage.
const PATIENCE: Duration = Duration::from_secs(5);

/// Puts a beat into the queue of heartbeats.
pub(crate) async fn pulse(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let key = request.headers().get(PULSE_KEY);
    let is_own = key.is_some_and(|key| key.as_bytes().ct_eq(api.pulse_key.as_bytes()).into());
    if !is_own {
        return Err(ApiError::unknown_route());
    }
    api.presence.beat().await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The job that knocks at the own door.
#[derive(Debug)]
pub struct Pulse {
    door: SocketAddr,
    key: String,
    /// Whether the last beat came through: only a change is worth a line in the log.
    beats: AtomicBool,
}

impl Pulse {
    /// How often an instance beats.
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// At the address that the server is bound to, with the key that its handler knows.
    pub fn new(bound: SocketAddr, key: String) -> Self {
        let mut door = bound;
        if bound.ip().is_unspecified() {
            door.set_ip(match bound.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Self {
            door,
            key,
            beats: AtomicBool::new(true),
        }
    }

    async fn knock(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.door).await?;
        let request = format!(
            "POST {PULSE_PATH} HTTP/1.1\r\nhost: {}\r\n{PULSE_KEY}: {}\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n",
            self.door, self.key
        );
        stream.write_all(request.as_bytes()).await?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await?;
        if &status == b"HTTP/1.1 204" {
            return Ok(());
        }
        let status = String::from_utf8_lossy(&status);
        Err(io::Error::other(format!("answered {status}")))
    }
}

impl Job for Pulse {
    const NAME: &'static str = "pulse";

    async fn step(&self, _: &CancellationToken) -> Result<(), StoreError> {
        let beaten = timeout(PATIENCE, self.knock()).await;
        let beaten = beaten.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let did_beat = self.beats.swap(beaten.is_ok(), Ordering::Relaxed);
        match beaten {
            Ok(()) if !did_beat => tracing::info!("heartbeats come through again"),
            Err(error) if did_beat => tracing::warn!(
                %error,
                "heartbeats do not come through; unless another instance serves, leases stand still"
            ),
            _ => {}
        }
        Ok(())
    }
}
