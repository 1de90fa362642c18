//! `leasehold cell` as a command, and the map that proxies read.

use leasehold::cells::{Cell, slot_map};

use super::super::support::{Database, command, run, text};
use super::{cell, join, slots_of};

fn cells(of: &[(&str, &Database)]) -> Vec<Cell> {
    let cell = |(name, database): &(&str, &Database)| Cell {
        name: (*name).to_owned(),
        database: database.settings(),
    };
    of.iter().map(cell).collect()
}

#[tokio::test]
async fn the_map_is_the_same_however_the_cells_are_ordered() {
    let (one, two, three) = (
        cell("0-999").await,
        cell("1000-2999").await,
        cell("3000-4095").await,
    );
    let map = slot_map(&cells(&[("a", &one), ("b", &two), ("c", &three)]))
        .await
        .unwrap();
    let reordered = slot_map(&cells(&[("c", &three), ("a", &one), ("b", &two)]))
        .await
        .unwrap();
    assert_eq!(map, reordered);
    let lines: Vec<&str> = map.lines().collect();
    assert_eq!(lines.len(), 4_096);
    assert_eq!(
        (lines[0], lines[999], lines[1000], lines[4_095]),
        ("000 a", "3e7 a", "3e8 b", "fff c")
    );

    let nobody = slot_map(&cells(&[("a", &one), ("c", &three)]))
        .await
        .unwrap_err();
    assert!(
        nobody
            .to_string()
            .contains("no cell owns the slots 1000-2999"),
        "{nobody}"
    );
    let all = cell("all").await;
    let twice = slot_map(&cells(&[("a", &one), ("x", &all)]))
        .await
        .unwrap_err();
    assert!(
        twice.to_string().contains("slot 0 is owned by a and by x"),
        "{twice}"
    );
}

#[tokio::test]
async fn slots_are_given_shown_moved_and_called_off_from_the_command_line() {
    let (source, target) = (cell("all").await, cell("all").await);
    join(&source, "kitchen", "alice").await;
    let own = run(&["cell", "own", "none"], &target.url());
    assert!(own.status.success(), "{}", text(&own.stderr));
    let slot = text(&run(&["cell", "slot", "kitchen"], "").stdout);
    assert_eq!(slot, "791 317\n");
    let told = tempfile::NamedTempFile::new().unwrap();
    let program = tempfile::TempDir::new().unwrap();
    let program = program.path().join("tell");
    std::fs::write(
        &program,
        format!("#!/bin/sh\necho \"$@\" >>{}\n", told.path().display()),
    )
    .unwrap();
    let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, runs).unwrap();
    let moved = command(&[
        "cell",
        "move",
        "--slots",
        "790-793",
        "--at-once",
        "2",
        "--on-moved",
    ])
    .arg(&program)
    .env("LEASEHOLD_MOVE_FROM", source.url())
    .env("LEASEHOLD_MOVE_TO", target.url())
    .output()
    .unwrap();
    assert!(moved.status.success(), "{}", text(&moved.stderr));
    let said = text(&moved.stdout);
    assert!(
        said.starts_with("slots 790-791: 2 events, 1 rooms ended, away for "),
        "{said}"
    );
    assert_eq!(
        std::fs::read_to_string(told.path()).unwrap(),
        "316 317\n318 319\n"
    );
    let shown = text(&run(&["cell", "show"], &source.url()).stdout);
    assert_eq!(shown, "owned: 0-789,794-4095\n");
    let map = run(
        &[
            "cell",
            "map",
            &format!("b={}", target.url()),
            &format!("a={}", source.url()),
        ],
        "",
    );
    let map = text(&map.stdout);
    assert!(
        map.contains("\n317 b\n") && map.contains("\n31a a\n"),
        "{map}"
    );
    assert_eq!(join(&target, "kitchen", "alice").await, "joined 2 2");

    let slots = slots_of(&["elsewhere"]);
    let mut begun = super::moving(&source, &target, &slots).await;
    begun.arrive(&slots).await.unwrap();
    begun.fence(&slots).await.unwrap();
    begun.close().await.unwrap();
    let shown = text(&run(&["cell", "show"], &source.url()).stdout);
    assert!(
        shown.contains(&format!("leaving: {slots} (database ")),
        "{shown}"
    );
    let arguments = [
        "cell",
        "move",
        "--cancel",
        "--slots",
        &slots.to_string(),
        "--from",
        &source.url(),
        "--to",
        &target.url(),
    ];
    let cancelled = run(&arguments, "");
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    assert_eq!(join(&source, "elsewhere", "alice").await, "joined 1 1");
}
