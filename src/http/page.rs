//! Lists in pages: `?limit=` and `?after=` in, an opaque `next` out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiError;
use crate::domain::RoomId;

/// Entries of a page where the request does not say.
const DEFAULT_LIMIT: u32 = 100;

/// The most entries of a page; who asks for more gets so many.
const MAX_LIMIT: u32 = 1_000;

/// Between the parts of a page token: a character that no id contains.
const SEPARATOR: char = '\n';

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// How many entries at most: 100 if left out, never more than 1,000.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
}

impl Page {
    /// How many entries at most, from 1 to 1,000.
    pub fn limit(&self) -> Result<usize, ApiError> {
        match self.limit.unwrap_or(DEFAULT_LIMIT) {
            0 => Err(ApiError::invalid("limit must be at least 1")),
            limit => Ok(limit.min(MAX_LIMIT) as usize),
        }
    }

    /// The parts of the page token, if there is one.
    pub fn after<const N: usize>(&self) -> Result<Option<[String; N]>, ApiError> {
        self.after.as_deref().map(read).transpose()
    }

    /// A page token that is the id of a room.
    pub fn after_room(&self) -> Result<Option<RoomId>, ApiError> {
        match self.after()? {
            Some([id]) => Ok(Some(RoomId::parse(id).map_err(|_| not_a_token())?)),
            None => Ok(None),
        }
    }

    /// A page token that is one number.
    pub fn after_number(&self) -> Result<Option<i64>, ApiError> {
        match self.after()? {
            Some([number]) => Ok(Some(number.parse().map_err(|_| not_a_token())?)),
            None => Ok(None),
        }
    }
}

/// Cuts off what was read beyond the page, which tells that there is more; returns the last entry's page token then.
pub fn cut<T>(
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

/// A page token of these parts, safe in a query as it is.
pub fn write(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(parts.join(&SEPARATOR.to_string()))
}

fn read<const N: usize>(text: &str) -> Result<[String; N], ApiError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| not_a_token())?;
    let text = String::from_utf8(bytes).map_err(|_| not_a_token())?;
    let parts: Vec<String> = text.split(SEPARATOR).map(str::to_owned).collect();
    parts.try_into().map_err(|_| not_a_token())
}

/// The refusal of an `after` that no answer contained.
pub fn not_a_token() -> ApiError {
    ApiError::invalid("after must be the next of an earlier answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let token = write(&["räum / 1", "2"]);
        assert_eq!(read(&token).unwrap(), ["räum / 1", "2"]);
    }

    #[test]
    fn what_no_answer_contained_is_refused() {
        for text in ["", "x", "%", "AAAA\n", "____"] {
            assert!(read::<2>(text).is_err(), "{text:?}");
        }
    }
}
