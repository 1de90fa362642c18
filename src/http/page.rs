//! Lists in pages: `?limit=` and `?after=` in, an opaque `next` out.

use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiError;
use crate::domain::RoomId;
use crate::wire::read_page_token;
pub(crate) use crate::wire::write_page_token as write;

/// Entries of a page where the request does not say.
const DEFAULT_LIMIT: u32 = 100;

/// The most entries of a page; who asks for more gets so many.
const MAX_LIMIT: u32 = 1_000;

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// How many entries at most: 100 if left out, never more than 1,000.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
}

impl Page {
    /// How many entries at most, from 1 to 1,000.
    pub(crate) fn limit(&self) -> Result<usize, ApiError> {
        match self.limit.unwrap_or(DEFAULT_LIMIT) {
            0 => Err(ApiError::invalid("limit must be at least 1")),
            limit => Ok(limit.min(MAX_LIMIT) as usize),
        }
    }

    /// The parts of the page token, if there is one.
    pub(crate) fn after<const N: usize>(&self) -> Result<Option<[String; N]>, ApiError> {
        let read = |token| read_page_token(token).ok_or_else(not_a_token);
        self.after.as_deref().map(read).transpose()
    }

    /// A page token that is the id of a room.
    pub(crate) fn after_room(&self) -> Result<Option<RoomId>, ApiError> {
        match self.after()? {
            Some([id]) => Ok(Some(RoomId::parse(id).map_err(|_| not_a_token())?)),
            None => Ok(None),
        }
    }

    /// A page token that is one number.
    pub(crate) fn after_number(&self) -> Result<Option<i64>, ApiError> {
        match self.after()? {
            Some([number]) => Ok(Some(number.parse().map_err(|_| not_a_token())?)),
            None => Ok(None),
        }
    }
}

/// Cuts off what was read beyond the page, which tells that there is more; returns the last entry's page token then.
pub(crate) fn cut<T>(
    entries: &mut Vec<T>,
    limit: usize,
    token: impl FnOnce(&T) -> String,
) -> Option<String> {
    if entries.len() <= limit {
        return None;
    }
    entries.truncate(limit);
    entries.last().map(token)
}

/// The refusal of an `after` that no answer contained.
pub(crate) fn not_a_token() -> ApiError {
    ApiError::invalid("after must be the next of an earlier answer")
}
