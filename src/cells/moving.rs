//! A move of slots from one database to another, in the steps of `0016_cells.sql`.
//!
//! It may end anywhere: at most one of the two owns a slot then, and a move that is begun again
//! between the same two goes on from where this one stopped, or calls it off.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::rooms::MovingRooms;
use crate::domain::{SlotState, Slots};
use crate::store::{CellEnd, DatabaseSettings, SlotStep, StoreError};

/// Rooms whose lifetimes are looked up at a time.
const ROOMS: usize = 500;

/// Events that one transaction takes over, unless a lifetime has more.
const EVENTS: i64 = 20_000;

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(5);

/// How long a purge or an erasure under way is waited for.
const HISTORY_WAIT: Duration = Duration::from_secs(60);

const ARRIVE: SlotStep = SlotStep(SlotState::Absent, SlotState::Arriving);
const FENCE: SlotStep = SlotStep(SlotState::Owned, SlotState::Leaving);
const OWN: SlotStep = SlotStep(SlotState::Arriving, SlotState::Owned);
const FORGET: SlotStep = SlotStep(SlotState::Leaving, SlotState::Absent);
const DO_NOT_ARRIVE: SlotStep = SlotStep(SlotState::Arriving, SlotState::Absent);
const LIFT_FENCE: SlotStep = SlotStep(SlotState::Leaving, SlotState::Owned);

/// Why slots were not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// A database did not answer, or refused a step.
    #[error("{which} database: {error}")]
    Database {
        /// The source or the target.
        which: &'static str,
        /// What it said.
        error: StoreError,
    },
    /// They cannot be told apart.
    #[error(
        "both databases call themselves {0}: one is a copy of the other, or they are the same; \
         give a copy another name with update leasehold.feed set name = left(gen_random_uuid()::text, 8)"
    )]
    SameName(String),
    /// Their migrations differ.
    #[error("the databases have different schemas; run `leasehold migrate` of one release on both")]
    Schemas,
    /// Both own a slot, or neither does.
    #[error(
        "slot {slot} is {source_state} in the source and {target_state} in the target; \
         a move takes it from a source that owns it to a target that does not \
         (on a new database run `leasehold cell own none` first)"
    )]
    States {
        /// Which one.
        slot: i32,
        /// In the source.
        source_state: &'static str,
        /// In the target.
        target_state: &'static str,
    },
    /// Somebody's transaction goes on.
    #[error(
        "a transaction in the source may have opened a room and did not end within {} ms \
         (virtualtransaction in pg_locks: {writers}); nothing was moved, and the source serves on",
        patience.as_millis()
    )]
    Writers {
        /// As pg_locks names them.
        writers: String,
        /// For how long they were waited for.
        patience: Duration,
    },
    /// The fence stands, as what failed could not be undone.
    #[error(
        "{0}; slots {1} may be served by nobody now: run the same command again, or with --cancel"
    )]
    Stuck(Box<MoveError>, Slots),
}

fn at_source(error: StoreError) -> MoveError {
    MoveError::Database {
        which: "the source",
        error,
    }
}

fn at_target(error: StoreError) -> MoveError {
    MoveError::Database {
        which: "the target",
        error,
    }
}

/// What came of one group of slots.
#[derive(Debug, Clone)]
pub struct Moved {
    /// Those that the target owns from now on.
    pub slots: Slots,
    /// Events of history that went along.
    pub events: i64,
    /// Rooms that were ended in the source.
    pub rooms_ended: usize,
    /// For how long nobody served them.
    pub away: Duration,
}

/// Slots of a group by how far their move has come.
#[derive(Default)]
struct Standing {
    to_move: Vec<i32>,
    to_forget: Vec<i32>,
}

/// A move between two databases; only one at a time concerns either.
pub struct Move {
    source: CellEnd,
    target: CellEnd,
    rooms: MovingRooms,
    patience: Duration,
}

