//! A small disk for the WAL of a server, which fills up.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is free on it at first, so that a server can start there.
const FREE: u64 = 40 * 1024 * 1024;

/// In memory, in place of the directory that it hides until it is taken away.
pub struct SmallDisk {
    wal: PathBuf,
    hidden: PathBuf,
}

impl SmallDisk {
    /// Moves the WAL of a server that is down to a disk of its own; nothing, and said so, where
    /// this process may not mount one.
    pub fn holding(wal: &Path) -> Option<Self> {
        let hidden = wal
            .parent()
            .unwrap()
            .with_file_name("wal-on-the-large-disk");
        fs::rename(wal, &hidden).unwrap();
        fs::create_dir(wal).unwrap();
        let used: u64 = fs::read_dir(&hidden)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        let size = format!("size={}", used + FREE);
        if !run("mount", ["-t", "tmpfs", "-o", &size, "tmpfs", text(wal)]) {
            fs::remove_dir(wal).unwrap();
            fs::rename(&hidden, wal).unwrap();
            eprintln!("SKIPPED: no full disk without the right to mount one");
            return None;
        }
        let disk = Self {
            wal: wal.to_owned(),
            hidden,
        };
        copy(&disk.hidden, &disk.wal);
        Some(disk)
    }

    /// Until nothing more goes onto it.
    pub fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }

    /// Moves what is there back to the large disk; the server must be down.
    pub fn take_away(self) {
        fs::remove_file(self.ballast()).unwrap();
        fs::remove_dir_all(&self.hidden).unwrap();
        fs::create_dir(&self.hidden).unwrap();
        copy(&self.wal, &self.hidden);
    }

    fn ballast(&self) -> PathBuf {
        self.wal.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also where a process of the server still looks at it.
        let ended = run("umount", ["--lazy", text(&self.wal)]);
        let moved = fs::remove_dir(&self.wal).and_then(|()| fs::rename(&self.hidden, &self.wal));
        if !ended || moved.is_err() {
            eprintln!("{} is left behind", self.wal.display());
        }
    }
}

/// All of it, and whose it is.
fn copy(from: &Path, to: &Path) {
    let copied = run("cp", ["-a", text(&from.join(".")), text(to)]);
    assert!(copied, "{} is not copied", from.display());
}

fn run<'a>(program: &str, arguments: impl IntoIterator<Item = &'a str>) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
