//! A streaming standby, which needs no more programs than a server does.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::Path;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::options::ClusterOptions;
use crate::users::ServerUser;

/// Where it is, a server follows its primary instead of writing.
const SIGNAL: &str = "standby.signal";

impl Cluster {
    /// Starts a standby that follows this server, from a copy of its data.
    ///
    /// This server is stopped while it is copied, and started again. The
    /// standby follows by streaming; whether commits wait for it is for
    /// `synchronous_standby_names` to say. Nothing follows a change of primary:
    /// after `pg_promote()` start a new standby.
    ///
    /// # Errors
    /// As [`Cluster::start`]. The directory must hold no data that should last.
    pub fn start_standby(&mut self, options: ClusterOptions) -> Result<Self, ClusterError> {
        let directory = Self::open(&options)?;
        self.shut_down()?;
        let draft = directory.make_draft()?;
        let copied = copy(&self.directory.data(), &draft, directory.server_user)
            .and_then(|()| fs::write(draft.join(SIGNAL), ""))
            .and_then(|()| own(&draft.join(SIGNAL), directory.server_user));
        copied.map_err(ClusterError::io("copy data to", &draft))?;
        directory.adopt(&draft)?;
        self.launch()?;
        let primary = self.socket_dir().to_string_lossy().replace('\'', "\\'");
        let address = format!("host='{primary}' port=5432 user=postgres");
        Self::supervise(
            options.setting("primary_conninfo", &address),
            self.programs.clone(),
            directory,
        )
    }
}

fn copy(from: &Path, to: &Path, user: Option<ServerUser>) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            DirBuilder::new().mode(0o700).create(&target)?;
            copy(&entry.path(), &target, user)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
        own(&target, user)?;
    }
    Ok(())
}

fn own(path: &Path, user: Option<ServerUser>) -> io::Result<()> {
    user.map_or(Ok(()), |user| chown(path, Some(user.uid), Some(user.gid)))
}
