//! People whom a socket follows, in whichever rooms they are: looked for again and again, and told
//! of where something is different.

use std::time::Duration;

use bytestring::ByteString;
use tokio::time::Instant;

use crate::domain::{Located, UserId, Whereabouts};
use crate::wire::WhereaboutsMessage;
use crate::wire::socket;

/// People whom one socket follows at most.
pub(super) const MAX_CONTACTS: usize = 200;

/// What each of them adds to the pause between two looks: a hundred a second for one socket.
const PER_HEAD: Duration = Duration::from_millis(10);

/// Whom a socket follows, and what it was told of them last.
pub(super) struct Contacts {
    known: Vec<Located>,
    pause: Duration,
    next_look: Instant,
}

impl Contacts {
    /// Looked for again after `poll`, or later where they are many.
    pub(super) fn new(known: Vec<Located>, poll: Duration) -> Self {
        let heads = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let pause = poll.max(PER_HEAD.saturating_mul(heads));
        Self {
            known,
            pause,
            next_look: Instant::now() + pause,
        }
    }

    pub(super) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Whom to look for; the next time is a pause later.
    pub(super) fn look(&mut self) -> Vec<UserId> {
        self.next_look = Instant::now() + self.pause;
        self.known.iter().map(|one| one.user_id.clone()).collect()
    }

    /// All of them.
    pub(super) fn told(&self) -> ByteString {
        let everybody: Vec<&Located> = self.known.iter().collect();
        socket::text(&WhereaboutsMessage::new(&everybody)).into()
    }

    /// Those of whom something is different now.
    pub(super) fn learn(&mut self, found: Vec<Located>) -> Option<ByteString> {
        // Another set of people may be followed since that look began.
        if !self.known.iter().map(id).eq(found.iter().map(id)) {
            return None;
        }
        let known = std::mem::replace(&mut self.known, found);
        let pairs = known.iter().zip(&self.known);
        let different: Vec<&Located> = pairs
            .filter(|(then, now)| !look(then).eq(look(now)))
            .map(|(_, now)| now)
            .collect();
        let is_news = !different.is_empty();
        is_news.then(|| socket::text(&WhereaboutsMessage::new(&different)).into())
    }

    /// Forgets those who may not be followed any more.
    pub(super) fn retain(&mut self, may_follow: impl Fn(&UserId) -> bool) {
        self.known.retain(|one| may_follow(&one.user_id));
    }
}

fn id(located: &Located) -> &UserId {
    &located.user_id
}

/// What others see of somebody; a renewed lease by itself is nothing to see.
fn look(located: &Located) -> impl Iterator<Item = (&str, i64, i64, &str)> {
    located.rooms.iter().map(|room: &Whereabouts| {
        let status = room.status.as_str();
        (room.room_id.as_str(), room.generation, room.epoch, status)
    })
}
