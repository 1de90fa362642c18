//! Endpoints as an admin sees them: `leasehold.set_webhook`, `webhook_states` and what switches them.

use super::changes::{position, position_refused};
use super::{Store, StoreError};
use crate::domain::{
    ChangesFilter, RoomId, WebhookChange, WebhookFigures, WebhookName, WebhookOrder, WebhookPlace,
    WebhookSecret, WebhookState, WebhookUnset,
};

impl Store {
    /// Makes an endpoint or changes it.
    ///
    /// # Errors
    /// Where the database does not answer, or refuses a value.
    pub async fn set_webhook(
        &self,
        order: &WebhookOrder,
    ) -> Result<Result<WebhookChange, WebhookUnset>, StoreError> {
        let filter = &order.filter;
        let kinds = filter.kind_words();
        let outcome = sqlx::query_scalar!(
            r#"select outcome as "outcome!" from leasehold.set_webhook($1, $2, $3, $4, $5, $6, $7)"#,
            order.name.as_str(),
            order.url,
            order.secret.as_ref().map(WebhookSecret::expose),
            filter.room_id.as_ref().map(|room| room.as_str()),
            filter.prefix,
            kinds.as_deref(),
            order.begin.as_sql(),
        )
        .fetch_one(&self.durable)
        .await;
        match outcome {
            Err(error) => Ok(Err(position_refused(
                error,
                WebhookUnset::PositionExpired,
                WebhookUnset::NoPosition,
            )?)),
            Ok(word) => match word.as_str() {
                "created" => Ok(Ok(WebhookChange::Created)),
                "changed" => Ok(Ok(WebhookChange::Changed)),
                "no_secret" => Ok(Err(WebhookUnset::NoSecret)),
                _ => Err(StoreError::Unexpected(format!("the outcome {word:?}"))),
            },
        }
    }

    /// In order of name: those that come after `after`, at most `limit`.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn webhooks(
        &self,
        name: Option<&WebhookName>,
        after: &str,
        limit: usize,
    ) -> Result<Vec<WebhookState>, StoreError> {
        let rows = sqlx::query!(
            r#"select name as "name!", url as "url!", room_id, prefix, kinds, status as "status!",
                      "position", failures as "failures!", last_success_at, last_failure_at,
                      last_failure, previous_secret_until,
                      pending_deliveries as "pending_deliveries!",
                      pending_changes as "pending_changes!", oldest_pending_at
               from leasehold.webhook_states
              where name > $2 and ($1::text is null or name = $1)
              order by name
              limit $3"#,
            name.map(WebhookName::as_str),
            after,
            i64::try_from(limit).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(WebhookState {
                    name: WebhookName::parse(row.name)?,
                    url: row.url,
                    filter: filter(row.room_id, row.prefix, row.kinds)?,
                    status: row.status.parse()?,
                    position: row.position.map(position).transpose()?,
                    failures: row.failures,
                    last_success_at: row.last_success_at,
                    last_failure_at: row.last_failure_at,
                    last_failure: row.last_failure,
                    previous_secret_until: row.previous_secret_until,
                    pending_deliveries: row.pending_deliveries,
                    pending_changes: row.pending_changes,
                    oldest_pending_at: row.oldest_pending_at,
                })
            })
            .collect()
    }

    /// Switches an endpoint off; false where there is none.
    ///
    /// # Errors
    /// Where nothing was changed.
    pub async fn disable_webhook(&self, name: &WebhookName) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select leasehold.disable_webhook($1) as "found!""#,
            name.as_str()
        );
        Ok(found.fetch_one(&self.durable).await?)
    }

    /// Goes on with an endpoint, from where it stopped or from a chosen place.
    ///
    /// # Errors
    /// Where nothing was changed.
    pub async fn resume_webhook(
        &self,
        name: &WebhookName,
        place: Option<&WebhookPlace>,
    ) -> Result<Result<(), WebhookUnset>, StoreError> {
        let found = match place {
            None => {
                sqlx::query_scalar!(
                    r#"select leasehold.resume_webhook($1) as "found!""#,
                    name.as_str()
                )
                .fetch_one(&self.durable)
                .await
            }
            Some(place) => {
                sqlx::query_scalar!(
                    r#"select leasehold.resume_webhook_from($1, $2) as "found!""#,
                    name.as_str(),
                    place.as_sql()
                )
                .fetch_one(&self.durable)
                .await
            }
        };
        match found {
            Ok(true) => Ok(Ok(())),
            Ok(false) => Ok(Err(WebhookUnset::Unknown)),
            Err(error) => Ok(Err(position_refused(
                error,
                WebhookUnset::PositionExpired,
                WebhookUnset::NoPosition,
            )?)),
        }
    }

    /// Forgets an endpoint; false where there is none.
    ///
    /// # Errors
    /// Where nothing was changed.
    pub async fn remove_webhook(&self, name: &WebhookName) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select leasehold.remove_webhook($1) as "found!""#,
            name.as_str()
        );
        Ok(found.fetch_one(&self.durable).await?)
    }

    /// Says how the endpoints of each status stand.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn webhook_figures(&self) -> Result<Vec<WebhookFigures>, StoreError> {
        let rows = sqlx::query!(
            r#"select status as "status!", endpoints as "endpoints!", pending as "pending!",
                      lag_seconds as "lag_seconds!"
               from leasehold.webhook_figures()"#,
        )
        .fetch_all(&self.figures)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(WebhookFigures {
                    status: row.status.parse()?,
                    endpoints: row.endpoints,
                    pending: row.pending,
                    lag_seconds: row.lag_seconds,
                })
            })
            .collect()
    }
}

impl WebhookPlace {
    fn as_sql(&self) -> Option<&str> {
        match self {
            Self::Latest => Some("latest"),
            Self::Oldest => None,
            Self::After(position) => Some(position.as_str()),
        }
    }
}

/// The columns of a filter.
pub(super) fn filter(
    room_id: Option<String>,
    prefix: Option<String>,
    kinds: Option<Vec<String>>,
) -> Result<ChangesFilter, StoreError> {
    let kinds = kinds.map(|kinds| kinds.iter().map(|kind| kind.parse()).collect());
    Ok(ChangesFilter {
        room_id: room_id.map(RoomId::parse).transpose()?,
        prefix,
        kinds: kinds.transpose()?,
    })
}
