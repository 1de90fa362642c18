//! One end of a move of slots: a connection of its own to one of the two databases, and the steps
//! of `0016_cells.sql`. Nothing connects again by itself: what has lost its connection has lost
//! the move.

use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection};
use tokio::time::sleep;

use super::pool::in_time;
use super::slots::{SlotPlace, refused};
use super::{DatabaseSettings, Hints, StoreError};
use crate::domain::{RoomId, SlotState, Slots};

/// The longest that a step waits for a lock, before whoever is behind it has a turn.
const LOCK_TURN: Duration = Duration::from_millis(500);

/// For so long the server may go on with a step of a mover that was killed.
const KILLED: Duration = Duration::from_secs(3);

/// Between two looks whether it does.
const LOOK: Duration = Duration::from_millis(50);

/// A database in a move.
pub struct CellEnd {
    connection: PgConnection,
    hints: Hints,
    /// As the other one knows it.
    pub name: String,
}

/// A step: from which state to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotStep(pub SlotState, pub SlotState);

/// Up to where the feed of a database is settled.
#[derive(Debug, Clone)]
pub struct FeedPlace {
    era: i32,
    xact_id: String,
}

/// Lifetimes that are over, and how many events each had.
#[derive(Debug, Clone, Default)]
pub struct Lifetimes {
    /// The rooms.
    pub rooms: Vec<String>,
    /// Of each its number.
    pub generations: Vec<i64>,
    /// Of each how many events it had.
    pub events: Vec<i64>,
}

impl Lifetimes {
    /// Those that are marked.
    pub fn marked(self, marks: &[bool]) -> Self {
        let mut kept = Self::default();
        let each = self
            .rooms
            .into_iter()
            .zip(self.generations)
            .zip(self.events);
        for (((room, generation), events), _) in each.zip(marks).filter(|(_, mark)| **mark) {
            kept.rooms.push(room);
            kept.generations.push(generation);
            kept.events.push(events);
        }
        kept
    }

    /// In parts of about so many events; a lifetime is not parted.
    pub fn parts(self, most: i64) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let mut held = most;
        let each = self
            .rooms
            .into_iter()
            .zip(self.generations)
            .zip(self.events);
        for ((room, generation), events) in each {
            if held + events > most || parts.is_empty() {
                parts.push(Self::default());
                held = 0;
            }
            held += events;
            if let Some(part) = parts.last_mut() {
                part.rooms.push(room);
                part.generations.push(generation);
                part.events.push(events);
            }
        }
        parts
    }
}

