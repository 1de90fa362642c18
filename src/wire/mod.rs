//! The JSON of the HTTP contract, both ways, with its schemas. Pure; no I/O.

mod batch;
mod changes;
mod code;
mod count;
mod error;
mod event;
mod fields;
mod history;
mod join;
mod lobby;
mod moderation;
mod page;
mod participants;
mod rooms;
mod session;
pub mod socket;
mod webhook_body;
mod webhooks;

pub use batch::{BatchAnswer, HeartbeatsBody, ItemAnswer, LeavesBody, read_heartbeat, read_leave};
pub use changes::{ChangesAnswer, write_changes};
pub use code::Code;
pub use count::{CountAnswer, view};
pub use error::{ErrorBody, ErrorDetails, InvalidRequest};
pub use event::{
    EventBody, EventMessage, ServerSentEvent, Written, count_events, events, messages, misdirected,
    sse,
};
pub use fields::{FieldRules, holds_nul, parse};
pub use history::{ErasedAnswer, GenerationsAnswer, OutagesAnswer, SessionsAnswer};
pub use join::{JoinAnswer, JoinBody};
pub use lobby::{lobby_changes, lobby_snapshot, lobby_stale};
pub use moderation::{BlocksAnswer, MetadataBody};
pub use page::{read_page_token, write_page_token};
pub use participants::ParticipantsAnswer;
pub use rooms::{
    RoomAnswer, RoomsAnswer, UserRoomsAnswer, WhereaboutsAnswer, WhereaboutsBody,
    WhereaboutsMessage,
};
pub use session::{CursorBody, HeartbeatBody, SessionBody};
pub use webhook_body::{runs, webhook_body};
pub use webhooks::{
    WebhookAnswer, WebhookBody, WebhooksAnswer, WebhooksFile, no_webhook_place, webhook_place,
};
