//! Which cell serves which slot, as proxies read it.

use std::fmt::Write;

use crate::domain::{SLOTS, SlotState, Slots};
use crate::store::{DatabaseSettings, Store, StoreError};

/// A cell as the proxies know it, and its database.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Its name in the map.
    pub name: String,
    /// Where its database is.
    pub database: DatabaseSettings,
}

/// Why there is no map.
#[derive(Debug, thiserror::Error)]
pub enum NoMap {
    /// The database of a cell did not answer.
    #[error("cell {0}: {1}")]
    Database(String, StoreError),
    /// A slot that two cells own.
    #[error(
        "slot {slot} is owned by {one} and by {other}; take the slots from one of them before it serves"
    )]
    Twice {
        /// Which one.
        slot: i32,
        /// The one that was named first.
        one: String,
        /// Another one.
        other: String,
    },
    /// Slots that nobody owns.
    #[error("no cell owns the slots {0}; name all cells, or move the slots to one")]
    Nobody(Slots),
}

/// A line per slot: its three hexadecimal digits and the cell that owns it, or to which it is on its way.
///
/// # Errors
/// [`NoMap`]
pub async fn slot_map(cells: &[Cell]) -> Result<String, NoMap> {
    let mut owners: Vec<Option<&str>> = vec![None; SLOTS.cast_unsigned() as usize];
    let mut coming = owners.clone();
    for cell in cells {
        let failed = |error| NoMap::Database(cell.name.clone(), error);
        let store = Store::new(&cell.database).map_err(failed)?;
        let found = store.slots().await.map_err(failed)?;
        store.close().await;
        for (slot, state, _) in found {
            let place = slot.cast_unsigned() as usize;
            match state {
                SlotState::Owned => {
                    if let Some(one) = owners[place].replace(&cell.name) {
                        return Err(NoMap::Twice {
                            slot,
                            one: one.to_owned(),
                            other: cell.name.clone(),
                        });
                    }
                }
                SlotState::Arriving => coming[place] = Some(&cell.name),
                SlotState::Leaving | SlotState::Absent => {}
            }
        }
    }
    let mut map = String::new();
    let mut nobody = Vec::new();
    for (slot, (owner, coming)) in (0..).zip(owners.into_iter().zip(coming)) {
        match owner.or(coming) {
            Some(name) => {
                writeln!(map, "{slot:03x} {name}").expect("writing to a String does not fail");
            }
            None => nobody.push(slot),
        }
    }
    match nobody.is_empty() {
        true => Ok(map),
        false => Err(NoMap::Nobody(nobody.into_iter().collect())),
    }
}
