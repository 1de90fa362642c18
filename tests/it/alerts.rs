//! The rules for alerts are true: they name metrics that exist, the guide explains each, and they fire.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::{App, Database, Document};

/// The words of the rules that start so.
fn words(text: &str, start: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.filter(|word| word.starts_with(start));
    words.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_alerts_name_metrics_that_the_service_has() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    app.heartbeat("r", "alice", 1).await;
    let text = app.get("/metrics").await.text().await.unwrap();
    let rules = Document::read("deploy/prometheus/alerts.yml").text();
    let named = words(&rules, "leasehold_");
    assert!(named.len() > 10);
    let there = words(&text, "leasehold_");
    let missing: Vec<&String> = named.difference(&there).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_operators_guide_explains_every_alert() {
    let rules = words(
        &Document::read("deploy/prometheus/alerts.yml").text(),
        "Leasehold",
    );
    let rules: BTreeSet<String> = rules.into_iter().filter(|w| w != "Leasehold").collect();
    let guide = Document::read("docs/operations.md").section("alerts");
    assert_eq!(
        words(&guide, "Leasehold"),
        rules,
        "left: the guide, right: the rules"
    );
}

#[test]
fn the_alerts_fire_when_they_should_and_only_then() {
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no promtool; it is in Debian's package prometheus");
        return;
    }
    for arguments in [
        ["check", "rules", "deploy/prometheus/alerts.yml"],
        ["test", "rules", "tests/alerts.yml"],
    ] {
        let mut promtool = Command::new("promtool");
        promtool
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = promtool.output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}
