use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::directory::Directory;
use crate::error::ClusterError;
use crate::options::{ClusterOptions, Durability};
use crate::postmaster::{self, PidFile, Shutdown, Spawner};
use crate::programs::Programs;
use crate::server;

/// Enough for the recovery of a large cluster after a crash.
const START_PATIENCE: Duration = Duration::from_mins(1);
/// A killed server can hold its `postmaster.pid` for seconds, as a zombie or by
/// the shared memory of backends that are still ending.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(10);
/// A fast shutdown writes a checkpoint.
const FAST_PATIENCE: Duration = Duration::from_secs(30);
const IMMEDIATE_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

const PLAIN_IN_URLS: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A PostgreSQL server that runs as a child of this process, with the one
/// superuser `postgres`, who needs no password.
///
/// All calls block, `start` for half a second or so the first time. Dropping it
/// stops the server as [`Cluster::stop`] does.
#[derive(Debug)]
pub struct Cluster {
    options: ClusterOptions,
    pub(crate) programs: Programs,
    child: Option<Child>,
    log_start: u64,
    ended: bool,
    spawner: Spawner,
    // Last, so that the lock is held until the server has ended.
    pub(crate) directory: Directory,
}

impl Cluster {
    /// Starts a server on the directory, making a cluster in it if it has none,
    /// and returns when it answers.
    ///
    /// # Errors
    /// Any [`ClusterError`]; nothing is left running then.
    pub fn start(options: ClusterOptions) -> Result<Self, ClusterError> {
        let directory = Self::open(&options)?;
        let programs = match directory.data_major()? {
            Some(major) => Programs::find_for(&directory.data(), major)?,
            None => {
                let programs = Programs::find()?;
                server::initialise(&directory, &programs, options.durability)?;
                programs
            }
        };
        Self::supervise(options, programs, directory)
    }

    /// Takes the directory, empty where its data should not last.
    pub(crate) fn open(options: &ClusterOptions) -> Result<Directory, ClusterError> {
        let directory = Directory::open(&options.data_dir)?;
        if options.durability == Durability::ThrowAway {
            outlive_leftover(&directory.data());
            directory.clear()?;
        }
        Ok(directory)
    }

    /// Starts a server on a directory that has a cluster.
    pub(crate) fn supervise(
        options: ClusterOptions,
        programs: Programs,
        directory: Directory,
    ) -> Result<Self, ClusterError> {
        let spawner =
            Spawner::start().map_err(ClusterError::io("start a thread for", directory.base()))?;
        let mut cluster = Self {
            options,
            programs,
            child: None,
            log_start: 0,
            ended: false,
            spawner,
            directory,
        };
        cluster.launch()?;
        Ok(cluster)
    }

    /// The URL of a database, which need not exist yet; `postgres` always does.
    pub fn url(&self, database: &str) -> String {
        let encoded = |bytes| percent_encode(bytes, &PLAIN_IN_URLS).to_string();
        let host = encoded(self.socket_dir().as_os_str().as_bytes());
        // With the port, or PGPORT in the client's environment would decide it.
        format!(
            "postgres://postgres@localhost:5432/{}?host={host}",
            encoded(database.as_bytes())
        )
    }

    /// The directory of the Unix socket, whose name ends in the port, 5432.
    pub fn socket_dir(&self) -> &Path {
        &self.directory.socket_dir
    }

    /// The server's log.
    pub fn log_path(&self) -> &Path {
        self.directory.log.path()
    }

