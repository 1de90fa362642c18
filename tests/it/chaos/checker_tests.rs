//! Hand-written histories: one that is right, and for each rule those that break it and nothing else.

use super::checker::violations;
use super::history::{Answered, Asked, History, Kind, Operation, Outage, Recorded, Session};

const LEASE: i64 = 3_000;

fn session(epoch: i64) -> Session {
    Session {
        room: "r".to_owned(),
        user: "alice".to_owned(),
        device: "phone".to_owned(),
        epoch,
    }
}

fn operation(start: i64, asked: Asked, answered: Answered) -> Operation {
    let end = start + 10;
    Operation {
        asked,
        answered,
        start,
        end,
    }
}

fn join(start: i64, answered: Answered) -> Operation {
    let Session {
        room, user, device, ..
    } = session(0);
    let asked = Asked::Join {
        room,
        user,
        device,
        lease_ms: LEASE,
    };
    operation(start, asked, answered)
}

fn joined(start: i64, epoch: i64) -> Operation {
    join(start, Answered::Joined { epoch })
}

fn renew(start: i64, epoch: i64, answered: Answered) -> Operation {
    operation(start, Asked::Renew(session(epoch)), answered)
}

fn leave(start: i64, epoch: i64, answered: Answered) -> Operation {
    operation(start, Asked::Leave(session(epoch)), answered)
}

fn list(start: i64, epochs: &[i64]) -> Operation {
    let shown = epochs.iter().map(|epoch| ("alice".to_owned(), *epoch));
    let asked = Asked::List {
        room: "r".to_owned(),
    };
    operation(start, asked, Answered::Listed(shown.collect()))
}

/// With everything recorded and fed that its answers promise.
fn history(operations: Vec<Operation>) -> History {
    let mut history = History {
        operations,
        ..History::default()
    };
    for operation in &history.operations {
        let recorded = match (&operation.asked, &operation.answered) {
            (_, Answered::Joined { epoch }) => Recorded {
                session: session(*epoch),
                kind: Kind::Joined,
            },
            (Asked::Leave(session), Answered::Done) => Recorded {
                session: session.clone(),
                kind: Kind::Ended,
            },
            _ => continue,
        };
        if !history.recorded.contains(&recorded) {
            history.recorded.push(recorded);
        }
    }
    history.fed = history.recorded.clone();
    history
}

/// Exactly one violation, which says this.
fn breaks(history: &History, says: &str) {
    let found = violations(history);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains(says), "{found:#?}");
}

fn holds(history: &History) {
    let found = violations(history);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_right_history_has_no_violation() {
    holds(&history(vec![
        joined(0, 1),
        list(100, &[1]),
        renew(1_000, 1, Answered::Done),
        list(3_500, &[1]),
        list(8_000, &[]),
        renew(8_100, 1, Answered::Stale),
        joined(9_000, 2),
        leave(9_100, 2, Answered::Done),
        list(9_200, &[]),
        join(9_300, Answered::Unknown),
        list(9_400, &[3]),
        list(9_500, &[]),
    ]));
}

#[test]
fn an_epoch_that_is_handed_out_twice_is_found() {
    let mut second = joined(5, 1);
    second.end = 20;
    breaks(&history(vec![joined(0, 1), second]), "twice");
}

#[test]
fn an_epoch_that_falls_is_found() {
    let falls = history(vec![joined(0, 2), joined(100, 1)]);
    breaks(&falls, "got epoch 1 at 100, after 2");
    // In the same moment either may come first.
    holds(&history(vec![joined(0, 2), joined(5, 1)]));
}

#[test]
fn an_acknowledged_join_or_leave_that_is_lost_is_found() {
    for kind in [Kind::Joined, Kind::Ended] {
        let mut lost = history(vec![joined(0, 1), leave(100, 1, Answered::Done)]);
        lost.recorded.retain(|recorded| recorded.kind != kind);
        lost.fed = lost.recorded.clone();
        breaks(&lost, "not recorded");
    }
    let unanswered = vec![joined(0, 1), leave(100, 1, Answered::Unknown)];
    holds(&history(unanswered));
}

#[test]
fn a_feed_that_misses_repeats_or_invents_is_found() {
    let right = || history(vec![joined(0, 1), leave(100, 1, Answered::Done)]);
    let mut misses = right();
    misses.fed.pop();
    breaks(&misses, "not in the feed");
    let mut repeats = right();
    repeats.fed.push(repeats.fed[0].clone());
    breaks(&repeats, "twice in the feed");
    let mut invents = right();
    invents.fed.push(Recorded {
        session: session(7),
        kind: Kind::Joined,
    });
    breaks(&invents, "only in the feed");
}

#[test]
fn a_success_for_a_stale_session_is_found() {
    let replaced = vec![joined(0, 1), joined(100, 2), renew(200, 1, Answered::Done)];
    breaks(&history(replaced), "left or was replaced");
    let left = vec![
        joined(0, 1),
        leave(100, 1, Answered::Done),
        renew(200, 1, Answered::Done),
    ];
    breaks(&history(left), "left or was replaced");
    let expired = vec![joined(0, 1), renew(6_000, 1, Answered::Done)];
    breaks(&history(expired), "last heard of at 10");
}

#[test]
fn a_refusal_of_a_live_session_is_found() {
    let live = vec![joined(0, 1), renew(900, 1, Answered::Stale)];
    breaks(&history(live), "refused at 900");
    // What was not answered may have ended it.
    for ends in [
        leave(500, 1, Answered::Unknown),
        join(500, Answered::Unknown),
    ] {
        holds(&history(vec![
            joined(0, 1),
            ends,
            renew(1_000, 1, Answered::Stale),
        ]));
    }
}

#[test]
fn somebody_who_is_gone_and_shown_is_found() {
    let expired = vec![joined(0, 1), list(6_000, &[1])];
    breaks(&history(expired), "last heard of at 10");
    let left = vec![joined(0, 1), leave(100, 1, Answered::Done), list(200, &[1])];
    breaks(&history(left), "left or was replaced");
    breaks(&history(vec![list(0, &[1])]), "never asked");
    let later = vec![list(0, &[1]), joined(100, 1)];
    breaks(&history(later), "joined later");
}

#[test]
fn an_outage_keeps_whoever_was_there() {
    let mut stood = history(vec![joined(0, 1), list(6_000, &[1])]);
    stood.outages.push(Outage {
        began: 500,
        ended: 5_000,
        paused: 4_000,
    });
    holds(&stood);
    // But not for longer than the clock stood still.
    stood.operations.push(list(9_500, &[1]));
    breaks(&stood, "last heard of at 10");
}

#[test]
fn somebody_who_lives_and_is_not_shown_is_found() {
    breaks(
        &history(vec![joined(0, 1), list(900, &[])]),
        "does not show",
    );
    let renewed = || {
        history(vec![
            joined(0, 1),
            renew(2_000, 1, Answered::Done),
            list(4_000, &[]),
        ])
    };
    breaks(&renewed(), "does not show");
    // A crash may lose a heartbeat of the moment before.
    let mut crashed = renewed();
    crashed.crashes.push(2_100);
    holds(&crashed);
    // But no join.
    let mut crashed = history(vec![joined(0, 1), list(900, &[])]);
    crashed.crashes.push(100);
    breaks(&crashed, "does not show");
}
