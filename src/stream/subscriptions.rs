//! The rooms that one connection follows: each has its own queue, and only those with news are looked at.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::SelectAll;

use super::{Batch, Subscription};
use crate::domain::RoomId;

/// The most rooms of one connection.
pub const MAX_ROOMS: usize = 100;

/// The rooms that one connection follows, each of them once.
#[derive(Default)]
pub struct Subscriptions(SelectAll<Followed>);

/// What a connection hears.
pub enum News {
    /// Of one of its rooms.
    Batch(Arc<Batch>),
    /// There will be no more of this room, as the service stops or the subscription was ended.
    Ended(RoomId),
}

struct Followed {
    room_id: RoomId,
    /// `None` once it has ended.
    subscription: Option<Subscription>,
}

impl Stream for Followed {
    type Item = News;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<News>> {
        let Some(subscription) = &mut self.subscription else {
            return Poll::Ready(None);
        };
        subscription.poll_next(context).map(|batch| {
            Some(match batch {
                Some(batch) => News::Batch(batch),
                None => {
                    self.subscription = None;
                    News::Ended(self.room_id.clone())
                }
            })
        })
    }
}

impl Subscriptions {
    /// Follows a room, whose first snapshot has been taken out of the subscription.
    pub fn add(&mut self, room_id: RoomId, subscription: Subscription) {
        self.0.push(Followed {
            room_id,
            subscription: Some(subscription),
        });
    }

    /// Whether a room is among them.
    pub fn contains(&self, room_id: &RoomId) -> bool {
        self.followed().any(|followed| followed == room_id)
    }

    /// Whether it follows as many rooms as it may.
    pub fn is_full(&self) -> bool {
        self.followed().count() >= MAX_ROOMS
    }

    /// Whether it follows none.
    pub fn is_empty(&self) -> bool {
        self.followed().next().is_none()
    }

    fn followed(&self) -> impl Iterator<Item = &RoomId> {
        let lasting = self.0.iter().filter(|room| room.subscription.is_some());
        lasting.map(|room| &room.room_id)
    }

    /// Follows only these of its rooms from now on; answers which others it did.
    pub fn retain(&mut self, mut keeps: impl FnMut(&RoomId) -> bool) -> Vec<RoomId> {
        let (kept, dropped): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|followed| keeps(&followed.room_id));
        self.0.extend(kept);
        dropped
            .into_iter()
            .filter(|followed| followed.subscription.is_some())
            .map(|followed| followed.room_id)
            .collect()
    }

    /// What any of its rooms has next; waits as long as it follows none.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<News> {
        match Pin::new(&mut self.0).poll_next(context) {
            Poll::Ready(Some(news)) => Poll::Ready(news),
            // Whoever adds a room asks again.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}
