//! `leasehold cell`: rooms spread over several databases.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use secrecy::SecretString;
use tokio::process;

use crate::cells::{Cell, Move, slot_map};
use crate::config::{DatabaseArgs, duration};
use crate::domain::{RoomId, SlotState, Slots, slot_of};
use crate::store::{DatabaseSettings, Store};

/// The longest that a move may wait for transactions of others, while nobody serves its slots.
const PATIENCES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(60);

#[derive(Debug, Subcommand)]
pub(super) enum CellCommand {
    /// Print the slot of a room: its number, and the digits by which a map names it
    Slot {
        /// The roomId
        #[arg(value_parser = |id: &str| RoomId::parse(id))]
        room: RoomId,
    },
    /// Say once which slots a database owns that is to be one of several
    Own {
        /// Like 0-1023,2048, or all or none
        slots: Slots,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print which slots a database owns, and which are on their way
    Show {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Print which of several cells owns each slot, as a map for proxies
    Map {
        /// A cell as the proxy knows it and its database: one=postgres://…
        #[arg(required = true, value_parser = named)]
        cells: Vec<Cell>,
    },
    /// Take slots from one database to another while both serve
    Move {
        /// The database that owns them
        #[arg(long, env = "LEASEHOLD_MOVE_FROM", hide_env_values = true)]
        from: SecretString,
        /// The database that is to own them
        #[arg(long, env = "LEASEHOLD_MOVE_TO", hide_env_values = true)]
        to: SecretString,
        /// Like 0-1023,2048
        #[arg(long)]
        slots: Slots,
        /// How many slots are away together
        #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
        at_once: u16,
        /// How long to wait for transactions that may have opened a room, while nobody serves
        #[arg(long, default_value = "1s", value_parser = duration("--patience", PATIENCES))]
        patience: Duration,
        /// A program to run whenever the target owns more of them, with their digits as arguments:
        /// to tell proxies
        #[arg(long)]
        on_moved: Option<String>,
        /// Call a move off that was not finished: the source serves what the target does not own yet
        #[arg(long, conflicts_with = "on_moved")]
        cancel: bool,
    },
}

fn named(text: &str) -> Result<Cell, String> {
    let (name, url) = text
        .split_once('=')
        .ok_or("write a name and an address: one=postgres://…")?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !name.is_empty() && name.chars().all(is_word) {
        true => Ok(Cell {
            name: name.to_owned(),
            database: once(url.to_owned().into()),
        }),
        false => Err("a cell's name is of letters, digits, -, _ and .".to_owned()),
    }
}

fn once(url: SecretString) -> DatabaseSettings {
    DatabaseArgs {
        database_url: Some(url),
        database_url_file: None,
    }
    .once()
}

impl CellCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Slot { room } => {
                let slot = slot_of(&room);
                println!("{slot} {slot:03x}");
            }
            Self::Own { slots, database } => {
                let store = Store::new(&database.once())?;
                store.own_slots(&slots).await?;
                store.close().await;
                println!("the database owns the slots {slots}");
            }
            Self::Show { database } => show(&database).await?,
            Self::Map { cells } => print!("{}", slot_map(&cells).await?),
            Self::Move {
                from,
                to,
                slots,
                at_once,
                patience,
                on_moved,
                cancel,
            } => {
                ensure!(!slots.is_empty(), "--slots names none");
                let (from, to) = (once(from), once(to));
                let mut moving = Move::begin(&from, &to, &slots, patience).await?;
                if cancel {
                    moving.cancel(&slots).await?;
                    println!("called off; slots that the target owns already stay there");
                } else {
                    for group in slots.numbers().chunks(usize::from(at_once)) {
                        let group = group.iter().copied().collect();
                        take(&mut moving, &group, on_moved.as_deref()).await?;
                    }
                }
                moving.close().await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn take(moving: &mut Move, group: &Slots, on_moved: Option<&str>) -> anyhow::Result<()> {
    let moved = moving.take(group).await?;
    println!(
        "slots {}: {} events, {} rooms ended, away for {} ms",
        moved.slots,
        moved.events,
        moved.rooms_ended,
        moved.away.as_millis()
    );
    let Some(program) = on_moved else {
        return Ok(());
    };
    let digits = group.numbers();
    let digits = digits.iter().map(|slot| format!("{slot:03x}"));
    let told = process::Command::new(program).args(digits).status();
    let told = told
        .await
        .with_context(|| format!("{program} cannot be run"))?;
    if !told.success() {
        bail!(
            "{program} failed ({told}) after slots {group} were moved: tell the proxies, and run the same command again for the rest"
        );
    }
    Ok(())
}

async fn show(database: &DatabaseArgs) -> anyhow::Result<()> {
    let store = Store::new(&database.once())?;
    let found = store.slots().await?;
    store.close().await;
    for state in [SlotState::Owned, SlotState::Leaving, SlotState::Arriving] {
        let of_state = found.iter().filter(|(_, found, _)| *found == state);
        let mut peers: Vec<_> = of_state.clone().map(|(_, _, peer)| peer).collect();
        peers.sort();
        peers.dedup();
        for peer in peers {
            let slots = of_state.clone().filter(|(_, _, p)| p == peer);
            let slots: Slots = slots.map(|(slot, _, _)| *slot).collect();
            let with = peer.as_ref().map(|peer| format!(" (database {peer})"));
            println!("{}: {slots}{}", state.as_str(), with.unwrap_or_default());
        }
    }
    Ok(())
}
