use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::ClusterError;

/// A log longer than this, in bytes, is begun anew at the next start.
const LONGEST_LOG: u64 = 16 * 1024 * 1024;
const TAIL_LINES: usize = 15;

/// The server's log file.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
}

impl Log {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opened by us and handed to the server, which then needs no right to
    /// create it and says even its first words there.
    pub(crate) fn open(&self) -> Result<File, ClusterError> {
        let open = || {
            let log = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)?;
            if log.metadata()?.len() > LONGEST_LOG {
                log.set_len(0)?;
            }
            Ok(log)
        };
        open().map_err(ClusterError::io("open", &self.path))
    }

    /// In bytes.
    pub(crate) fn length(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |log| log.len())
    }

    /// The last lines after `from` bytes. For error messages, hence empty
    /// rather than an error of its own.
    pub(crate) fn tail(&self, from: u64) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut log = File::open(&self.path)?;
            let mut bytes = Vec::new();
            log.seek(SeekFrom::Start(from))?;
            log.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        last_lines(&read().unwrap_or_default())
    }
}

pub(crate) fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_quoted() {
        let lines: Vec<_> = (1..=20).map(|n| n.to_string()).collect();
        let quoted = last_lines(lines.join("\n").as_bytes());
        assert!(
            quoted.starts_with("6\n7\n") && quoted.ends_with("\n20"),
            "{quoted}"
        );
        assert_eq!(last_lines(b""), "");
    }
}
