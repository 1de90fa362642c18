//! A file with keys, read again when it changes: keys can be rotated without a restart.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;

/// How often the file is looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A file with keys, as it was last read.
pub(crate) struct KeyFile<K> {
    /// Which setting names it.
    setting: &'static str,
    path: PathBuf,
    parse: fn(&[u8]) -> anyhow::Result<K>,
    state: Mutex<State<K>>,
}

struct State<K> {
    looked_at: Instant,
    stamp: Stamp,
    keys: Arc<K>,
}

/// What changes when the file does, also where another one takes its place.
type Stamp = Option<(SystemTime, u64, u64)>;

impl<K> KeyFile<K> {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// Names the setting and what is wrong with the file.
    pub(crate) fn open(
        setting: &'static str,
        path: PathBuf,
        parse: fn(&[u8]) -> anyhow::Result<K>,
    ) -> anyhow::Result<Self> {
        let stamp = stamp(&path);
        let keys = read(&path, parse)
            .with_context(|| format!("{setting} {} cannot be used", path.display()))?;
        Ok(Self {
            setting,
            state: Mutex::new(State {
                looked_at: Instant::now(),
                stamp,
                keys: Arc::new(keys),
            }),
            path,
            parse,
        })
    }

    /// The keys that it holds, or did a second ago.
    pub(crate) fn keys(&self) -> Arc<K> {
        // Nothing that can panic leaves the state half changed.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked_at.elapsed() >= LOOK_EVERY {
            state.looked_at = Instant::now();
            self.refresh(&mut state);
        }
        Arc::clone(&state.keys)
    }

    /// A file that cannot be read changes nothing: it may be half written.
    fn refresh(&self, state: &mut State<K>) {
        let found = stamp(&self.path);
        if found == state.stamp {
            return;
        }
        let setting = self.setting;
        match read(&self.path, self.parse) {
            Ok(keys) => {
                tracing::info!(setting, "the keys were read again");
                state.keys = Arc::new(keys);
                state.stamp = found;
            }
            Err(error) => {
                tracing::warn!(setting, %error, "the keys cannot be read; those of before still hold");
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

fn read<K>(path: &Path, parse: fn(&[u8]) -> anyhow::Result<K>) -> anyhow::Result<K> {
    parse(&std::fs::read(path)?)
}
