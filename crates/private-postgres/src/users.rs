use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::error::ClusterError;

pub(crate) fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user that the server runs as, where that is not our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl ServerUser {
    /// `postgres` where we are root, and otherwise nobody but ourselves.
    pub(crate) fn needed() -> Result<Option<Self>, ClusterError> {
        if !is_root() {
            return Ok(None);
        }
        // `id`, because users need not be in /etc/passwd.
        let id = |flag| -> Option<u32> {
            let answer = Command::new("id").args([flag, "postgres"]).output().ok()?;
            str::from_utf8(&answer.stdout).ok()?.trim().parse().ok()
        };
        match (id("-u"), id("-g")) {
            (Some(uid), Some(gid)) => Ok(Some(Self { uid, gid })),
            _ => Err(ClusterError::NoServerUser),
        }
    }

    fn may_enter(self, directory: &fs::Metadata) -> bool {
        let bit = match (directory.uid() == self.uid, directory.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        directory.mode() & bit != 0
    }
}

pub(crate) fn require_owner(path: &Path, allowed: &[u32]) -> Result<(), ClusterError> {
    let metadata = fs::symlink_metadata(path).map_err(ClusterError::io("read", path))?;
    // A link that we made ourselves may point to the directory.
    let kind = metadata.is_dir() || (metadata.is_symlink() && path.is_dir());
    if kind && allowed.contains(&metadata.uid()) {
        return Ok(());
    }
    Err(ClusterError::Foreign {
        path: path.to_owned(),
        owner: metadata.uid(),
    })
}

pub(crate) fn require_enterable(base: &Path, user: ServerUser) -> Result<(), ClusterError> {
    let mut from_the_root: Vec<_> = base.ancestors().collect();
    from_the_root.reverse();
    for ancestor in from_the_root {
        let metadata = fs::metadata(ancestor).map_err(ClusterError::io("read", ancestor))?;
        if !user.may_enter(&metadata) {
            return Err(ClusterError::Closed {
                ancestor: ancestor.to_owned(),
            });
        }
    }
    Ok(())
}
