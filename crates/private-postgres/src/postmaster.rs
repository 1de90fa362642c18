//! The server's process: how it is spawned, signalled and recognised.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::users::ServerUser;

const POLL: Duration = Duration::from_millis(10);

/// A command that runs as the server's user, in `directory`, away from our
/// terminal and from our environment's PostgreSQL settings.
pub(crate) fn command(program: &Path, directory: &Path, user: Option<ServerUser>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).stdin(Stdio::null());
    // Not in our group, or Ctrl-C would stop it before we have drained.
    command.process_group(0);
    // PGPORT would move the socket, PGDATA the data; and what is quoted in our
    // errors should be in the language they are in.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C");
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    end_with_this_thread(&mut command);
    command
}

/// Has the child told to shut down when the thread that spawns it ends.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the death signal can be set only by the child itself, before exec"
)]
fn end_with_this_thread(command: &mut Command) {
    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::INT))?;
        // We may have died before that call, and then no signal would come.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(Errno::SRCH.into())
        }
    };
    // SAFETY: between fork and exec only async-signal-safe code may run. The
    // closure makes two system calls without going through the C library, and
    // neither allocates, nor takes a lock, nor panics.
    unsafe { command.pre_exec(before_exec) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_this_thread(_: &mut Command) {}

type Job = (Command, mpsc::SyncSender<io::Result<Child>>);

/// A thread that spawns servers and lives as long as this value, because the
/// death signal of a child is tied to the thread that spawned it and not to
/// its process.
#[derive(Debug)]
pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

impl Spawner {
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("postgres-spawner".to_owned())
            .spawn(move || {
                for (mut command, reply) in inbox {
                    if let Err(mpsc::SendError(Ok(mut orphan))) = reply.send(command.spawn()) {
                        // Nobody is left to supervise it.
                        let _ = orphan.kill().and_then(|()| orphan.wait());
                    }
                }
            })?;
        Ok(Self { jobs })
    }

    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that spawns servers has ended");
        let (reply, answer) = mpsc::sync_channel(1);
        self.jobs.send((command, reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

/// How PostgreSQL's shutdown is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shutdown {
    /// Ends sessions, writes a checkpoint.
    Fast,
    /// Ends at once; the next start recovers.
    Immediate,
}

pub(crate) fn ask(child: &Child, shutdown: Shutdown) {
    let signal = match shutdown {
        Shutdown::Fast => Signal::INT,
        Shutdown::Immediate => Signal::QUIT,
    };
    // It fails only for a child that has ended, and whoever waits sees that.
    let _ = kill_process(Pid::from_child(child), signal);
}

/// Waits for the child to end, for at most `patience`.
pub(crate) fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
}

/// What `postmaster.pid` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: u32,
    pub(crate) ready: bool,
}

impl PidFile {
    /// `None` where there is no such file, or not yet a whole first line.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n')?;
        // A server in single-user mode writes its pid negated.
        let pid = first.trim().parse::<i32>().ok()?.unsigned_abs();
        // The status is the eighth line, and is filled up with spaces.
        let ready = rest
            .lines()
            .nth(6)
            .is_some_and(|status| status.trim_end() == "ready");
        Some(Self { pid, ready })
    }

    /// Whether there is a process of that pid, zombies included.
    pub(crate) fn is_alive(self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTING: &str = "4711\n/d/data\n1700000000\n5432\n/d/run\n\n  5432001         7\n";

    #[test]
    fn the_pid_file_of_a_server_that_starts_is_not_ready() {
        let starting = PidFile::parse(STARTING);
        assert_eq!(
            starting,
            Some(PidFile {
                pid: 4711,
                ready: false
            })
        );
        let named = PidFile::parse(&format!("{STARTING}starting\n"));
        assert_eq!(
            named,
            Some(PidFile {
                pid: 4711,
                ready: false
            })
        );
    }

    #[test]
    fn the_pid_file_of_a_server_that_answers_is_ready() {
        let ready = PidFile::parse(&format!("{STARTING}ready   \n"));
        assert_eq!(
            ready,
            Some(PidFile {
                pid: 4711,
                ready: true
            })
        );
    }

    #[test]
    fn a_pid_file_that_is_not_whole_names_nobody() {
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("47"), None);
        assert_eq!(PidFile::parse("word\n"), None);
        assert_eq!(
            PidFile::parse("-12\n"),
            Some(PidFile {
                pid: 12,
                ready: false
            })
        );
    }

    #[test]
    fn our_own_process_is_alive() {
        assert!(
            PidFile {
                pid: std::process::id(),
                ready: true
            }
            .is_alive()
        );
        assert!(
            !PidFile {
                pid: i32::MAX as u32,
                ready: true
            }
            .is_alive()
        );
    }
}
