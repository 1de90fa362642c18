//! Where series are made: once each, so that counting is an atomic addition and no look-up.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// From half a millisecond to ten seconds.
const SECONDS: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Of batches.
const SIZES: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0,
];

/// A name and what it means.
pub(super) type Described = (&'static str, &'static str);

/// The names and values of a series' labels. Values are words of closed sets, never a client's.
pub(super) type Labels = [(&'static str, &'static str)];

const METADATA: Metadata<'_> = Metadata::new(module_path!(), Level::INFO, None);

/// Every series of one instance; cheap to clone.
#[derive(Clone)]
pub(super) struct Registry(Arc<metrics_exporter_prometheus::PrometheusRecorder>);

impl Registry {
    /// `sized` is the histogram that counts requests and not seconds.
    pub(super) fn new(sized: &'static str) -> anyhow::Result<Self> {
        let builder = PrometheusBuilder::new()
            .set_buckets(SECONDS)?
            .set_buckets_for_metric(Matcher::Full(sized.to_owned()), SIZES)?;
        Ok(Self(Arc::new(builder.build_recorder())))
    }

    pub(super) fn handle(&self) -> PrometheusHandle {
        self.0.handle()
    }

    pub(super) fn gauge(&self, (name, text): Described, labels: &Labels) -> Gauge {
        self.0
            .describe_gauge(KeyName::from(name), None, text.into());
        self.0.register_gauge(&key(name, labels), &METADATA)
    }

    pub(super) fn counter(&self, (name, text): Described, labels: &Labels) -> Counter {
        self.0
            .describe_counter(KeyName::from(name), None, text.into());
        self.0.register_counter(&key(name, labels), &METADATA)
    }

    /// With a label `status` beside the others.
    pub(super) fn status_counter(
        &self,
        (name, text): Described,
        labels: &Labels,
        status: u16,
    ) -> Counter {
        self.0
            .describe_counter(KeyName::from(name), None, text.into());
        let status = Label::new("status", status.to_string());
        let key = key(name, labels).with_extra_labels(vec![status]);
        self.0.register_counter(&key, &METADATA)
    }

    pub(super) fn histogram(&self, (name, text): Described, labels: &Labels) -> Histogram {
        self.0
            .describe_histogram(KeyName::from(name), None, text.into());
        self.0.register_histogram(&key(name, labels), &METADATA)
    }
}

fn key(name: &'static str, labels: &Labels) -> Key {
    let labels = labels.iter();
    let labels = labels.map(|(name, value)| Label::from_static_parts(name, value));
    Key::from_parts(name, labels.collect::<Vec<_>>())
}

/// A count as a gauge takes it.
#[expect(
    clippy::cast_precision_loss,
    reason = "a metric is a float; counts stay far below 2^53"
)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
