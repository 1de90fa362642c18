//! A room by its number of persons alone.

use serde::Serialize;
use utoipa::ToSchema;

use super::InvalidRequest;
use crate::domain::{RoomCount, RoomId, View};

/// How many are in a room, at one instant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Count)]
pub struct CountAnswer<'a> {
    room_id: &'a str,
    /// Null where the room does not exist.
    generation: Option<i64>,
    /// Null where the room does not exist.
    version: Option<i64>,
    as_of_ms: i64,
    /// Live persons.
    member_count: u32,
}

impl<'a> CountAnswer<'a> {
    /// Of a room, whether or not it exists.
    pub fn new(room_id: &'a RoomId, count: &RoomCount) -> Self {
        Self {
            room_id: room_id.as_str(),
            generation: count.generation,
            version: count.version,
            as_of_ms: count.as_of.timestamp_millis(),
            member_count: count.members,
        }
    }
}

/// The `view` of a request: everybody if left out.
///
/// # Errors
/// Where there is no such view.
pub fn view(field: Option<&str>) -> Result<View, InvalidRequest> {
    match field {
        None => Ok(View::People),
        Some("count") => Ok(View::Count),
        Some(_) => Err(InvalidRequest::new("view must be count, or be left out")),
    }
}
