//! What the metrics show of the connections.

use super::Store;
use crate::telemetry::{ConnectionMetrics, DatabaseErrorKind, Pool};

impl Store {
    /// Shows how the connections are now, and what has gone wrong on them since the start.
    pub fn measure(&self, metrics: &ConnectionMetrics) {
        for pool in Pool::ALL {
            metrics.pool(pool, self.pool(pool).figures());
        }
        for kind in DatabaseErrorKind::ALL {
            let failures = Pool::ALL.map(|pool| self.pool(pool).failures().so_far(kind));
            metrics.errors(kind, failures.iter().sum());
        }
    }
}
