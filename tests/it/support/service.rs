//! The program itself as processes: what only they have is signals, exit codes and a kill -9.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

const PATIENCE: Duration = Duration::from_secs(60);

/// A command of the program, without the settings of whoever runs the tests.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("DATABASE_URL") || name.starts_with("LEASEHOLD_") {
            command.env_remove(&*name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command of the program to its end.
pub fn run(arguments: &[&str], database_url: &str) -> Output {
    command(arguments)
        .env("DATABASE_URL", database_url)
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running `leasehold serve` or `leasehold dev`; killed when dropped.
pub struct Service {
    child: Child,
    pub url: String,
    output: NamedTempFile,
    pub client: Client,
}

impl Service {
    /// `leasehold serve` on a free port.
    pub async fn serve(database_url: &str, flags: &[&str]) -> Self {
        Self::serve_logging("warn,leasehold::cli=info", database_url, flags).await
    }

    /// The same with a log of one's choice, which must show its start.
    pub async fn serve_logging(filter: &str, database_url: &str, flags: &[&str]) -> Self {
        Self::try_serve(filter, database_url, flags).await.unwrap()
    }

    /// The same; what it said, where it ended at once.
    pub async fn try_serve(
        filter: &str,
        database_url: &str,
        flags: &[&str],
    ) -> Result<Self, String> {
        let mut serve = command(&["serve", "--bind=127.0.0.1:0", "--log-format=json"]);
        serve
            .args(["--log", filter])
            .args(flags)
            .env("DATABASE_URL", database_url);
        Self::start(serve, "\"address\":\"").await
    }

    /// `leasehold serve` with limits of open files, the soft one and the hard one.
    pub async fn serve_limited(files: (usize, usize), database_url: &str, flags: &[&str]) -> Self {
        let set = format!(
            "ulimit -Sn {} && ulimit -Hn {} && exec \"$0\" \"$@\"",
            files.0, files.1
        );
        let serve = command(&["serve", "--bind=127.0.0.1:0", "--log-format=json"]);
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(set).arg(serve.get_program());
        limited.args(serve.get_args()).args(flags);
        limited.arg("--log=warn,leasehold::cli=info");
        for (name, _) in serve.get_envs() {
            limited.env_remove(name);
        }
        limited
            .env("DATABASE_URL", database_url)
            .stdin(Stdio::null());
        Self::start(limited, "\"address\":\"").await.unwrap()
    }

    /// The same with the address of the database in a file.
    pub async fn serve_from_file(file: &Path, flags: &[&str]) -> Self {
        let mut serve = command(&["serve", "--bind=127.0.0.1:0", "--log-format=json"]);
        serve
            .args(["--log", "warn,leasehold::cli=info"])
            .args(flags)
            .env("DATABASE_URL_FILE", file);
        Self::start(serve, "\"address\":\"").await.unwrap()
    }

    /// `leasehold dev` on a free port, with its data there.
    pub async fn dev(data_dir: &Path) -> Self {
        let mut dev = command(&["dev", "--bind=127.0.0.1:0", "--log=warn", "--data-dir"]);
        dev.arg(data_dir);
        Self::start(dev, "listens on http://").await.unwrap()
    }

    /// Starts it and waits until it says its address, after `mark`.
    pub async fn start(mut command: Command, mark: &str) -> Result<Self, String> {
        let output = NamedTempFile::new().unwrap();
        let child = command
            .stdout(output.reopen().unwrap())
            .stderr(output.as_file().try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut service = Self {
            child,
            url: String::new(),
            output,
            client: Client::builder()
                .timeout(Duration::from_secs(10))
                .build()
                .unwrap(),
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = service.said();
            if let Some((_, rest)) = said.split_once(mark)
                && let Some(end) = rest.find(['"', '\n'])
            {
                service.url = format!("http://{}", &rest[..end]);
                return Ok(service);
            }
            if service.child.try_wait().unwrap().is_some() {
                return Err(format!("it ended: {said}"));
            }
            assert!(Instant::now() < deadline, "it does not listen: {said}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// All that it wrote.
    pub fn said(&self) -> String {
        let mut bytes = Vec::new();
        File::open(self.output.path())
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        text(&bytes)
    }

    /// Processor time that it has used, user's and system's.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// As a crash would: nothing is finished, nobody is told.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "it does not end: {}",
                self.said()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks it to stop and requires that it does so well.
    pub async fn stop(mut self, signal: Signal) {
        self.signal(signal);
        let status = self.ended().await;
        assert!(status.success(), "{:?}: {}", status.signal(), self.said());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
