//! The steps of whoever owns an endpoint: each names the epoch, and changes nothing for an owner of before.

use std::time::Duration;

use super::changes::position;
use super::interval::interval;
use super::webhooks::filter;
use super::{Store, StoreError};
use crate::domain::{
    Due, DueDelivery, Position, RoomId, Run, Settled, WebhookName, WebhookSecret, WebhookStatus,
    WebhookTerm,
};

impl Store {
    /// Makes `owner` that of every active endpoint without one.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn claim_webhooks(
        &self,
        owner: &str,
        lease: Duration,
    ) -> Result<Vec<WebhookTerm>, StoreError> {
        let rows = sqlx::query!(
            r#"select name as "name!", epoch as "epoch!" from leasehold.claim_webhooks($1, $2)"#,
            owner,
            interval(lease),
        )
        .fetch_all(&self.durable)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(WebhookTerm {
                    name: WebhookName::parse(row.name)?,
                    epoch: row.epoch,
                })
            })
            .collect()
    }

    /// Prolongs the lease; `None` where the endpoint has another owner or is not active.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn renew_webhook(
        &self,
        term: &WebhookTerm,
        lease: Duration,
    ) -> Result<Option<Due>, StoreError> {
        let row = sqlx::query!(
            r#"select revision as "revision!", url as "url!", secret as "secret!", previous_secret,
                      room_id, prefix, kinds, "position"
               from leasehold.renew_webhook($1, $2, $3)"#,
            term.name.as_str(),
            term.epoch,
            interval(lease),
        )
        .fetch_optional(&self.durable)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let secrets = [Some(row.secret), row.previous_secret];
        let secrets = secrets.iter().flatten().map(|secret| {
            WebhookSecret::parse(secret).map_err(|error| {
                StoreError::Unexpected(format!("of the webhook {}: {error}", term.name))
            })
        });
        Ok(Some(Due {
            revision: row.revision,
            url: row.url,
            secrets: secrets.collect::<Result<_, _>>()?,
            filter: filter(row.room_id, row.prefix, row.kinds)?,
            position: row.position.map(position).transpose()?,
        }))
    }

    /// Lets others own the endpoint.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn release_webhook(&self, term: &WebhookTerm) -> Result<(), StoreError> {
        sqlx::query!(
            r#"select leasehold.release_webhook($1, $2) as "released!: ()""#,
            term.name.as_str(),
            term.epoch,
        )
        .fetch_one(&self.durable)
        .await?;
        Ok(())
    }

    /// Puts a page of the feed into the outbox and moves the position to `next`; false where the
    /// endpoint is no longer as `due` says.
    ///
    /// # Errors
    /// Where that is not known.
    pub async fn take_changes(
        &self,
        term: &WebhookTerm,
        due: &Due,
        next: &Position,
        runs: &[Run],
    ) -> Result<bool, StoreError> {
        let rooms: Vec<String> = runs
            .iter()
            .map(|run| run.room_id.as_str().to_owned())
            .collect();
        let items: Vec<String> = runs.iter().map(|run| run.items.clone()).collect();
        let changes: Vec<i32> = runs.iter().map(|run| run.changes).collect();
        Ok(sqlx::query_scalar!(
            r#"select leasehold.take_changes($1, $2, $3, $4, $5, $6, $7, $8) as "taken!""#,
            term.name.as_str(),
            term.epoch,
            due.revision,
            due.position.as_ref().map(Position::as_str),
            next.as_str(),
            &rooms,
            &items,
            &changes,
        )
        .fetch_one(&self.durable)
        .await?)
    }

    /// How many deliveries wait, and which of them to send now, at most `limit` and none of the
    /// busy rooms; `None` where the endpoint is no longer as `due` says.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn due_deliveries(
        &self,
        term: &WebhookTerm,
        due: &Due,
        busy: &[String],
        limit: usize,
    ) -> Result<Option<(usize, Vec<DueDelivery>)>, StoreError> {
        let rows = sqlx::query!(
            r#"select pending as "pending!", as_of as "as_of!", seq, delivery_id, room_id, items
               from leasehold.due_deliveries($1, $2, $3, $4, $5)"#,
            term.name.as_str(),
            term.epoch,
            due.revision,
            busy,
            i32::try_from(limit).unwrap_or(i32::MAX),
        )
        .fetch_all(&self.durable)
        .await?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let pending = usize::try_from(first.pending).unwrap_or(0);
        let mut deliveries = Vec::with_capacity(rows.len());
        for row in rows {
            let (Some(seq), Some(id), Some(room_id), Some(items)) =
                (row.seq, row.delivery_id, row.room_id, row.items)
            else {
                break;
            };
            deliveries.push(DueDelivery {
                seq,
                id,
                room_id: RoomId::parse(room_id)?,
                items,
                as_of: row.as_of,
            });
        }
        Ok(Some((pending, deliveries)))
    }

    /// Records what came of deliveries; the endpoint's status then, or `None` where it has another
    /// owner and nothing was changed. `hold` keeps all of them back for so long.
    ///
    /// # Errors
    /// Where that is not known.
    pub async fn settle_deliveries(
        &self,
        term: &WebhookTerm,
        settled: &[Settled],
        hold: Option<Duration>,
        is_gone: bool,
        give_up: Duration,
    ) -> Result<Option<WebhookStatus>, StoreError> {
        let seqs: Vec<i64> = settled.iter().map(|settled| settled.seq).collect();
        let failures: Vec<Option<String>> = settled.iter().map(|s| s.failure.clone()).collect();
        let retries: Vec<Option<i64>> = settled.iter().map(|s| s.retry_ms).collect();
        let hold_ms = hold.map(|hold| i64::try_from(hold.as_millis()).unwrap_or(i64::MAX));
        let status = sqlx::query_scalar!(
            r#"select leasehold.settle_deliveries($1, $2, $3, $4::text[], $5::bigint[], $6, $7, $8)"#,
            term.name.as_str(),
            term.epoch,
            &seqs,
            &failures as &[Option<String>],
            &retries as &[Option<i64>],
            hold_ms,
            is_gone,
            interval(give_up),
        )
        .fetch_one(&self.durable)
        .await?;
        Ok(status.map(|status| status.parse()).transpose()?)
    }

    /// Stops an endpoint whose position cannot be read from; false where it is no longer as `due` says.
    ///
    /// # Errors
    /// Where that is not known.
    pub async fn expire_webhook(&self, term: &WebhookTerm, due: &Due) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar!(
            r#"select leasehold.expire_webhook($1, $2, $3) as "expired!""#,
            term.name.as_str(),
            term.epoch,
            due.revision,
        )
        .fetch_one(&self.durable)
        .await?)
    }
}