    /// Asks whether the server still runs. Cheap: it only looks for its end.
    ///
    /// # Errors
    /// [`ClusterError::Exited`] with the end of its log, if it ended by itself.
    /// A cluster that was killed by [`Cluster::kill`] is no error.
    pub fn check(&mut self) -> Result<(), ClusterError> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let status = child
            .try_wait()
            .map_err(ClusterError::io("wait for", self.programs.bin()))?;
        match status {
            None => Ok(()),
            Some(status) => {
                self.child = None;
                Err(ClusterError::Exited {
                    status,
                    file: self.log_path().to_owned(),
                    log: self.log_tail(),
                })
            }
        }
    }

    /// Kills the server with SIGKILL, as a crash would: nothing is flushed, no
    /// client is told. The directory stays locked; [`Cluster::restart`] brings
    /// the server back.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only for a process that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts the server again, at the same URL and with the data it had,
    /// stopping it first if it runs.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn restart(&mut self) -> Result<(), ClusterError> {
        match self.shut_down() {
            // However it ended, it has.
            Ok(()) | Err(ClusterError::Exited { .. } | ClusterError::Forced { .. }) => {}
            Err(e) => return Err(e),
        }
        self.launch()
    }

    /// Stops the server: sessions are ended, a checkpoint is written. Bounded;
    /// a server that does not end is killed, which loses nothing committed. A
    /// throw-away cluster that ended as asked is then removed.
    ///
    /// # Errors
    /// [`ClusterError::Forced`] if it had to be killed, [`ClusterError::Exited`]
    /// if it had ended by itself before.
    pub fn stop(mut self) -> Result<(), ClusterError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ClusterError> {
        if self.ended {
            return Ok(());
        }
        self.ended = true;
        let stopped = self.shut_down();
        match self.options.durability {
            // What went wrong can be looked into until the next start.
            Durability::ThrowAway if stopped.is_ok() => self.directory.remove(),
            _ => stopped,
        }
    }

    pub(crate) fn shut_down(&mut self) -> Result<(), ClusterError> {
        self.check()?;
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let steps = [
            (Shutdown::Fast, FAST_PATIENCE),
            (Shutdown::Immediate, IMMEDIATE_PATIENCE),
        ];
        for (attempt, (shutdown, patience)) in steps.into_iter().enumerate() {
            postmaster::ask(&child, shutdown);
            let ended = postmaster::wait(&mut child, patience)
                .map_err(ClusterError::io("wait for", self.programs.bin()))?;
            match ended {
                Some(_) if attempt == 0 => return Ok(()),
                Some(_) => return Err(self.forced()),
                None => {}
            }
        }
        self.child = Some(child);
        self.kill();
        Err(self.forced())
    }

    fn forced(&self) -> ClusterError {
        ClusterError::Forced {
            waited: FAST_PATIENCE,
            log: self.log_tail(),
        }
    }

    pub(crate) fn launch(&mut self) -> Result<(), ClusterError> {
        let deadline = Instant::now() + LEFTOVER_PATIENCE;
        loop {
            match self.launch_once() {
                Err(ClusterError::Held { .. }) if Instant::now() < deadline => {
                    thread::sleep(10 * POLL);
                }
                other => return other,
            }
        }
    }

    fn launch_once(&mut self) -> Result<(), ClusterError> {
        let pid_file = self.directory.data().join("postmaster.pid");
        let log = self.directory.log.open()?;
        self.log_start = self.directory.log.length();
        let command = server::server(&self.directory, &self.programs, &self.options, log)?;
        let child = self.spawner.spawn(command).map_err(ClusterError::io(
            "run",
            &self.programs.bin().join("postgres"),
        ))?;
        let child_pid = child.id();
        self.child = Some(child);
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let named = PidFile::read(&pid_file);
            match (self.check(), named) {
                (Err(ClusterError::Exited { log, .. }), Some(other))
                    if other.pid != child_pid && (other.is_alive() || in_shared_memory(&log)) =>
                {
                    return Err(ClusterError::Held {
                        file: pid_file,
                        pid: other.pid,
                        log,
                    });
                }
                (Err(e), _) => return Err(e),
                // Only with our child's pid is it not somebody else's server.
                (Ok(()), Some(ours)) if ours.pid == child_pid && ours.ready => return Ok(()),
                (Ok(()), _) => {}
            }
            if Instant::now() >= deadline {
                // What it says about its own end matters less than this.
                let _ = self.shut_down();
                let (file, log) = (self.log_path().to_owned(), self.log_tail());
                return Err(ClusterError::NotReady {
                    waited: START_PATIENCE,
                    file,
                    log,
                });
            }
            thread::sleep(POLL);
        }
    }

    fn log_tail(&self) -> String {
        self.directory.log.tail(self.log_start)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nobody is there to be told, and the next start tells what it finds.
        let _ = self.end();
    }
}

/// Whether the server would not start because backends of a killed one still
/// use its shared memory, although that one itself has gone.
fn in_shared_memory(log: &str) -> bool {
    log.contains("pre-existing shared memory block")
}

/// Gives the server of a run that was killed the time to end, before its data
/// is removed.
fn outlive_leftover(data: &Path) {
    let deadline = Instant::now() + LEFTOVER_PATIENCE;
    let pid_file = data.join("postmaster.pid");
    while PidFile::read(&pid_file).is_some_and(PidFile::is_alive) && Instant::now() < deadline {
        thread::sleep(POLL);
    }
}
