//! The rooms that one connection follows: each has its own queue, and only those with news are looked at.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::SelectAll;

use super::{Batch, Subscription};
use crate::domain::{RoomId, View};

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
    view: View,
    /// `None` once it has ended.
    subscription: Option<Subscription>,
}

impl Stream for Followed {
    type Item = News;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<News>> {
        let Some(subscription) = &mut self.subscription else {
            return Poll::Ready(None);
        };
        Pin::new(subscription).poll_next(context).map(|batch| {
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
    /// Follows a room by this view of it alone. The first snapshot has been taken out of the subscription.
    pub fn add(&mut self, room_id: RoomId, view: View, subscription: Subscription) {
        if self.view(&room_id).is_some() {
            self.retain(|followed| *followed != room_id);
        }
        self.0.push(Followed {
            room_id,
            view,
            subscription: Some(subscription),
        });
    }

    /// By which view it follows a room, if it does.
    pub fn view(&self, room_id: &RoomId) -> Option<View> {
        let mut rooms = self.lasting();
        let found = rooms.find(|room| room.room_id == *room_id);
        found.map(|room| room.view)
    }

    /// Whether it follows as many rooms as it may.
    pub fn is_full(&self) -> bool {
        self.lasting().count() >= MAX_ROOMS
    }

    fn lasting(&self) -> impl Iterator<Item = &Followed> {
        let rooms = self.0.iter();
        rooms.filter(|room| room.subscription.is_some())
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
