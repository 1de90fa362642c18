//! Decisions about other people's sessions: what an admin sends, and the blocks that hold.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::InvalidRequest;
use super::fields::{FieldRules, present};
use crate::domain::{Block, MetadataChange, RoomId, UserId};

/// What others are to be shown beside a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataBody {
    /// Any JSON object of at most 4 KiB; `null` clears it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>, required)]
    metadata: Option<Option<Box<RawValue>>>,
    /// Of the session with this epoch; of the person's newest if left out.
    #[schema(nullable = false, minimum = 0)]
    epoch: Option<i64>,
}

impl MetadataBody {
    /// The change that it asks for.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn read(
        self,
        room_id: RoomId,
        user_id: UserId,
        rules: &FieldRules,
    ) -> Result<MetadataChange, InvalidRequest> {
        if self.epoch.is_some_and(|epoch| epoch < 0) {
            return Err(InvalidRequest::new("epoch must not be negative"));
        }
        let metadata = self
            .metadata
            .ok_or_else(|| InvalidRequest::new("metadata is required; null clears it"))?;
        Ok(MetadataChange {
            room_id,
            user_id,
            epoch: self.epoch,
            metadata: rules.metadata(metadata)?,
        })
    }
}

/// The blocks of a room that hold.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlocksAnswer<'a> {
    blocks: Vec<BlockAnswer<'a>>,
    next: Option<String>,
}

impl<'a> BlocksAnswer<'a> {
    /// A page, with the page token of the next.
    pub fn new(blocks: &'a [Block], next: Option<String>) -> Self {
        Self {
            blocks: blocks.iter().map(BlockAnswer::new).collect(),
            next,
        }
    }
}

/// Who may not join, and until when.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Block)]
struct BlockAnswer<'a> {
    /// Null for everybody who is not in the room.
    user_id: Option<&'a str>,
    blocked_until_ms: i64,
    /// Who decided it, if that was said.
    by: Option<&'a str>,
    /// Why, in their words.
    reason: Option<&'a str>,
}

impl<'a> BlockAnswer<'a> {
    fn new(block: &'a Block) -> Self {
        Self {
            user_id: block.user_id.as_ref().map(UserId::as_str),
            blocked_until_ms: block.until.timestamp_millis(),
            by: block.decision.by(),
            reason: block.decision.reason.as_deref(),
        }
    }
}
