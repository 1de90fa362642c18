use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{ClusterError, OLDEST_MAJOR};

/// Where packages put server programs outside PATH: a directory, and what a
/// name in it starts with before the major version. `bin` is below that.
const INSTALLATIONS: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql@"),
];

/// One installation of PostgreSQL's server programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    bin: PathBuf,
    major: u32,
}

impl Programs {
    /// Finds `initdb` and `postgres` of version [`OLDEST_MAJOR`] or later: on
    /// PATH, else the newest that a package has put where packages put them.
    ///
    /// # Errors
    /// [`ClusterError::ProgramsMissing`], which names what to install.
    pub fn find() -> Result<Self, ClusterError> {
        choose(&installed())
    }

    /// Finds the programs for data that exists: PostgreSQL opens only what its
    /// own major version has written.
    pub(crate) fn find_for(data: &Path, data_major: u32) -> Result<Self, ClusterError> {
        choose_for(&installed(), data, data_major)
    }

    /// The directory they are in.
    pub fn bin(&self) -> &Path {
        &self.bin
    }
}

/// In order of preference.
fn installed() -> Vec<Programs> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path)
        .filter(|bin| bin.is_absolute())
        .filter_map(probe);
    let mut packaged: Vec<_> = INSTALLATIONS
        .iter()
        .flat_map(|(parent, prefix)| versions_in(parent, prefix))
        .collect();
    packaged.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    on_path
        .chain(packaged.into_iter().filter_map(|(_, bin)| probe(bin)))
        .collect()
}

fn versions_in(parent: &str, prefix: &str) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let version = entry
                .file_name()
                .to_str()?
                .strip_prefix(prefix)?
                .parse()
                .ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect()
}

fn probe(bin: PathBuf) -> Option<Programs> {
    if !bin.join("initdb").is_file() {
        return None;
    }
    let answer = Command::new(bin.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let major = parse_major(str::from_utf8(&answer.stdout).ok()?)?;
    Some(Programs { bin, major })
}

/// `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)` is 15, `18beta1` 18.
fn parse_major(answer: &str) -> Option<u32> {
    let version = answer.split_once("(PostgreSQL)")?.1.trim_start();
    let end = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version[..end].parse().ok()
}

fn choose(installed: &[Programs]) -> Result<Programs, ClusterError> {
    installed
        .iter()
        .find(|programs| programs.major >= OLDEST_MAJOR)
        .cloned()
        .ok_or_else(|| ClusterError::ProgramsMissing {
            found: names(installed),
        })
}

fn choose_for(
    installed: &[Programs],
    data: &Path,
    data_major: u32,
) -> Result<Programs, ClusterError> {
    // Where nothing is usable, that is the thing to say.
    choose(installed)?;
    installed
        .iter()
        .find(|programs| programs.major == data_major && data_major >= OLDEST_MAJOR)
        .cloned()
        .ok_or_else(|| ClusterError::OtherVersion {
            data: data.to_owned(),
            data_major,
            found: names(installed),
        })
}

fn names(installed: &[Programs]) -> String {
    let names: Vec<_> = installed
        .iter()
        .map(|it| format!("{} in {}", it.major, it.bin.display()))
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(majors: &[u32]) -> Vec<Programs> {
        majors
            .iter()
            .map(|&major| Programs {
                bin: format!("/pg/{major}").into(),
                major,
            })
            .collect()
    }

    #[test]
    fn the_major_version_is_read_from_what_postgres_answers() {
        let debian = "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n";
        assert_eq!(parse_major(debian), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(parse_major("postgres (PostgreSQL) 17"), Some(17));
        assert_eq!(parse_major("postgres (EnterpriseDB) 15.1"), None);
        assert_eq!(parse_major(""), None);
    }

    #[test]
    fn what_is_preferred_and_new_enough_is_chosen() {
        assert_eq!(choose(&programs(&[13, 16, 15])).unwrap().major, 16);
    }

    #[test]
    fn too_old_a_version_is_named_with_what_to_install() {
        let refusal = choose(&programs(&[9, 13])).unwrap_err().to_string();
        assert!(
            refusal.contains("found: 9 in /pg/9, 13 in /pg/13"),
            "{refusal}"
        );
        assert!(refusal.contains("apt install postgresql"), "{refusal}");
        assert!(choose(&[]).unwrap_err().to_string().contains("found: none"));
    }

    #[test]
    fn data_is_opened_by_the_version_that_wrote_it() {
        let data = Path::new("/somewhere/data");
        assert_eq!(
            choose_for(&programs(&[17, 15]), data, 15).unwrap().major,
            15
        );
        let refusal = choose_for(&programs(&[17]), data, 15)
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("made by PostgreSQL 15, and only 17 in /pg/17"),
            "{refusal}"
        );
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let root = env::temp_dir().join(format!("leasehold-versions-{}", std::process::id()));
        for name in ["pg-9", "pg-17", "pg-old", "16"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let mut found: Vec<_> = versions_in(root.to_str().unwrap(), "pg-");
        found.sort();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            found,
            [(9, root.join("pg-9/bin")), (17, root.join("pg-17/bin"))]
        );
    }
}
