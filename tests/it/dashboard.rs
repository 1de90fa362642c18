//! The dashboard is true: it asks for metrics and labels that a service has, in queries that can be read.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

use serde_json::Value;
use tempfile::NamedTempFile;

use super::support::{App, Database, Document};

/// Labels that Prometheus and its histograms add.
const ADDED: &[&str] = &["instance", "le"];

/// The panels and the queries of each, with how their lines are named.
fn queries() -> Vec<(String, String)> {
    let text = Document::read("deploy/grafana/leasehold.json").text();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] == "row" {
            continue;
        }
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            let text = |name: &str| target[name].as_str().unwrap().to_owned();
            queries.push((text("expr"), text("legendFormat")));
        }
    }
    assert!(queries.len() > 20);
    queries
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The labels by which a query groups, picks and names.
fn labels<'q>(query: &'q str, legend: &'q str) -> BTreeSet<&'q str> {
    let grouped = query.split("by (").skip(1);
    let grouped = grouped.flat_map(|rest| rest.split(')').next().unwrap().split(", "));
    let picked = query.split('{').skip(1);
    let picked = picked.map(|rest| rest.split('=').next().unwrap());
    let named = legend.split("{{").skip(1);
    let named = named.map(|rest| rest.split("}}").next().unwrap());
    grouped.chain(picked).chain(named).collect()
}

#[tokio::test]
async fn the_dashboard_asks_for_metrics_and_labels_that_the_service_has() {
    let listed = Document::read("docs/operations.md").section("metrics");
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    app.join("r", "alice").await;
    app.heartbeat("r", "alice", 1).await;
    let there = app.get("/metrics").await.text().await.unwrap();
    let there: BTreeSet<&str> = words(&there).collect();
    for (query, legend) in queries() {
        let metrics = words(&query).filter(|word| word.starts_with("leasehold_"));
        let metrics: Vec<&str> = metrics.collect();
        assert_eq!(metrics.len(), 1, "{query}");
        assert!(there.contains(metrics[0]), "{query}");
        // The guide is held to what the service has, by a test of its own.
        let name = metrics[0].trim_end_matches("_bucket");
        let row = listed
            .lines()
            .find(|row| row.starts_with(&format!("| `{name}` ")));
        let row = row.unwrap_or_else(|| unreachable!("the guide does not list {name}"));
        let kind = row.split('|').nth(2).unwrap();
        for label in labels(&query, &legend) {
            let is_known = ADDED.contains(&label) || kind.contains(&format!("`{label}`"));
            assert!(is_known, "{name} has no label {label}: {query}");
        }
        let is_rated = query.contains("rate(");
        assert_eq!(is_rated, !kind.contains("gauge"), "{query} of a {kind}");
    }
}

#[test]
fn prometheus_can_read_every_query_of_the_dashboard() {
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no promtool; it is in Debian's package prometheus");
        return;
    }
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    for (n, (query, _)) in queries().iter().enumerate() {
        let query = Value::from(query.as_str());
        writeln!(rules, "      - {{ record: 'q{n}', expr: {query} }}").unwrap();
    }
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules).unwrap();
    let mut promtool = Command::new("promtool");
    let output = promtool.args(["check", "rules"]).arg(file.path());
    let output = output.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
