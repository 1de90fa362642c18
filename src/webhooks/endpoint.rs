//! Serving one endpoint, for as long as this instance owns it.
//!
//! Pages of the feed go into the outbox, and what is due leaves it: one delivery under way a room.
//! The lease is renewed on the way. No transaction is open while a request is under way, and no
//! request goes on beyond the lease.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Answer, Message, Target, Webhooks};
use crate::domain::{
    Changes, ChangesOutcome, Due, DueDelivery, Position, Settled, WebhookStatus, WebhookTerm,
};
use crate::store::StoreError;
use crate::wire::{runs, webhook_body};

/// Changes that are read at a time.
const PAGE: i32 = 1_000;

/// With so many deliveries in the outbox no more is read: the position stays, and the purge knows.
const MOST_PENDING: usize = 5_000;

/// Between two reads of the feed that found little, and before what failed is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// A change that was heard of may be held back for a moment by others that began before it.
const LOOKS: u8 = 5;

/// A position that moved over nothing of interest is not stored each time.
const STORED_EVERY: Duration = Duration::from_secs(30);

/// Requests under way when the instance stops have so long.
const LAST: Duration = Duration::from_secs(5);

/// What came of a request; `None` where it was not sent, or its answer came after the lease.
type Sent = (i64, Option<Answer>);

/// What is known as of the last renewal.
struct Renewed {
    due: Due,
    target: Result<Target, String>,
    began: Instant,
}

/// One endpoint under this instance's lease.
pub(super) struct Endpoint {
    hooks: Webhooks,
    term: WebhookTerm,
    renewed: Option<Renewed>,
    /// Up to where the feed was read, which may be beyond what is stored.
    read: Option<Position>,
    stored: Instant,
    looked: Option<Instant>,
    /// There is more to read at once.
    is_full: bool,
    /// How often to look again soon.
    eager: u8,
    pending: usize,
    under_way: JoinSet<Sent>,
    /// The room of each request.
    rooms: HashMap<Id, String>,
    /// Answers that are not recorded yet, with their rooms, which wait for that.
    answered: Vec<(String, i64, Answer)>,
    is_failing: bool,
}

impl Endpoint {
    pub(super) fn new(hooks: Webhooks, term: WebhookTerm) -> Self {
        Self {
            hooks,
            term,
            renewed: None,
            read: None,
            stored: Instant::now(),
            looked: None,
            is_full: false,
            eager: 0,
            pending: 0,
            under_way: JoinSet::new(),
            rooms: HashMap::new(),
            answered: Vec::new(),
            is_failing: false,
        }
    }

    /// Until the endpoint is lost, or `stop`.
    pub(super) async fn serve(mut self, stop: CancellationToken) {
        let mut feed = self.hooks.wakes.feed();
        loop {
            feed.mark_unchanged();
            let step = self.step().await;
            match step {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(webhook = %self.term.name, %error, "a step of a webhook is tried again");
                    // What of it took effect is not known.
                    self.renewed = None;
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.news(&mut feed) => {}
            }
        }
        // What was sent is recorded also for an endpoint that is switched off.
        let _ = timeout(LAST, self.finish()).await;
        // Nothing goes on in the name of somebody else's term.
        self.under_way.shutdown().await;
        if let Err(error) = self.hooks.store.release_webhook(&self.term).await {
            tracing::warn!(webhook = %self.term.name, %error, "a webhook is free when its lease ends");
        }
    }

    /// What can be done now; false where the endpoint has another owner or is not to be served.
    async fn step(&mut self) -> Result<bool, StoreError> {
        if !self.settle().await? {
            return Ok(false);
        }
        let is_fresh = |renewed: &Renewed| renewed.began.elapsed() < self.hooks.settings.beat();
        if !self.renewed.as_ref().is_some_and(is_fresh) && !self.renew().await? {
            return Ok(false);
        }
        let is_time = self.is_full || self.looked.is_none_or(|looked| looked.elapsed() >= PAUSE);
        if is_time && self.pending < MOST_PENDING {
            self.is_full = self.take().await?;
            self.looked = Some(Instant::now());
        }
        self.send().await?;
        Ok(true)
    }

