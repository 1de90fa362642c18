//! How those who are gone left: `leasehold.departures`, and how a room closed.

use super::error::promised;
use super::{Store, StoreError};
use crate::domain::{Closing, Departure, Departures, DeparturesQuery};

impl Store {
    /// Answers all of them in one read.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn departures(
        &self,
        queries: &[DeparturesQuery],
    ) -> Result<Vec<Departures>, StoreError> {
        let mut answers: Vec<Departures> = queries
            .iter()
            .map(|query| Departures {
                gone: vec![None; query.gone.len()],
                closed: None,
            })
            .collect();
        // A row without a user asks for the room's end.
        let asked: Vec<(usize, Option<usize>)> = queries
            .iter()
            .enumerate()
            .flat_map(|(q, query)| {
                (0..query.gone.len())
                    .map(move |person| (q, Some(person)))
                    .chain([(q, None)])
            })
            .collect();
        let rooms: Vec<&str> = asked
            .iter()
            .map(|&(q, _)| queries[q].room_id.as_str())
            .collect();
        let generations: Vec<i64> = asked.iter().map(|&(q, _)| queries[q].generation).collect();
        let person = |&(q, person): &(usize, Option<usize>)| person.map(|p| &queries[q].gone[p]);
        let users: Vec<Option<&str>> = asked
            .iter()
            .map(|at| person(at).map(|(user, _)| user.as_str()))
            .collect();
        let arrivals: Vec<Option<i64>> = asked
            .iter()
            .map(|at| person(at).map(|(_, arrival)| *arrival))
            .collect();

        let rows = sqlx::query!(
            r#"select ord as "ord!", epoch, version as "version!", reason as "reason!"
               from leasehold.departures($1, $2, $3, $4)"#,
            &rooms as &[&str],
            &generations,
            &users as &[Option<&str>],
            &arrivals as &[Option<i64>],
        )
        .fetch_all(&self.durable)
        .await?;

        for row in rows {
            let place = usize::try_from(row.ord - 1)
                .ok()
                .and_then(|place| asked.get(place));
            let (version, reason) = (row.version, row.reason.parse()?);
            match place {
                Some(&(q, Some(person))) => {
                    let epoch = promised(row.epoch, "epoch")?;
                    answers[q].gone[person] = Some(Departure {
                        epoch,
                        version,
                        reason,
                    });
                }
                Some(&(q, None)) => answers[q].closed = Some(Closing { version, reason }),
                None => {
                    return Err(StoreError::Unexpected(
                        "an answer that nobody asked for".into(),
                    ));
                }
            }
        }
        Ok(answers)
    }
}