impl Move {
    /// Connects to both, and finds the rooms of these slots.
    ///
    /// # Errors
    /// [`MoveError`]; nothing was changed.
    pub async fn begin(
        source: &DatabaseSettings,
        target: &DatabaseSettings,
        slots: &Slots,
        patience: Duration,
    ) -> Result<Self, MoveError> {
        let mut source = CellEnd::connect(source).await.map_err(at_source)?;
        let mut target = CellEnd::connect(target).await.map_err(at_target)?;
        if source.name == target.name {
            return Err(MoveError::SameName(source.name));
        }
        let schema = source.schema().await.map_err(at_source)?;
        if schema != target.schema().await.map_err(at_target)? {
            return Err(MoveError::Schemas);
        }
        let rooms = MovingRooms::find(&mut source, slots)
            .await
            .map_err(at_source)?;
        Ok(Self {
            source,
            target,
            rooms,
            patience,
        })
    }

    /// Takes a group of slots over, from wherever an earlier move has left them.
    ///
    /// # Errors
    /// [`MoveError`]; the source serves on, unless it is [`MoveError::Stuck`].
    pub async fn take(&mut self, group: &Slots) -> Result<Moved, MoveError> {
        let standing = self.standing(group).await?;
        self.forget(&standing.to_forget.into_iter().collect())
            .await?;
        let slots: Slots = standing.to_move.into_iter().collect();
        let mut moved = Moved {
            slots: group.clone(),
            events: 0,
            rooms_ended: 0,
            away: Duration::ZERO,
        };
        if slots.is_empty() {
            return Ok(moved);
        }
        self.hold_history(true).await?;
        let outcome = self.take_held(&slots, &mut moved).await;
        // A connection that is lost holds nothing.
        let released = self.hold_history(false).await;
        outcome?;
        released?;
        Ok(moved)
    }

    async fn take_held(&mut self, slots: &Slots, moved: &mut Moved) -> Result<(), MoveError> {
        self.arrive(slots).await?;
        moved.events += self.take_history(slots).await?;
        let fenced = Instant::now();
        let outcome = async {
            self.fence(slots).await?;
            self.drain().await?;
            moved.rooms_ended = self.end_rooms(slots).await?;
            moved.events += self.take_history(slots).await?;
            self.own(slots).await
        };
        if let Err(error) = outcome.await {
            return Err(match self.cancel(slots).await {
                Ok(()) => error,
                Err(_) => MoveError::Stuck(Box::new(error), slots.clone()),
            });
        }
        moved.away = fenced.elapsed();
        self.forget(slots).await
    }

