//! The guarantees, read off a history. Pure; `checker_tests.rs` shows that each rule can fail.

use std::collections::{HashMap, HashSet};

use super::history::{Answered, Asked, History, Kind, Operation, Recorded};
use super::lives::{Life, Lives};

/// Every violation, as a sentence.
pub fn violations(history: &History) -> Vec<String> {
    let lives = Lives::of(&history.operations);
    let mut found = Vec::new();
    epochs_rise(history, &mut found);
    nothing_acknowledged_is_lost(history, &mut found);
    the_feed_tells_everything_once(history, &mut found);
    renewals_are_of_live_sessions(history, &lives, &mut found);
    lists_show_nobody_who_is_gone(history, &lives, &mut found);
    lists_show_everybody_who_lives(history, &lives, &mut found);
    found
}

/// Start, end and epoch of an acknowledged join.
type Joined = (i64, i64, i64);

/// No epoch twice, and a join that began after another was answered has a higher one.
fn epochs_rise(history: &History, found: &mut Vec<String>) {
    let mut joins: HashMap<(&str, &str), Vec<Joined>> = HashMap::new();
    for operation in &history.operations {
        if let (Asked::Join { room, user, .. }, Answered::Joined { epoch }) =
            (&operation.asked, &operation.answered)
        {
            let of_user = joins.entry((room, user)).or_default();
            of_user.push((operation.start, operation.end, *epoch));
        }
    }
    for ((room, user), mut joins) in joins {
        let mut epochs = HashSet::new();
        for (_, end, epoch) in &joins {
            if !epochs.insert(epoch) {
                found.push(format!(
                    "{user} in {room} got epoch {epoch} twice, at {end}"
                ));
            }
        }
        let mut answered = joins.clone();
        answered.sort_by_key(|(_, end, _)| *end);
        joins.sort_unstable();
        let (mut answered, mut highest) = (answered.into_iter().peekable(), 0);
        for (start, _, epoch) in joins {
            while let Some((_, _, earlier)) = answered.next_if(|(_, end, _)| *end < start) {
                highest = highest.max(earlier);
            }
            if epoch <= highest {
                found.push(format!(
                    "{user} in {room} got epoch {epoch} at {start}, after {highest}"
                ));
            }
        }
    }
}

fn nothing_acknowledged_is_lost(history: &History, found: &mut Vec<String>) {
    let recorded: HashSet<&Recorded> = history.recorded.iter().collect();
    for operation in &history.operations {
        let (session, kind) = match (&operation.asked, &operation.answered) {
            (
                Asked::Join {
                    room, user, device, ..
                },
                Answered::Joined { epoch },
            ) => {
                let session = super::history::Session {
                    room: room.clone(),
                    user: user.clone(),
                    device: device.clone(),
                    epoch: *epoch,
                };
                (session, Kind::Joined)
            }
            (Asked::Leave(session), Answered::Done) => (session.clone(), Kind::Ended),
            _ => continue,
        };
        let expected = Recorded { session, kind };
        if !recorded.contains(&expected) {
            found.push(format!(
                "answered at {} and not recorded: {expected:?}",
                operation.end
            ));
        }
    }
}

fn the_feed_tells_everything_once(history: &History, found: &mut Vec<String>) {
    let mut told = HashSet::new();
    for change in &history.fed {
        if !told.insert(change) {
            found.push(format!("twice in the feed: {change:?}"));
        }
    }
    let recorded: HashSet<&Recorded> = history.recorded.iter().collect();
    for missing in recorded.difference(&told) {
        found.push(format!("not in the feed: {missing:?}"));
    }
    for invented in told.difference(&recorded) {
        found.push(format!("only in the feed: {invented:?}"));
    }
}

/// No success for a stale session, no refusal of a live one.
fn renewals_are_of_live_sessions(history: &History, lives: &Lives, found: &mut Vec<String>) {
    for operation in &history.operations {
        let Asked::Renew(session) = &operation.asked else {
            continue;
        };
        let Some(life) = lives.of_session(session) else {
            continue;
        };
        let Operation { start, end, .. } = *operation;
        match operation.answered {
            Answered::Done => {
                if let Some(why) = life.surely_gone(start, end, history) {
                    found.push(format!("renewed at {start}, but it {why}: {session:?}"));
                }
            }
            Answered::Stale if life.surely_lives(start, end, history) => {
                let life = life.last_renewed(start);
                found.push(format!("refused at {start} while it lived: {life}"));
            }
            _ => {}
        }
    }
}

/// The lists of the history, with the room of each.
fn lists(history: &History) -> impl Iterator<Item = (&Operation, &str, &Vec<(String, i64)>)> {
    history.operations.iter().filter_map(|operation| {
        match (&operation.asked, &operation.answered) {
            (Asked::List { room }, Answered::Listed(shown)) => Some((operation, &**room, shown)),
            _ => None,
        }
    })
}

/// Whoever is shown is a member, or somebody whose join was not answered.
fn lists_show_nobody_who_is_gone(history: &History, lives: &Lives, found: &mut Vec<String>) {
    let mut unanswered: HashMap<(&str, &str), i64> = HashMap::new();
    for operation in &history.operations {
        if let (Asked::Join { room, user, .. }, Answered::Unknown) =
            (&operation.asked, &operation.answered)
        {
            let first = unanswered.entry((room, user)).or_insert(i64::MAX);
            *first = operation.start.min(*first);
        }
    }
    for (list, room, shown) in lists(history) {
        for (user, epoch) in shown {
            let wrong = match lives.get(room, user, *epoch) {
                Some(life) if life.join_start > list.end => Some("joined later".to_owned()),
                Some(life) => life.surely_gone(list.start, list.end, history),
                None => {
                    let asked = unanswered.get(&(room, user.as_str()));
                    let asked = asked.is_some_and(|start| *start < list.end);
                    (!asked).then(|| "never asked for that".to_owned())
                }
            };
            if let Some(why) = wrong {
                found.push(format!(
                    "{room} at {} shows {user} at epoch {epoch}, who {why}",
                    list.start
                ));
            }
        }
    }
}

fn lists_show_everybody_who_lives(history: &History, lives: &Lives, found: &mut Vec<String>) {
    let mut by_room: HashMap<&str, Vec<&Life>> = HashMap::new();
    for life in lives.iter() {
        by_room.entry(&life.session.room).or_default().push(life);
    }
    for (room, mut coming) in by_room {
        coming.sort_by_key(|life| life.join_start);
        let mut coming = coming.into_iter().peekable();
        let mut present: Vec<&Life> = Vec::new();
        let mut lists: Vec<_> = lists(history).filter(|list| list.1 == room).collect();
        lists.sort_by_key(|(list, ..)| list.start);
        for (list, _, shown) in lists {
            present.retain(|life| !life.is_over(list.start));
            while let Some(life) = coming.next_if(|life| life.join_start < list.start) {
                present.push(life);
            }
            for life in &present {
                let is_shown = shown.iter().any(|(user, epoch)| {
                    (user, *epoch) == (&life.session.user, life.session.epoch)
                });
                if !is_shown && life.surely_lives(list.start, list.end, history) {
                    found.push(format!(
                        "{room} at {} does not show {}: {shown:?}",
                        list.start,
                        life.last_renewed(list.start)
                    ));
                }
            }
        }
    }
}
