//! Tables that Citus has distributed are refused: what one call does there in several statements is
//! no longer done in one place, and counts go wrong in silence.

use sqlx::PgConnection;

use super::StoreError;

/// That none of our tables is distributed. Where Citus is not installed this looks up a name.
pub(super) async fn require_undistributed(connection: &mut PgConnection) -> Result<(), StoreError> {
    let is_there = sqlx::query_scalar!(
        r#"select to_regclass('pg_catalog.pg_dist_partition') is not null as "is_there!""#
    );
    if !is_there.fetch_one(&mut *connection).await? {
        return Ok(());
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no such table where it is compiled"
    )]
    let distributed: Option<String> = sqlx::query_scalar(
        "select c.oid::regclass::text
           from pg_catalog.pg_dist_partition p
           join pg_class c on c.oid = p.logicalrelid
          where c.relnamespace = to_regnamespace('leasehold')
            -- One that Citus knows of and has left where it was.
            and not (p.partmethod = 'n' and p.repmodel = 's' and p.colocationid = 0)
          order by 1
          limit 1",
    )
    .fetch_optional(connection)
    .await?;
    match distributed {
        None => Ok(()),
        Some(table) => Err(StoreError::Distributed(table)),
    }
}
