//! The shape of the source: which module may name what, and how large a file may be.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Every Rust file below a directory, with its path from there and its text.
fn files(directory: &str) -> Vec<(String, String)> {
    let root = Path::new(ROOT).join(directory);
    let mut found = Vec::new();
    let mut directories: Vec<PathBuf> = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                found.push((name.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// The top-level module that a file of `src` belongs to.
fn module(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// Code without comments, which may speak of anything.
fn code(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the code names this crate.
fn names(code: &str, name: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
        .any(|word| word.starts_with(&format!("{name}::")))
}

#[test]
fn a_crate_is_named_only_where_it_belongs() {
    // The app builds actix's server and main starts its runtime.
    let http = ["http", "app", "main"];
    for (file, text) in files("src") {
        let (module, code) = (module(&file), code(&text));
        for name in ["actix_web", "actix_ws"] {
            let may = http.contains(&module) || !names(&code, name);
            assert!(may, "{file} names {name}, which only http does");
        }
        let may = module == "store" || !names(&code, "sqlx");
        assert!(may, "{file} names sqlx, which only store does");
        if module == "domain" {
            for name in ["actix_web", "sqlx", "tokio"] {
                assert!(!names(&code, name), "{file} is pure, but names {name}");
            }
        }
    }
}

#[test]
fn modules_use_only_those_below_them() {
    for (file, text) in files("src") {
        let forbidden: &[&str] = match module(&file) {
            "domain" => &[
                "store",
                "coalesce",
                "presence",
                "http",
                "jobs",
                "stream",
                "app",
                "cli",
                "config",
                "telemetry",
                "dev",
            ],
            "store" => &[
                "coalesce", "presence", "http", "jobs", "stream", "app", "cli", "config", "dev",
            ],
            "coalesce" => &[
                "presence", "http", "jobs", "stream", "app", "cli", "config", "dev",
            ],
            "presence" => &["http", "jobs", "stream", "app", "cli", "config", "dev"],
            "stream" => &["http", "jobs", "app", "cli", "config", "dev"],
            "jobs" => &["http", "stream", "app", "cli", "config", "dev"],
            "http" => &["jobs", "app", "cli", "config", "dev"],
            "app" => &["cli", "dev"],
            "dev" => &[
                "domain",
                "store",
                "coalesce",
                "presence",
                "http",
                "jobs",
                "stream",
                "app",
                "cli",
                "config",
                "telemetry",
            ],
            _ => &[],
        };
        let code = code(&text);
        for used in forbidden {
            let path = format!("crate::{used}");
            let uses = code
                .split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                .any(|word| word == path || word.starts_with(&format!("{path}::")));
            assert!(!uses, "{file} uses {path}, which is above it");
        }
    }
}

#[test]
fn no_module_is_called_after_nothing() {
    for directory in ["src", "tests"] {
        for (file, _) in files(directory) {
            for part in Path::new(&file).iter() {
                let name = part.to_str().unwrap().trim_end_matches(".rs");
                let says_nothing = [
                    "utils", "util", "common", "helpers", "models", "types", "misc",
                ];
                assert!(!says_nothing.contains(&name), "{directory}/{file}");
            }
        }
    }
}

#[test]
fn a_file_fits_into_a_head() {
    for directory in ["src", "tests"] {
        for (file, text) in files(directory) {
            let lines = text.lines().count();
            assert!(
                lines < 600,
                "{directory}/{file} has {lines} lines; split it"
            );
        }
    }
}
