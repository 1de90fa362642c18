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

/// The modules of `src` from the ground up: each may use those before it, and no other.
const FLOORS: &[&str] = &[
    "domain",
    "access",
    "wire",
    "telemetry",
    "descriptors",
    "store",
    "coalesce",
    "wake",
    "presence",
    "stream",
    "cells",
    "jobs",
    "webhooks",
    "http",
    "config",
    "app",
    "cli",
    "main",
];

/// Which floors a crate is named on; on no other.
const CRATES: &[(&str, &[&str])] = &[
    ("actix_web", &["http", "app", "main"]),
    ("actix_http", &["http"]),
    ("actix_service", &["http"]),
    ("actix_ws", &["http"]),
    ("actix_cors", &["http"]),
    ("rustix", &["descriptors"]),
    ("socket2", &["http"]),
    ("ureq", &["http"]),
    ("hyper_util", &["webhooks"]),
    ("hyper_rustls", &["webhooks"]),
    ("http_body_util", &["webhooks"]),
    ("hmac", &["webhooks"]),
    ("url", &["webhooks"]),
    ("ipnet", &["http", "config", "webhooks"]),
    ("jsonwebtoken", &["http"]),
    ("sqlx", &["store"]),
    ("clap", &["config", "cli", "main", "telemetry"]),
    ("metrics_exporter_prometheus", &["telemetry"]),
];

/// The floors that do no I/O, and what they therefore must not name.
const PURE: (&[&str], &[&str]) = (
    &["domain", "access", "wire"],
    &["tokio", "std::fs", "std::net"],
);

/// The place of a file's module, which `lib` is above all of.
fn floor(file: &str) -> usize {
    let module = module(file);
    if module == "lib" {
        return FLOORS.len();
    }
    let place = FLOORS.iter().position(|floor| *floor == module);
    place.expect("a module of src stands on no floor: give it a place in FLOORS")
}

#[test]
fn a_crate_is_named_only_where_it_belongs() {
    for (file, text) in files("src") {
        let (module, code) = (module(&file), code(&text));
        for (name, floors) in CRATES {
            let may = floors.contains(&module) || !names(&code, name);
            assert!(may, "{file} names {name}, which only {floors:?} do");
        }
        if PURE.0.contains(&module) {
            for name in PURE.1 {
                assert!(!names(&code, name), "{file} is pure, but names {name}");
            }
        }
    }
}

#[test]
fn a_module_uses_only_those_on_floors_below_it() {
    for (file, text) in files("src") {
        let own = floor(&file);
        let code = code(&text);
        for above in FLOORS.iter().skip(own + 1) {
            let path = format!("crate::{above}");
            let uses = code
                .split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                .any(|word| word == path || word.starts_with(&format!("{path}::")));
            assert!(!uses, "{file} uses {path}, which is above it");
        }
    }
}

#[test]
fn a_file_that_is_called_mod_lists_modules_and_nothing_else() {
    for (file, text) in files("src") {
        if !file.ends_with("/mod.rs") {
            continue;
        }
        let words = [
            "fn",
            "struct",
            "enum",
            "impl",
            "trait",
            "const",
            "static",
            "type",
            "macro_rules",
        ];
        for line in code(&text).lines() {
            let is_item = words.iter().any(|word| {
                let mut parts = line.split_whitespace();
                parts.any(|part| part == *word || part == format!("{word}!"))
            });
            assert!(!is_item, "src/{file} should list modules only: {line}");
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
    for (directory, most) in [("src", 400), ("tests", 600)] {
        for (file, text) in files(directory) {
            let lines = text.lines().count();
            assert!(
                lines < most,
                "{directory}/{file} has {lines} lines; split it"
            );
        }
    }
}
