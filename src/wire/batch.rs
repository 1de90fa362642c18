//! Many at once: items that each name their room, and an outcome for each.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AllOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

use super::fields::{FieldRules, parse, room_id};
use super::session::{HeartbeatBody, SessionBody};
use super::{Code, InvalidRequest};
use crate::domain::{Heartbeat, SessionKey};

/// Up to 1,000 signs of life, each as of `/rooms/{roomId}/heartbeat` with its `roomId`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct HeartbeatsBody {
    /// Each is read on its own, so that a wrong one spoils no other.
    #[schema(schema_with = heartbeat_items)]
    pub heartbeats: Vec<Box<RawValue>>,
}

/// Up to 1,000 departures, each as of `/rooms/{roomId}/leave` with its `roomId`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct LeavesBody {
    /// Each is read on its own, so that a wrong one spoils no other.
    #[schema(schema_with = leave_items)]
    pub leaves: Vec<Box<RawValue>>,
}

/// What an item has beside the fields of a single request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InRoom {
    room_id: Option<String>,
}

/// One item of [`HeartbeatsBody`].
///
/// # Errors
/// Names the field that is missing or wrong.
pub fn read_heartbeat(item: &RawValue, rules: &FieldRules) -> Result<Heartbeat, InvalidRequest> {
    let body: HeartbeatBody = parse(item.get().as_bytes())?;
    body.read(room_of(item)?, rules)
}

/// One item of [`LeavesBody`].
///
/// # Errors
/// Names the field that is missing or wrong.
pub fn read_leave(item: &RawValue) -> Result<SessionKey, InvalidRequest> {
    let body: SessionBody = parse(item.get().as_bytes())?;
    body.read(room_of(item)?)
}

fn room_of(item: &RawValue) -> Result<crate::domain::RoomId, InvalidRequest> {
    let InRoom { room_id: field } = parse(item.get().as_bytes())?;
    room_id(field)
}

fn heartbeat_items() -> Schema {
    items("HeartbeatBody")
}

fn leave_items() -> Schema {
    items("SessionBody")
}

/// A body of a single request, with the room that it is about.
fn items(body: &str) -> Schema {
    let room_id = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(256));
    let in_room = ObjectBuilder::new()
        .property("roomId", room_id)
        .required("roomId");
    let item = AllOfBuilder::new()
        .item(in_room)
        .item(RefOr::<Schema>::Ref(Ref::from_schema_name(body)));
    ArrayBuilder::new()
        .items(item)
        .max_items(Some(1_000))
        .build()
        .into()
}

/// What became of each item, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// One per item.
    pub results: Vec<ItemAnswer>,
}

/// What the item alone would have been answered with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ItemResult)]
pub struct ItemAnswer {
    /// 204, or the status of the error.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ItemAnswer {
    /// It took effect.
    pub const DONE: Self = Self {
        status: 204,
        code: None,
        error: None,
    };

    /// It changed nothing.
    pub fn refused(code: Code, error: String) -> Self {
        Self {
            status: code.status(),
            code: Some(code.as_str()),
            error: Some(error),
        }
    }
}
