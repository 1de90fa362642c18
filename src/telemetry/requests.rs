//! What was asked over HTTP, and what was refused over whatever.

use std::cell::RefCell;
use std::time::Duration;

use metrics::{Counter, Histogram};

use super::registry::Registry;
use crate::wire::Code;

/// What was asked over HTTP, and what was refused over whatever.
#[derive(Clone)]
pub struct RequestMetrics {
    registry: Registry,
    refusals: [Counter; Code::ALL.len()],
}

impl RequestMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let refusals = (
            "leasehold_refusals_total",
            "Requests, items of batches and messages of sockets that were answered with an error code",
        );
        Self {
            refusals: std::array::from_fn(|n| {
                registry.counter(refusals, &[("code", Code::ALL[n].as_str())])
            }),
            registry: registry.clone(),
        }
    }

    /// Something was answered with this code.
    pub fn refused(&self, code: Code) {
        self.refusals[code as usize].increment(1);
    }

    /// Those of one route, by its pattern; of each method with the others that are answered alike.
    pub fn route(
        &self,
        pattern: &'static str,
        methods: impl IntoIterator<Item = &'static [&'static str]>,
    ) -> RouteMetrics {
        let methods = methods.into_iter();
        let known = methods.map(|methods| (methods, self.series(pattern, methods[0])));
        RouteMetrics {
            known: known.collect(),
            other: self.series(pattern, "other"),
            all: self.clone(),
        }
    }

    fn series(&self, route: &'static str, method: &'static str) -> Series {
        let duration = (
            "leasehold_http_request_duration_seconds",
            "From the arrival of a request's head to the head of its answer",
        );
        let labels = [("route", route), ("method", method)];
        Series {
            duration: self.registry.histogram(duration, &labels),
            by_status: RefCell::default(),
            labels,
        }
    }
}

/// The requests of one route on one thread.
pub struct RouteMetrics {
    known: Vec<(&'static [&'static str], Series)>,
    other: Series,
    all: RequestMetrics,
}

impl RouteMetrics {
    /// A request was answered.
    pub fn answered(&self, method: &str, status: u16, code: Option<Code>, took: Duration) {
        let known = self.known.iter();
        let mut series = known.filter(|(methods, _)| methods.contains(&method));
        let series = series.next().map_or(&self.other, |(_, series)| series);
        series.duration.record(took);
        series.counted(status, &self.all.registry);
        if let Some(code) = code {
            self.all.refused(code);
        }
    }
}

/// The requests of one route and method.
struct Series {
    labels: [(&'static str, &'static str); 2],
    duration: Histogram,
    /// As many as the service has statuses; found by looking through the few that came up.
    by_status: RefCell<Vec<(u16, Counter)>>,
}

impl Series {
    fn counted(&self, status: u16, registry: &Registry) {
        let mut by_status = self.by_status.borrow_mut();
        if let Some((_, counter)) = by_status.iter().find(|(known, _)| *known == status) {
            return counter.increment(1);
        }
        let requests = (
            "leasehold_http_requests_total",
            "Requests that were answered, by the pattern of their route",
        );
        let [route, method] = self.labels;
        let counter = registry.status_counter(requests, &[route, method], status);
        counter.increment(1);
        by_status.push((status, counter));
    }
}
