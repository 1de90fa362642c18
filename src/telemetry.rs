//! Logs and metrics: set up once, named in one place.

use std::io::IsTerminal;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tracing_subscriber::EnvFilter;

use crate::domain::{Census, StaleReason};

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

/// From half a millisecond to ten seconds.
const SECONDS: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Every metric of one instance; cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    active_rooms: Gauge,
    active_members: Gauge,
    oldest_lease_age: Gauge,
    lease_clock_paused: Gauge,
    pulse_age: Gauge,
    outages: Gauge,
    members_expired: Counter,
    stale_sessions: [Counter; StaleReason::ALL.len()],
    heartbeat_duration: Histogram,
    sweep_duration: Histogram,
    subscribers: Gauge,
    watched_rooms: Gauge,
    subscribers_behind: Counter,
    hints_sent: Counter,
    hints_heard: Counter,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// A registry of its own: two instances in one process do not share figures.
    ///
    /// # Errors
    /// Where the exporter refuses its settings.
    pub fn new() -> anyhow::Result<Self> {
        let recorder: PrometheusRecorder = PrometheusBuilder::new()
            .set_buckets(SECONDS)?
            .build_recorder();
        let metadata = metrics::Metadata::new(module_path!(), metrics::Level::INFO, None);
        let described = |name: &'static str, kind: Kind, text: &'static str| {
            let key = metrics::KeyName::from(name);
            match kind {
                Kind::Gauge => recorder.describe_gauge(key, None, text.into()),
                Kind::Counter => recorder.describe_counter(key, None, text.into()),
                Kind::Histogram => recorder.describe_histogram(key, None, text.into()),
            }
            metrics::Key::from_static_name(name)
        };
        let gauge =
            |name, text| recorder.register_gauge(&described(name, Kind::Gauge, text), &metadata);
        let counter = |name, text| {
            recorder.register_counter(&described(name, Kind::Counter, text), &metadata)
        };
        let histogram = |name, text| {
            recorder.register_histogram(&described(name, Kind::Histogram, text), &metadata)
        };

        let stale = "leasehold_stale_sessions_total";
        described(
            stale,
            Kind::Counter,
            "Heartbeats, cursors and leaves of stale sessions, by how the session ended",
        );
        Ok(Self {
            active_rooms: gauge("leasehold_active_rooms", "Rooms with a live member"),
            active_members: gauge(
                "leasehold_active_members",
                "Live members, counted once per room",
            ),
            oldest_lease_age: gauge(
                "leasehold_oldest_lease_age_seconds",
                "Since the last heartbeat of the longest unseen row, swept or not",
            ),
            lease_clock_paused: gauge(
                "leasehold_lease_clock_paused_seconds",
                "By how much the lease clock is behind the database's",
            ),
            pulse_age: gauge(
                "leasehold_pulse_age_seconds",
                "Since the last beat of any instance",
            ),
            outages: gauge(
                "leasehold_outages",
                "Times in which no instance served, or the database's clock jumped",
            ),
            members_expired: counter(
                "leasehold_members_expired_total",
                "Sessions that this instance recorded as expired: in joins, leaves, lists and sweeps",
            ),
            stale_sessions: StaleReason::ALL
                .iter()
                .map(|reason| {
                    let label = metrics::Label::from_static_parts("code", reason.as_str());
                    recorder
                        .register_counter(&metrics::Key::from_parts(stale, vec![label]), &metadata)
                })
                .collect::<Vec<_>>()
                .try_into()
                .map_err(|_| anyhow::anyhow!("one counter per reason"))?,
            heartbeat_duration: histogram(
                "leasehold_heartbeat_duration_seconds",
                "From the arrival of a heartbeat to its answer",
            ),
            sweep_duration: histogram("leasehold_sweep_duration_seconds", "One run of the sweep"),
            subscribers: gauge(
                "leasehold_subscribers",
                "Event streams and sockets that this instance serves",
            ),
            watched_rooms: gauge(
                "leasehold_watched_rooms",
                "Rooms with a subscriber on this instance",
            ),
            subscribers_behind: counter(
                "leasehold_subscribers_behind_total",
                "Times a subscriber was too slow and was sent a fresh snapshot instead of changes",
            ),
            hints_sent: counter(
                "leasehold_hints_sent_total",
                "Transactions that told other instances of changed rooms",
            ),
            hints_heard: counter(
                "leasehold_hints_heard_total",
                "Messages of other instances about changed rooms",
            ),
            handle: recorder.handle(),
        })
    }

    /// What a count of the tables found.
    pub fn census(&self, census: Census) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a metric is a float; counts stay far below 2^53"
        )]
        {
            self.active_rooms.set(census.active_rooms as f64);
            self.active_members.set(census.active_members as f64);
            self.outages.set(census.outages as f64);
        }
        self.oldest_lease_age.set(census.oldest_lease_age_seconds);
        self.lease_clock_paused.set(census.paused_seconds);
        self.pulse_age.set(census.pulse_age_seconds.unwrap_or(0.0));
    }

    /// So many sessions were recorded as expired since this instance started, whoever pruned them.
    pub fn members_expired(&self, sessions: u64) {
        self.members_expired.absolute(sessions);
    }

    /// A request named a session that ended like this.
    pub fn stale_session(&self, reason: StaleReason) {
        self.stale_sessions[reason as usize].increment(1);
    }

    /// From the arrival of a heartbeat to its answer.
    pub fn heartbeat_took(&self, duration: Duration) {
        self.heartbeat_duration.record(duration);
    }

    /// One run of the sweep.
    pub fn sweep_took(&self, duration: Duration) {
        self.sweep_duration.record(duration);
    }

    /// An event stream or socket began.
    pub fn subscriber_came(&self) {
        self.subscribers.increment(1);
    }

    /// An event stream or socket ended.
    pub fn subscriber_gone(&self) {
        self.subscribers.decrement(1);
    }

    /// So many rooms have a subscriber.
    pub fn watched_rooms(&self, rooms: usize) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a metric is a float; counts stay far below 2^53"
        )]
        self.watched_rooms.set(rooms as f64);
    }

    /// A subscriber was too slow.
    pub fn subscriber_fell_behind(&self) {
        self.subscribers_behind.increment(1);
    }

    /// Other instances were told of changes.
    pub fn hints_sent(&self) {
        self.hints_sent.increment(1);
    }

    /// Another instance told of changes.
    pub fn hint_heard(&self) {
        self.hints_heard.increment(1);
    }

    /// The Prometheus text format.
    pub fn render(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render()
    }
}

enum Kind {
    Gauge,
    Counter,
    Histogram,
}