    /// Calls the move of these slots off: the source owns them again, unless the target does already.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn cancel(&mut self, slots: &Slots) -> Result<(), MoveError> {
        let slots: Slots = self.standing(slots).await?.to_move.into_iter().collect();
        // In this order: a target that no longer waits for them cannot come to own them.
        self.target
            .step(&slots, DO_NOT_ARRIVE, &self.source.name)
            .await
            .map_err(at_target)?;
        self.source
            .step(&slots, LIFT_FENCE, &self.target.name)
            .await
            .map_err(at_source)
    }

    /// Ends the move's connections.
    ///
    /// # Errors
    /// Where one was lost before.
    pub async fn close(self) -> Result<(), MoveError> {
        self.source.close().await.map_err(at_source)?;
        self.target.close().await.map_err(at_target)
    }

    async fn standing(&mut self, slots: &Slots) -> Result<Standing, MoveError> {
        use SlotState::{Absent, Arriving, Leaving, Owned};
        let at_the_source = self.source.states(slots).await.map_err(at_source)?;
        let at_the_target = self.target.states(slots).await.map_err(at_target)?;
        let mut standing = Standing::default();
        for ((slot, source, _), (_, target, _)) in at_the_source.into_iter().zip(at_the_target) {
            match (source, target) {
                (Owned | Leaving, Absent | Arriving) => standing.to_move.push(slot),
                (Leaving, Owned) => standing.to_forget.push(slot),
                (Absent, Owned) => {}
                _ => {
                    return Err(MoveError::States {
                        slot,
                        source_state: source.as_str(),
                        target_state: target.as_str(),
                    });
                }
            }
        }
        Ok(standing)
    }

    /// Step 1: the target expects them.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn arrive(&mut self, slots: &Slots) -> Result<(), MoveError> {
        let step = self.target.step(slots, ARRIVE, &self.source.name);
        step.await.map_err(at_target)
    }

    /// Step 2: nobody opens a room of them in the source any more.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn fence(&mut self, slots: &Slots) -> Result<(), MoveError> {
        let step = self.source.step(slots, FENCE, &self.target.name);
        step.await.map_err(at_source)
    }

    /// Step 3: returns when everybody who may have looked before the fence is done.
    ///
    /// # Errors
    /// [`MoveError::Writers`] where somebody is not.
    pub async fn drain(&mut self) -> Result<(), MoveError> {
        let begun = Instant::now();
        let mut writers = self.source.room_writers(None).await.map_err(at_source)?;
        while !writers.is_empty() {
            if begun.elapsed() >= self.patience {
                return Err(MoveError::Writers {
                    writers: writers.join(", "),
                    patience: self.patience,
                });
            }
            sleep(LOOK).await;
            let among = self.source.room_writers(Some(&writers)).await;
            writers = among.map_err(at_source)?;
        }
        Ok(())
    }

    /// Step 4: ends what is left in the source; how many rooms.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn end_rooms(&mut self, slots: &Slots) -> Result<usize, MoveError> {
        let begun = Instant::now();
        self.rooms
            .refresh(&mut self.source)
            .await
            .map_err(at_source)?;
        let rooms = self.rooms.of(slots);
        loop {
            match self.source.end_moved(slots, &rooms).await {
                Err(StoreError::Locked | StoreError::Conflict(_))
                    if begun.elapsed() < self.patience => {}
                ended => return ended.map_err(at_source),
            }
        }
    }

    /// Step 5, and before the fence for most of it: the history of lifetimes that are over and that
    /// the target does not have.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn take_history(&mut self, slots: &Slots) -> Result<i64, MoveError> {
        self.rooms
            .refresh(&mut self.source)
            .await
            .map_err(at_source)?;
        let mut events = 0;
        for rooms in self.rooms.of(slots).chunks(ROOMS) {
            let closed = self.source.closed_lifetimes(rooms).await;
            let lacking = self.target.lacking(closed.map_err(at_source)?).await;
            for part in lacking.map_err(at_target)?.parts(EVENTS) {
                let taken = self.target.take_lifetimes(&mut self.source, &part).await;
                events += taken.map_err(at_target)?;
            }
        }
        Ok(events)
    }

    /// Steps 5 and 6: with the floors, the target owns the slots.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn own(&mut self, slots: &Slots) -> Result<(), MoveError> {
        let rooms = self.rooms.of(slots);
        let floors = self.target.take_floors(&mut self.source, slots, &rooms);
        floors.await.map_err(at_target)?;
        let step = self.target.step(slots, OWN, &self.source.name);
        step.await.map_err(at_target)
    }

    /// Step 7: the source is done with them.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn forget(&mut self, slots: &Slots) -> Result<(), MoveError> {
        let step = self.source.step(slots, FORGET, &self.target.name);
        step.await.map_err(at_source)
    }

    /// Nothing is purged or erased in either while history goes from one to the other.
    async fn hold_history(&mut self, held: bool) -> Result<(), MoveError> {
        let deadline = Instant::now() + HISTORY_WAIT;
        for (end, which) in [
            (&mut self.source, at_source as fn(_) -> _),
            (&mut self.target, at_target),
        ] {
            loop {
                match end.hold_history(held).await {
                    Err(StoreError::Locked) if Instant::now() < deadline => {}
                    outcome => break outcome.map_err(which)?,
                }
            }
        }
        Ok(())
    }
}
