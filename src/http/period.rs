//! A period that a list is about: `?from=` and `?to=`.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiError;
use crate::domain::Period;

/// What was under way at some instant of the period.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PeriodQuery {
    /// In Unix milliseconds; from the oldest if left out.
    from: Option<i64>,
    /// In Unix milliseconds; to the newest if left out.
    to: Option<i64>,
}

impl PeriodQuery {
    pub(crate) fn read(&self) -> Result<Period, ApiError> {
        Ok(Period {
            from: self.from.map(|ms| instant("from", ms)).transpose()?,
            to: self.to.map(|ms| instant("to", ms)).transpose()?,
        })
    }
}

fn instant(field: &str, ms: i64) -> Result<DateTime<Utc>, ApiError> {
    DateTime::from_timestamp_millis(ms).ok_or_else(|| {
        ApiError::invalid(format!("{field} must be an instant in Unix milliseconds"))
    })
}
