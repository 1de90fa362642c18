//! What a webhook is sent: `{"changes": […]}`, each as in the feed.

use std::collections::HashMap;

use super::changes::change_json;
use crate::domain::{Change, Run};

/// The most changes of one delivery.
const MOST_CHANGES: i32 = 100;

/// A delivery grows no further beyond so many bytes.
const MOST_BYTES: usize = 256 * 1024;

/// The changes in runs of one room each, as large as a delivery may be, in order within the room.
///
/// # Errors
/// Where a change cannot be written as JSON.
pub fn runs(changes: &[Change]) -> Result<Vec<Run>, serde_json::Error> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last_of: HashMap<&str, usize> = HashMap::new();
    for change in changes {
        let item = change_json(change)?;
        let last = last_of.get(change.room_id.as_str()).copied();
        let last = last.and_then(|place| runs.get_mut(place));
        match last {
            Some(run)
                if run.changes < MOST_CHANGES && run.items.len() + item.len() < MOST_BYTES =>
            {
                run.items.push(',');
                run.items.push_str(&item);
                run.changes += 1;
            }
            _ => {
                last_of.insert(change.room_id.as_str(), runs.len());
                runs.push(Run {
                    room_id: change.room_id.clone(),
                    items: item,
                    changes: 1,
                });
            }
        }
    }
    Ok(runs)
}

/// The body of a delivery of these changes, which are JSON separated by commas.
pub fn webhook_body(items: &str) -> String {
    format!(r#"{{"changes":[{items}]}}"#)
}
