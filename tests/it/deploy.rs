//! What `deploy/` sets exists: its variables are settings of the program, its commands are commands.

use std::collections::BTreeSet;

use clap::CommandFactory;
use leasehold::cli::Cli;

use super::support::Document;

const FILES: &[&str] = &[
    "deploy/Dockerfile",
    "deploy/compose.yml",
    "deploy/systemd/leasehold.service",
    "deploy/kubernetes/leasehold.yml",
    "deploy/kubernetes/migrate.yml",
];

#[test]
fn every_variable_is_a_setting() {
    let cli = Cli::command();
    let known: BTreeSet<&str> = cli
        .get_subcommands()
        .flat_map(|command| command.get_arguments())
        .filter_map(|argument| argument.get_env()?.to_str())
        .collect();
    for file in FILES {
        let text = Document::read(file).text();
        let words =
            text.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        let named: BTreeSet<&str> = words
            .filter(|word| word.starts_with("LEASEHOLD_") || word.starts_with("DATABASE_URL"))
            .collect();
        // Migrating needs the address of the database alone.
        assert!(!named.is_empty(), "{file}");
        let unknown: Vec<&&str> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn the_check_of_health_is_a_command_of_the_program() {
    let text = Document::read("deploy/Dockerfile").text();
    let (_, check) = text.split_once("CMD [").unwrap();
    let (check, _) = check.split_once(']').unwrap();
    let words: Vec<&str> = check
        .split(", ")
        .map(|word| word.trim_matches('"'))
        .collect();
    assert_eq!(words[0], "/usr/local/bin/leasehold");
    Cli::command().try_get_matches_from(words).unwrap();
}
