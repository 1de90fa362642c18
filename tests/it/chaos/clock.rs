//! The clock of the servers, which can be set.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use private_postgres::ClusterOptions;
use tempfile::NamedTempFile;

/// Where Debian's package `libfaketime` puts it.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// By how much it is wrong is in a file that the servers read.
pub struct Clock(NamedTempFile);

impl Clock {
    /// A right one; nothing, and said so, where the library is missing.
    pub fn new() -> Option<Self> {
        if !Path::new(LIBRARY).exists() {
            eprintln!("SKIPPED: no clock jumps without {LIBRARY}");
            return None;
        }
        let clock = Self(NamedTempFile::new().unwrap());
        // The servers may run as another user.
        fs::set_permissions(clock.0.path(), Permissions::from_mode(0o644)).unwrap();
        clock.set(0);
        Some(clock)
    }

    /// So many seconds ahead, or behind.
    pub fn set(&self, seconds: i64) {
        fs::write(self.0.path(), format!("{seconds:+}s")).unwrap();
    }

    /// For a server that goes by it.
    pub fn govern(&self, options: ClusterOptions) -> ClusterOptions {
        options
            .variable("LD_PRELOAD", LIBRARY)
            .variable("FAKETIME_TIMESTAMP_FILE", self.0.path().to_str().unwrap())
            .variable("FAKETIME_NO_CACHE", "1")
            .variable("DONT_FAKE_MONOTONIC", "1")
    }
}
