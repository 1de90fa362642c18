//! A query may be given to the pool as to a connection: it then waits for a free one, and the whole
//! call is bounded.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, Postgres, SqlStr};

use super::pool::Connections;

impl<'c> Executor<'c> for &Connections {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let connections = self.clone();
        // All rows before the first is passed on: a reader that dawdles holds no connection.
        stream::once(async move {
            let rows = connections.call(async |held| held.fetch_many(query).try_collect().await);
            let rows: Vec<_> = rows.await?;
            Ok::<_, Error>(stream::iter(rows.into_iter().map(Ok)))
        })
        .try_flatten()
        .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let connections = self.clone();
        Box::pin(async move {
            let call = connections.call(async |held| held.fetch_optional(query).await);
            call.await
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        let connections = self.clone();
        Box::pin(async move {
            let call = connections.call(async |held| held.prepare_with(sql, parameters).await);
            call.await
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        let connections = self.clone();
        Box::pin(async move {
            let call = connections.call(async |held| held.describe(sql).await);
            call.await
        })
    }
}