    /// Prolongs the lease, which counts from before it was asked for.
    async fn renew(&mut self) -> Result<bool, StoreError> {
        let began = Instant::now();
        let lease = self.hooks.settings.lease;
        let Some(due) = self.hooks.store.renew_webhook(&self.term, lease).await? else {
            return Ok(false);
        };
        let before = self.renewed.take();
        if before.is_none_or(|before| before.due.revision != due.revision) {
            self.read.clone_from(&due.position);
        }
        let target = Target::parse(&due.url, self.hooks.reach());
        self.renewed = Some(Renewed {
            target: target.map_err(|error| error.to_string()),
            due,
            began,
        });
        Ok(true)
    }

    /// Reads a page into the outbox; whether it was a full one.
    async fn take(&mut self) -> Result<bool, StoreError> {
        let Some(renewed) = &mut self.renewed else {
            return Ok(false);
        };
        let store = &self.hooks.store;
        let after = self.read.as_ref();
        let page = match store.changes(after, &renewed.due.filter, PAGE).await? {
            ChangesOutcome::Page(page) => page,
            ChangesOutcome::PositionExpired | ChangesOutcome::NoPosition => {
                if store.expire_webhook(&self.term, &renewed.due).await? {
                    self.stopped(WebhookStatus::Expired);
                }
                self.renewed = None;
                return Ok(false);
            }
        };
        let Changes {
            changes,
            next,
            more_is_coming,
        } = page;
        if more_is_coming && self.read.as_ref() != Some(&next) {
            self.eager = LOOKS;
        }
        if changes.is_empty() && self.stored.elapsed() < STORED_EVERY
            || renewed.due.position.as_ref() == Some(&next)
        {
            self.read = Some(next);
            return Ok(false);
        }
        let runs = runs(&changes).map_err(|error| StoreError::Unexpected(error.to_string()))?;
        if store
            .take_changes(&self.term, &renewed.due, &next, &runs)
            .await?
        {
            self.stored = Instant::now();
            self.read = Some(next.clone());
            renewed.due.position = Some(next);
            Ok(changes.len() >= PAGE as usize)
        } else {
            self.renewed = None;
            Ok(false)
        }
    }

    /// Begins what is due, as far as there are places for it.
    async fn send(&mut self) -> Result<(), StoreError> {
        let settings = &self.hooks.settings;
        let places = settings.concurrency.saturating_sub(self.under_way.len());
        let Some(renewed) = self.renewed.as_ref().filter(|_| places > 0) else {
            return Ok(());
        };
        let waiting = self.answered.iter().map(|(room, ..)| room);
        let busy: Vec<String> = self.rooms.values().chain(waiting).cloned().collect();
        let due = self
            .hooks
            .store
            .due_deliveries(&self.term, &renewed.due, &busy, places);
        let Some((pending, deliveries)) = due.await? else {
            self.renewed = None;
            return Ok(());
        };
        self.pending = pending;
        let lease_ends = renewed.began + settings.lease;
        for delivery in deliveries {
            let room = delivery.room_id.as_str().to_owned();
            let secrets = renewed.due.secrets.clone();
            let (sender, target) = (self.hooks.sender.clone(), renewed.target.clone());
            let timeout = settings.timeout;
            let sending = self.under_way.spawn(async move {
                let seq = delivery.seq;
                let deadline = Instant::now() + timeout;
                if deadline > lease_ends {
                    return (seq, None);
                }
                let answer = match target {
                    Ok(target) => {
                        let message = message(delivery);
                        sender.send(&target, &secrets, message, deadline).await
                    }
                    Err(why) => Answer::failed(why),
                };
                // A process that stood still meanwhile speaks for nobody.
                (seq, Some(answer).filter(|_| Instant::now() <= lease_ends))
            });
            self.rooms.insert(sending.id(), room);
        }
        Ok(())
    }