impl CellEnd {
    /// Connects, and makes sure that no other move concerns this database.
    ///
    /// # Errors
    /// Where the database does not answer, or is in another move.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let lock_timeout_ms = LOCK_TURN.as_millis().to_string();
        let connector = settings.connector(&[
            ("synchronous_commit", "on"),
            ("statement_timeout", "0"),
            ("lock_timeout", &lock_timeout_ms),
            ("idle_in_transaction_session_timeout", "0"),
            ("application_name", "leasehold cell move"),
            ("jit", "off"),
        ])?;
        let mut connection =
            in_time(settings.timeout, "no connection", connector.connect()).await?;
        let deadline = Instant::now() + KILLED;
        while !is_alone(&mut connection).await? {
            if Instant::now() >= deadline {
                return Err(StoreError::CellRefused(
                    "another move of this database is under way; wait for it, or end its process \
                     (application_name is leasehold cell move)"
                        .to_owned(),
                ));
            }
            sleep(LOOK).await;
        }
        let name = sqlx::query_scalar!("select name from leasehold.feed")
            .fetch_one(&mut connection)
            .await?;
        Ok(Self {
            connection,
            hints: Hints::new(settings)?,
            name,
        })
    }

    /// Ends the connection, and with it whatever it holds.
    ///
    /// # Errors
    /// Where it was lost before.
    pub async fn close(self) -> Result<(), StoreError> {
        self.hints.close().await;
        Ok(self.connection.close().await?)
    }

    /// Which migrations are applied, as a text that is equal for equal schemas.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn schema(&mut self) -> Result<String, StoreError> {
        let schema = sqlx::query_scalar!(
            r#"select string_agg(version || ' ' || encode(checksum, 'hex'), ',' order by version) as "schema!"
               from leasehold._sqlx_migrations"#
        );
        Ok(schema.fetch_one(&mut self.connection).await?)
    }

    /// Keeps purges and erasures from beginning, and waits for those under way; or lets them again.
    ///
    /// # Errors
    /// Where one does not end in time.
    pub async fn hold_history(&mut self, held: bool) -> Result<(), StoreError> {
        let locked = sqlx::query_scalar!(
            r#"select case when $1 then pg_advisory_lock(hashtext('leasehold'), hashtext('purge')) is null
                          else pg_advisory_unlock(hashtext('leasehold'), hashtext('purge')) end as "done!""#,
            held,
        );
        locked.fetch_one(&mut self.connection).await?;
        Ok(())
    }

    /// What this database is to each of these slots.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn states(&mut self, slots: &Slots) -> Result<Vec<SlotPlace>, StoreError> {
        let rows = sqlx::query!(
            r#"select slot as "slot!", state as "state!", peer from leasehold.slot_states($1)"#,
            &slots.numbers(),
        )
        .fetch_all(&mut self.connection)
        .await?;
        rows.into_iter()
            .map(|row| Ok((row.slot, row.state.parse()?, row.peer)))
            .collect()
    }

    /// Takes a step with the database of this name. One that was taken already is taken.
    ///
    /// # Errors
    /// Where a slot is in another state, or in a move with another database.
    pub async fn step(
        &mut self,
        slots: &Slots,
        step: SlotStep,
        peer: &str,
    ) -> Result<(), StoreError> {
        let SlotStep(from, to) = step;
        sqlx::query!(
            "select leasehold.change_slots($1, $2, $3, $4)",
            &slots.numbers(),
            from.as_str(),
            to.as_str(),
            peer,
        )
        .execute(&mut self.connection)
        .await
        .map_err(refused)?;
        Ok(())
    }

    /// The transactions under way that may have opened a room, or those of `among` that still are.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn room_writers(
        &mut self,
        among: Option<&[String]>,
    ) -> Result<Vec<String>, StoreError> {
        let writers = sqlx::query_scalar!(
            r#"select leasehold.room_writers($1) as "writers!""#,
            among as Option<&[String]>,
        );
        Ok(writers.fetch_one(&mut self.connection).await?)
    }

    /// Up to where the feed is settled now.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn feed_place(&mut self) -> Result<FeedPlace, StoreError> {
        let place = sqlx::query_as!(
            FeedPlace,
            r#"select settled_era as "era!", settled_xact_id::text as "xact_id!" from leasehold.feed_end()"#
        );
        Ok(place.fetch_one(&mut self.connection).await?)
    }

    /// Every room of these slots of which something is known, with its slot.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn rooms(&mut self, slots: &Slots) -> Result<Vec<(i32, String)>, StoreError> {
        let rows = sqlx::query!(
            r#"select slot as "slot!", room_id as "room_id!" from leasehold.slot_rooms($1)"#,
            &slots.numbers(),
        )
        .fetch_all(&mut self.connection)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.slot, row.room_id))
            .collect())
    }

    /// Those in which something happened since.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn changed_rooms(
        &mut self,
        slots: &Slots,
        since: &FeedPlace,
    ) -> Result<Vec<(i32, String)>, StoreError> {
        let rows = sqlx::query!(
            r#"select slot as "slot!", room_id as "room_id!"
               from leasehold.changed_rooms($1, $2, $3::text::xid8)"#,
            &slots.numbers(),
            since.era,
            since.xact_id,
        )
        .fetch_all(&mut self.connection)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.slot, row.room_id))
            .collect())
    }

    /// Ends what is left in these rooms, and tells the instances that look at them.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where somebody holds one of them.
    pub async fn end_moved(
        &mut self,
        slots: &Slots,
        rooms: &[String],
    ) -> Result<usize, StoreError> {
        let ended = sqlx::query_scalar!(
            r#"select room_ids as "room_ids!" from leasehold.end_moved($1, $2)"#,
            &slots.numbers(),
            rooms,
        )
        .fetch_one(&mut self.connection)
        .await
        .map_err(refused)?;
        let count = ended.len();
        let ended: Result<Vec<RoomId>, _> = ended.into_iter().map(RoomId::parse).collect();
        // A hint that is lost costs their streams a poll, and nothing else.
        let _ = self.hints.send(ended?).await;
        Ok(count)
    }

    /// The lifetimes of these rooms that are over.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn closed_lifetimes(&mut self, rooms: &[String]) -> Result<Lifetimes, StoreError> {
        let lifetimes = sqlx::query_as!(
            Lifetimes,
            r#"select room_ids as "rooms!", generations as "generations!", events as "events!"
               from leasehold.closed_lifetimes($1)"#,
            rooms,
        );
        Ok(lifetimes.fetch_one(&mut self.connection).await?)
    }

    /// Those of these lifetimes that were never here.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn lacking(&mut self, lifetimes: Lifetimes) -> Result<Lifetimes, StoreError> {
        let lacking = sqlx::query_scalar!(
            r#"select leasehold.lacking_lifetimes($1, $2) as "lacking!""#,
            &lifetimes.rooms,
            &lifetimes.generations,
        );
        let lacking = lacking.fetch_one(&mut self.connection).await?;
        Ok(lifetimes.marked(&lacking))
    }

    /// Takes over the history of these lifetimes from `source`, in one transaction; how many events.
    ///
    /// # Errors
    /// Where nothing was taken over.
    pub async fn take_lifetimes(
        &mut self,
        source: &mut Self,
        lifetimes: &Lifetimes,
    ) -> Result<i64, StoreError> {
        let history = sqlx::query!(
            r#"select closed, events, purges from leasehold.export_lifetimes($1, $2)"#,
            &lifetimes.rooms,
            &lifetimes.generations,
        )
        .fetch_one(&mut source.connection)
        .await?;
        let events = sqlx::query_scalar!(
            r#"select leasehold.import_lifetimes($1, $2, $3) as "events!""#,
            history.closed,
            history.events,
            history.purges,
        );
        Ok(events.fetch_one(&mut self.connection).await?)
    }

    /// Takes over what keeps epochs and generations of these rooms from going back, and their blocks.
    ///
    /// # Errors
    /// Where nothing was taken over.
    pub async fn take_floors(
        &mut self,
        source: &mut Self,
        slots: &Slots,
        rooms: &[String],
    ) -> Result<(), StoreError> {
        let floors = sqlx::query!(
            r#"select epochs, generations, blocks, erased, erasure_keys
               from leasehold.export_floors($1, $2)"#,
            &slots.numbers(),
            rooms,
        )
        .fetch_one(&mut source.connection)
        .await?;
        sqlx::query!(
            "select leasehold.import_floors($1, $2, $3, $4, $5, $6)",
            &slots.numbers(),
            floors.epochs,
            floors.generations,
            floors.blocks,
            floors.erased,
            floors.erasure_keys,
        )
        .execute(&mut self.connection)
        .await?;
        Ok(())
    }
}

/// That no other move concerns the database of this connection, from now on to its end.
async fn is_alone(connection: &mut PgConnection) -> Result<bool, StoreError> {
    let locked = sqlx::query_scalar!(
        r#"select pg_try_advisory_lock(hashtext('leasehold'), hashtext('cell move')) as "locked!""#
    );
    Ok(locked.fetch_one(connection).await?)
}
