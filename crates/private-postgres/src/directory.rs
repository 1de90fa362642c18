use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::error::ClusterError;
use crate::log::Log;
use crate::socket;
use crate::users::{ServerUser, is_root, our_uid, require_enterable, require_owner};

/// Where `leasehold dev` keeps its data unless told otherwise: under
/// `/var/lib` for root, whose home the server's user may not enter, and in the
/// XDG data directory for everybody else.
pub fn default_data_dir() -> PathBuf {
    if is_root() {
        return PathBuf::from("/var/lib/leasehold");
    }
    env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".local/share")))
        .unwrap_or_else(env::temp_dir)
        .join("leasehold")
}

/// A directory in the temporary one, the same in every run from this working
/// directory, so that runs which were killed leave at most one behind.
pub(crate) fn temporary(purpose: &str) -> PathBuf {
    let here = env::current_dir().unwrap_or_default();
    env::temp_dir().join(format!(
        "leasehold-{purpose}-{}-{:016x}",
        our_uid(),
        socket::digest(&here)
    ))
}

/// A cluster's directory, locked while this value lives.
#[derive(Debug)]
pub(crate) struct Directory {
    base: PathBuf,
    pub(crate) log: Log,
    pub(crate) socket_dir: PathBuf,
    pub(crate) server_user: Option<ServerUser>,
    _lock: File,
}

impl Directory {
    /// Creates what is missing and takes the lock.
    pub(crate) fn open(path: &Path) -> Result<Self, ClusterError> {
        let server_user = ServerUser::needed()?;
        // Root's own base stays root's, so that the server's user can plant no
        // link where root opens the lock and the log; it only passes through.
        let mode = if server_user.is_some() { 0o755 } else { 0o700 };
        if !path.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(path)
                .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
                .map_err(ClusterError::io("create", path))?;
        }
        require_owner(path, &[our_uid()])?;
        let base = fs::canonicalize(path).map_err(ClusterError::io("resolve", path))?;
        if let Some(user) = server_user {
            require_enterable(&base, user)?;
        }
        let lock = lock(&base)?;
        let socket_dir = socket::choose_directory(&base);
        let log = Log::new(base.join("postgres.log"));
        let directory = Self {
            base,
            log,
            socket_dir,
            server_user,
            _lock: lock,
        };
        directory.make_private(&directory.socket_dir)?;
        Ok(directory)
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.base.join("data")
    }

    /// The major version that made the data, or `None` where there is none yet.
    pub(crate) fn data_major(&self) -> Result<Option<u32>, ClusterError> {
        let file = self.data().join("PG_VERSION");
        if !self.data().exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).map_err(ClusterError::io("read", &file))?;
        let major = text.trim().parse().map_err(|source| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, source);
            ClusterError::io("understand", &file)(source)
        })?;
        Ok(Some(major))
    }

    /// An empty directory to make a cluster in. [`Self::adopt`] turns it into
    /// the data directory, so that an `initdb` cut short leaves no half of one.
    pub(crate) fn make_draft(&self) -> Result<PathBuf, ClusterError> {
        let draft = self.base.join("data.new");
        remove(&draft)?;
        self.make_private(&draft)?;
        Ok(draft)
    }

    pub(crate) fn adopt(&self, draft: &Path) -> Result<(), ClusterError> {
        fs::rename(draft, self.data()).map_err(ClusterError::io("rename", draft))
    }

    /// Removes the cluster and its log; the directory and its lock stay.
    pub(crate) fn clear(&self) -> Result<(), ClusterError> {
        [
            self.data(),
            self.base.join("data.new"),
            self.log.path().to_owned(),
        ]
        .iter()
        .try_for_each(|it| remove(it))
    }

    /// Removes everything that was made, and the directory if nothing else is
    /// in it.
    pub(crate) fn remove(&self) -> Result<(), ClusterError> {
        self.clear()?;
        remove(&self.socket_dir)?;
        remove(&self.base.join("lock"))?;
        match fs::remove_dir(&self.base) {
            Err(e) if e.kind() != std::io::ErrorKind::DirectoryNotEmpty => {
                Err(ClusterError::io("remove", &self.base)(e))
            }
            _ => Ok(()),
        }
    }

    fn make_private(&self, path: &Path) -> Result<(), ClusterError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                let server = self.server_user.map_or(our_uid(), |user| user.uid);
                require_owner(path, &[our_uid(), server])?;
            }
            other => other.map_err(ClusterError::io("create", path))?,
        }
        fs::set_permissions(path, Permissions::from_mode(0o700))
            .and_then(|()| match self.server_user {
                Some(user) => chown(path, Some(user.uid), Some(user.gid)),
                None => Ok(()),
            })
            .map_err(ClusterError::io("make private", path))
    }
}

fn lock(base: &Path) -> Result<File, ClusterError> {
    let path = base.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(ClusterError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
            let holder = if known {
                holder.trim().to_owned()
            } else {
                "unknown".to_owned()
            };
            return Err(ClusterError::InUse {
                path: base.to_owned(),
                holder,
            });
        }
        Err(TryLockError::Error(e)) => return Err(ClusterError::io("lock", &path)(e)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(ClusterError::io("write", &path))?;
    Ok(file)
}

fn remove(path: &Path) -> Result<(), ClusterError> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(ClusterError::io("remove", path)),
    }
}
