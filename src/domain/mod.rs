//! The words of presence as types: ids, sessions, leases, rooms, reasons, changes. Pure; no I/O.

mod change;
mod departure;
mod event;
mod health;
mod heartbeat;
mod history;
mod id;
mod join;
mod lease;
mod lobby;
mod pulse;
mod reason;
mod removal;
mod room;
mod session;
mod slot;
mod webhook;
mod webhook_secret;
mod word;

pub use change::{
    Change, ChangeKind, ChangedSession, Changes, ChangesFilter, ChangesOutcome, InvalidPosition,
    Position,
};
pub use departure::{Closing, Departure, Departures, DeparturesQuery};
pub use event::Event;
pub use health::{Backlog, Census, Holder, OpenTransactions, Readiness};
pub use heartbeat::Heartbeat;
pub use history::{Erased, JoinPlace, Lifetime, Outage, PastSession, Period, Retention};
pub use id::{DeviceId, InvalidId, RoomId, UserId, WebhookName};
pub use join::{Blocked, Elsewhere, IfPresent, Join, JoinLimits, JoinOutcome, JoinRefusal, Joined};
pub use lease::{Lease, LeaseRules, Status};
pub use lobby::{Lobby, LobbyChange, LobbyRooms};
pub use pulse::{Beat, Beaten};
pub use reason::{EndReason, NoPlace, StaleReason};
pub use removal::{
    Block, Decision, Expulsion, MetadataChange, MetadataOutcome, Removal, RemovalOutcome,
    RoomClosing,
};
pub use room::{
    LiveSession, Located, Participant, Participants, RoomCount, RoomHead, RoomSummary, View,
    Whereabouts,
};
pub use session::{SessionKey, SessionOutcome};
pub use slot::{InvalidSlots, SLOTS, SlotState, Slots, slot_of};
pub use webhook::{
    Due, DueDelivery, Run, Settled, WebhookChange, WebhookFigures, WebhookOrder, WebhookPlace,
    WebhookState, WebhookStatus, WebhookTerm, WebhookUnset,
};
pub use webhook_secret::{InvalidSecret, WebhookSecret};
pub use word::UnknownWord;