    /// Waits for an answer, a change, or the time to look again.
    async fn news(&mut self, feed: &mut watch::Receiver<()>) {
        let settings = &self.hooks.settings;
        let patience = if self.is_full && self.pending < MOST_PENDING {
            Duration::ZERO
        } else if self.renewed.is_none() || !self.answered.is_empty() || self.eager > 0 {
            PAUSE
        } else {
            settings.poll.min(settings.beat())
        };
        self.eager = self.eager.saturating_sub(1);
        tokio::select! {
            Some(ended) = self.under_way.join_next_with_id() => self.ended(ended),
            Ok(()) = feed.changed() => {
                self.eager = LOOKS;
                sleep(PAUSE).await;
            }
            () = sleep(patience) => {}
        }
        while let Some(ended) = self.under_way.try_join_next_with_id() {
            self.ended(ended);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Sent), JoinError>) {
        let (id, (seq, answer)) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.rooms.remove(&error.id());
                return;
            }
        };
        if let (Some(room), Some(answer)) = (self.rooms.remove(&id), answer) {
            self.answered.push((room, seq, answer));
        }
    }

    /// Records what was answered; false where the endpoint is lost.
    async fn settle(&mut self) -> Result<bool, StoreError> {
        if self.answered.is_empty() {
            return Ok(true);
        }
        let settled: Vec<Settled> = self.answered.iter().map(settled).collect();
        let is_gone = |(.., answer): &(_, _, Answer)| *answer == Answer::Gone;
        let is_gone = self.answered.iter().any(is_gone);
        let hold = self.answered.iter().filter_map(|(.., answer)| hold(answer));
        let status = self.hooks.store.settle_deliveries(
            &self.term,
            &settled,
            hold.max(),
            is_gone,
            self.hooks.settings.give_up,
        );
        let status = status.await?;
        self.answered.clear();
        self.tell(&settled);
        match status {
            Some(WebhookStatus::Active | WebhookStatus::Disabled) => Ok(true),
            Some(status) => {
                self.stopped(status);
                Ok(false)
            }
            None => {
                tracing::warn!(webhook = %self.term.name, "answers came after another instance took the webhook; they change nothing");
                Ok(false)
            }
        }
    }

    /// Says it once where deliveries begin to fail, and once where they no longer do.
    fn tell(&mut self, settled: &[Settled]) {
        let failure = settled
            .iter()
            .find_map(|settled| settled.failure.as_deref());
        let failed = settled.iter().filter(|settled| settled.failure.is_some());
        let failed = failed.count();
        self.hooks.metrics.settled(settled.len() - failed, failed);
        match failure {
            Some(failure) if !self.is_failing => {
                self.is_failing = true;
                tracing::warn!(webhook = %self.term.name, failure, "a delivery failed and will be tried again");
            }
            None if self.is_failing => {
                self.is_failing = false;
                tracing::info!(webhook = %self.term.name, "deliveries succeed again");
            }
            _ => {}
        }
    }

    fn stopped(&self, status: WebhookStatus) {
        tracing::error!(
            webhook = %self.term.name,
            status = status.as_str(),
            "a webhook is no longer delivered to; resume it when it is right again"
        );
    }

    /// Waits for what is under way, and records it.
    async fn finish(&mut self) {
        while let Some(ended) = self.under_way.join_next_with_id().await {
            self.ended(ended);
        }
        while self.settle().await.is_err() {
            sleep(PAUSE).await;
        }
    }
}

fn message(delivery: DueDelivery) -> Message {
    Message {
        timestamp: delivery.as_of.timestamp(),
        body: webhook_body(&delivery.items),
        id: delivery.id,
    }
}

fn settled((_, seq, answer): &(String, i64, Answer)) -> Settled {
    let (failure, retry_after) = match answer {
        Answer::Taken => (None, None),
        Answer::Gone => (Some("it answered 410".to_owned()), None),
        Answer::Failed {
            why, retry_after, ..
        } => (Some(why.clone()), *retry_after),
    };
    Settled {
        seq: *seq,
        failure,
        retry_ms: retry_after.map(|pause| i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)),
    }
}

/// For how long all deliveries are to wait: only who says that there are too many means that.
fn hold(answer: &Answer) -> Option<Duration> {
    match answer {
        Answer::Failed {
            retry_after,
            is_overrun: true,
            ..
        } => *retry_after,
        _ => None,
    }
}
