use std::path::PathBuf;

use crate::directory;

/// Whether a cluster's data should outlive its process and a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// As PostgreSQL is out of the box: what was committed is kept.
    Durable,
    /// Faster and for tests only: nothing waits for the disk, what an earlier
    /// run left is removed at the start, and everything at the end. A kill can
    /// lose the latest commits, so a test about one adds the setting
    /// `synchronous_commit = on`; only a loss of power then makes a difference.
    ThrowAway,
}

/// What [`Cluster::start`](crate::Cluster::start) should start.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Where the cluster is kept; created if missing. See the module's
    /// documentation for what is put there.
    pub data_dir: PathBuf,
    /// Whether its data should last.
    pub durability: Durability,
    /// PostgreSQL settings, given on its command line, so that they win over
    /// its configuration files: `("max_connections", "200")`.
    pub settings: Vec<(String, String)>,
    /// Variables of the server's environment, beside those of our own.
    pub environment: Vec<(String, String)>,
}

impl ClusterOptions {
    /// A cluster whose data lasts, in `data_dir`.
    pub fn durable(data_dir: impl Into<PathBuf>) -> Self {
        Self::new(data_dir.into(), Durability::Durable)
    }

    /// A cluster for one run of tests, in a temporary directory that is the
    /// same in every run with this `purpose` (a word for its name) from this
    /// working directory. Two at the same time need different purposes.
    pub fn throw_away(purpose: &str) -> Self {
        Self::new(directory::temporary(purpose), Durability::ThrowAway)
    }

    fn new(data_dir: PathBuf, durability: Durability) -> Self {
        Self {
            data_dir,
            durability,
            settings: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Adds a PostgreSQL setting.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a variable to the server's environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }
}
