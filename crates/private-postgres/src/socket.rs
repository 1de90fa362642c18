use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::users::{is_root, our_uid};

/// What `sun_path` holds on Linux without its final NUL; macOS has 103, and
/// the shorter of the two is kept to everywhere.
const LONGEST_SOCKET_PATH: usize = 103;
const SOCKET_NAME: &str = ".s.PGSQL.5432";

/// Beside the data, or where its path would be too long, in the directory for
/// such things.
pub(crate) fn choose_directory(base: &Path) -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir());
    let parent = match runtime {
        _ if is_root() && Path::new("/run").is_dir() => PathBuf::from("/run"),
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from("/tmp"),
    };
    let short = format!("leasehold-{}-{:016x}", our_uid(), digest(base));
    let candidates = [base.join("run"), parent.join(&short)];
    let fitting = candidates.into_iter().find(|dir| fits(dir));
    fitting.unwrap_or_else(|| Path::new("/tmp").join(&short))
}

fn fits(directory: &Path) -> bool {
    // As text, because it goes into a setting and a URL.
    let length = directory
        .to_str()
        .map(|text| text.len() + 1 + SOCKET_NAME.len());
    length.is_some_and(|length| length <= LONGEST_SOCKET_PATH)
}

/// A short name for a path: the same whenever the path is.
pub(crate) fn digest(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_goes_beside_the_data_where_its_path_fits() {
        let longest = "/".to_owned() + &"d".repeat(LONGEST_SOCKET_PATH - SOCKET_NAME.len() - 2);
        assert!(fits(Path::new(&longest)));
        assert!(!fits(Path::new(&(longest + "d"))));
        assert_eq!(
            choose_directory(Path::new("/short")),
            Path::new("/short/run")
        );
    }

    #[test]
    fn a_long_data_path_gets_a_short_socket_directory_of_its_own() {
        let long = |end: &str| choose_directory(Path::new(&("/d".repeat(60) + end)));
        assert!(fits(&long("a")), "{:?}", long("a"));
        assert_ne!(long("a"), long("b"));
        assert_eq!(long("a"), long("a"));
    }
}
