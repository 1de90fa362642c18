//! The two command lines: `initdb`'s and `postgres`'s.

use std::fs::File;
use std::process::Command;

use crate::directory::Directory;
use crate::error::ClusterError;
use crate::log;
use crate::options::{ClusterOptions, Durability};
use crate::postmaster;
use crate::programs::Programs;

/// Makes a cluster in a directory that has none.
pub(crate) fn initialise(
    directory: &Directory,
    programs: &Programs,
    durability: Durability,
) -> Result<(), ClusterError> {
    let draft = directory.make_draft()?;
    let initdb = programs.bin().join("initdb");
    let mut command = postmaster::command(&initdb, &draft, directory.server_user);
    command.arg("-D").arg(&draft).args([
        "--username=postgres",
        "--auth-local=trust",
        "--auth-host=reject",
        "--encoding=UTF8",
        "--locale=C",
    ]);
    if durability == Durability::ThrowAway {
        command.arg("--no-sync");
    }
    let ended = command.output().map_err(ClusterError::io("run", &initdb))?;
    if !ended.status.success() {
        let output = log::last_lines(&[ended.stdout, ended.stderr].concat());
        return Err(ClusterError::Initdb {
            data: draft,
            status: ended.status,
            output,
        });
    }
    directory.adopt(&draft)
}

/// The server on that cluster, which writes to `log`.
pub(crate) fn server(
    directory: &Directory,
    programs: &Programs,
    options: &ClusterOptions,
    log: File,
) -> Result<Command, ClusterError> {
    let log_too = log
        .try_clone()
        .map_err(ClusterError::io("share", directory.log.path()))?;
    let data = directory.data();
    let program = programs.bin().join("postgres");
    let mut command = postmaster::command(&program, &data, directory.server_user);
    command.arg("-D").arg(&data).stdout(log).stderr(log_too);
    command.envs(options.environment.iter().cloned());
    // The setting is a list, in which a quoted name may contain anything.
    let socket_dir = directory.socket_dir.to_string_lossy().replace('"', "\"\"");
    let socket_setting = format!("\"{socket_dir}\"");
    let mut settings = vec![
        // There, anybody on this machine could connect.
        ("listen_addresses", ""),
        ("port", "5432"),
        ("unix_socket_directories", socket_setting.as_str()),
        ("unix_socket_permissions", "0700"),
        ("logging_collector", "off"),
    ];
    if options.durability == Durability::ThrowAway {
        settings.extend([
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("full_page_writes", "off"),
        ]);
    }
    let chosen = options
        .settings
        .iter()
        .map(|(name, value)| (&**name, &**value));
    for (name, value) in settings.into_iter().chain(chosen) {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    Ok(command)
}
