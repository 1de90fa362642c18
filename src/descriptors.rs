//! How many files and connections the process may have open, and what for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Listeners, event queues, key files, a beat at the own door, connections that are just being replaced.
const OWN: usize = 40;

/// The same for each thread that serves.
const OWN_OF_A_WORKER: usize = 4;

/// Of the connections, a quarter is for requests, and no more than so many.
const MOST_FOR_REQUESTS: usize = 1_024;

/// Connections without a stream that a thread serves.
const REQUESTS_OF_A_WORKER: usize = 25_600;

/// What the settings ask for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Event streams and sockets.
    pub subscribers: usize,
    /// Connections to the database.
    pub database: usize,
    /// Threads that serve.
    pub workers: usize,
}

/// What there may be of each, so that none is at the cost of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Connections of clients, streams among them.
    pub connections: usize,
    /// Event streams and sockets: at the limit there are connections left for requests.
    pub subscribers: usize,
}

/// Raises the soft limit of open files to the hard one; how many there may be then.
pub fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(%error, "the soft limit of open files stays below the hard one");
            limit
        }
    };
    let open = now.current.unwrap_or(u64::MAX);
    usize::try_from(open).unwrap_or(usize::MAX)
}

/// Divides the open files that there may be; says so where they are fewer than the settings promise.
pub fn share(limit: usize, wanted: Wanted) -> Shares {
    let own = OWN + wanted.workers * OWN_OF_A_WORKER + wanted.database;
    let most = wanted.subscribers + wanted.workers * REQUESTS_OF_A_WORKER;
    let connections = limit.saturating_sub(own).clamp(1, most);
    let for_requests = (connections / 4).clamp(1, MOST_FOR_REQUESTS);
    let subscribers = wanted.subscribers.min(connections - for_requests);
    if subscribers < wanted.subscribers {
        tracing::warn!(
            limit,
            subscribers,
            "the limit of open files allows fewer subscribers than LEASEHOLD_MAX_SUBSCRIBERS, which is {}; \
             raise it (ulimit -Hn, LimitNOFILE=, --ulimit nofile=) to {} or more",
            wanted.subscribers,
            own + wanted.subscribers + MOST_FOR_REQUESTS
        );
    }
    Shares {
        connections,
        subscribers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted {
        subscribers: 20_000,
        database: 30,
        workers: 2,
    };

    #[test]
    fn what_the_settings_promise_is_had_where_the_limit_allows_it() {
        let shares = share(usize::MAX, WANTED);
        assert_eq!(shares.subscribers, 20_000);
        assert_eq!(shares.connections, 20_000 + 51_200);
        let just_enough = 40 + 8 + 30 + 20_000 + 1_024;
        assert_eq!(share(just_enough, WANTED).subscribers, 20_000);
        assert_eq!(share(just_enough - 1, WANTED).subscribers, 19_999);
    }

    #[test]
    fn a_low_limit_leaves_something_for_everything() {
        for limit in [0, 1, 79, 80, 100, 256, 1_024, 4_096] {
            let Shares {
                connections,
                subscribers,
            } = share(limit, WANTED);
            assert!(subscribers < connections, "{limit}");
            if limit > 79 {
                assert!(connections + 40 + 8 + 30 <= limit, "{limit}");
            }
        }
        assert_eq!(share(256, WANTED).subscribers, 134);
    }
}
