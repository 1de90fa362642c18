//! An open socket: events out, requests in, and pings whose pongs renew the sessions that it holds.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_ws::{AggregatedMessage, CloseCode, CloseReason, Closed};
use bytestring::ByteString;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::contacts::Contacts;
use super::inward::Inward;
use super::log::Log;
use super::request::{Asker, Turn};
use crate::coalesce::NoAnswer;
use crate::domain::{Heartbeat, Located, RoomId, SessionKey};
use crate::http::access_log::Subject;
use crate::http::events::until;
use crate::http::members::renew;
use crate::http::peer::Peer;
use crate::http::{Access, ApiError};
use crate::stream::{Batch, News};
use crate::wire::socket::{self, Stale, Unsubscribed};

/// After so many pings without a sign of life the client is gone.
const UNANSWERED_PINGS: u32 = 2;

type Answering = Pin<Box<dyn Future<Output = (ByteString, Turn)>>>;
type Looking = Pin<Box<dyn Future<Output = Result<Vec<Located>, NoAnswer>>>>;
type Renewing = Pin<Box<dyn Future<Output = Vec<(SessionKey, ApiError)>>>>;

pub(super) struct Connection {
    asker: Asker,
    /// The socket is closed with its credential.
    credential_ends: watch::Sender<Option<Instant>>,
    peer: Rc<Peer>,
    out: actix_ws::Session,
    log: Log,
    contacts: Option<Contacts>,
    next_ping: Instant,
    /// Between two pings.
    beat: Duration,
    /// Pings since the client was heard of.
    unanswered: u32,
}

/// A branch of a select that is off while there is nothing to wait for.
async fn maybe<T>(waiting: &mut Option<Pin<Box<dyn Future<Output = T>>>>) -> T {
    match waiting {
        Some(future) => {
            let value = future.await;
            *waiting = None;
            value
        }
        None => pending().await,
    }
}

impl Connection {
    pub(super) fn new(asker: Asker, peer: Rc<Peer>, out: actix_ws::Session, log: Log) -> Self {
        let credential_ends = end_of(&asker.access);
        peer.stream_until(credential_ends);
        let beat = asker.api.keep_alive;
        Self {
            next_ping: Instant::now() + beat,
            beat,
            unanswered: 0,
            credential_ends: watch::Sender::new(credential_ends),
            asker,
            peer,
            out,
            log,
            contacts: None,
        }
    }

    pub(super) async fn run(mut self, snapshot: Option<Arc<Batch>>, mut inward: Inward) {
        let mut answering = None;
        let credential_ends = self.credential_ends.subscribe();
        let (drain, stop) = (self.asker.api.drain.clone(), self.asker.api.stop.clone());
        // Also where the client takes nothing, and the loop waits for it.
        let close = tokio::select! {
            close = self.serve(snapshot, &mut inward, &mut answering) => close,
            () = over(credential_ends) => Some(CloseCode::Policy),
            () = drain.turn() => Some(CloseCode::Restart),
            () = stop.cancelled() => Some(CloseCode::Restart),
        };
        self.asker.subscriptions.take();
        // A join that is under way is of somebody who is gone already.
        if let Some(answering) = answering {
            answering.await;
        }
        self.report_lost(self.asker.sessions.current()).await;
        let patience = self.asker.api.stall_timeout;
        let close = self.out.close(close.map(CloseReason::from));
        let _ = timeout(patience, close).await;
    }

    /// Until one of the two ends it; with what the client is told.
    async fn serve(
        &mut self,
        snapshot: Option<Arc<Batch>>,
        inward: &mut Inward,
        answering: &mut Option<Answering>,
    ) -> Option<CloseCode> {
        let mut renewing: Option<Renewing> = None;
        let mut looking: Option<Looking> = None;
        if let Some(snapshot) = snapshot {
            self.send(snapshot.messages()).await.ok()?;
        }
        let subscriptions = Rc::clone(&self.asker.subscriptions);
        let mut is_misdirected = false;
        loop {
            let next_look = self.contacts.as_ref().map(Contacts::next_look);
            let step = tokio::select! {
                news = poll_fn(|context| subscriptions.borrow_mut().poll_next(context)) => match news {
                    News::Batch(batch) => {
                        is_misdirected |= batch.is_misdirected();
                        self.send(batch.messages()).await
                    }
                    News::Ended(_) if self.asker.api.stop.is_cancelled() => {
                        return Some(CloseCode::Restart);
                    }
                    News::Ended(room_id) if self.asker.room_id.as_ref() == Some(&room_id) => {
                        // Another cell has its room: the proxy finds it, for a new socket.
                        return Some(if is_misdirected { CloseCode::Restart } else { CloseCode::Policy });
                    }
                    News::Ended(_) => Ok(()),
                },
                (answer, turn) = maybe(answering) => {
                    let more = self.turn(turn).await;
                    match self.send(&[answer]).await {
                        Ok(()) => self.send(&more).await,
                        closed => closed,
                    }
                }
                stale = maybe(&mut renewing) => self.tell_stale(stale).await,
                () = until(next_look), if looking.is_none() => {
                    looking = self.look();
                    Ok(())
                }
                found = maybe(&mut looking) => {
                    // Without an answer there is another look.
                    let news = found.ok().and_then(|found| self.contacts.as_mut()?.learn(found));
                    self.send(news.as_slice()).await
                }
                // One request at a time, in their order: the next is not read before.
                message = inward.next(), if answering.is_none() => {
                    self.unanswered = 0;
                    let message = match message {
                        Ok(message) => message,
                        Err(close) => return close,
                    };
                    match message {
                        AggregatedMessage::Text(text) => {
                            let entry = self.log.begin("unknown");
                            *answering = Some(Box::pin(self.asker.clone().answer(text, entry)));
                            Ok(())
                        }
                        AggregatedMessage::Binary(_) => return Some(CloseCode::Unsupported),
                        AggregatedMessage::Ping(data) => self.out.pong(&data).await,
                        AggregatedMessage::Pong(_) => {
                            if renewing.is_none() {
                                renewing = self.renewal();
                            }
                            Ok(())
                        }
                        AggregatedMessage::Close(reason) => return reason.map(|reason| reason.code),
                    }
                }
                () = sleep_until(self.next_ping) => {
                    if self.unanswered >= UNANSWERED_PINGS {
                        return Some(CloseCode::Protocol);
                    }
                    // Not held against a client that is not read, or has yet to read what it was sent before.
                    if answering.is_none() && !self.peer.is_behind() {
                        self.unanswered += 1;
                    }
                    self.next_ping = Instant::now() + self.beat;
                    self.out.ping(b"").await
                }
            };
            step.ok()?;
        }
    }

    async fn send(&mut self, texts: &[ByteString]) -> Result<(), Closed> {
        for text in texts {
            timeout(self.asker.api.stall_timeout, self.out.text(text.clone()))
                .await
                .map_err(|_| Closed)??;
        }
        Ok(())
    }

    /// What a request has changed, with what is told of it after the answer.
    async fn turn(&mut self, turn: Turn) -> Vec<ByteString> {
        let keep_alive = self.asker.api.keep_alive;
        let beat = self.asker.sessions.beat();
        self.beat = beat.map_or(keep_alive, |beat| beat.min(keep_alive));
        self.next_ping = self.next_ping.min(Instant::now() + self.beat);
        match turn {
            Turn::Authenticated(access) => self.authenticated(access).await,
            Turn::Follows(snapshot) => snapshot.messages().to_vec(),
            Turn::LooksFor(found) if found.is_empty() => {
                self.contacts = None;
                Vec::new()
            }
            Turn::LooksFor(found) => {
                let poll = self.asker.api.poll;
                let contacts = self.contacts.insert(Contacts::new(found, poll));
                vec![contacts.told()]
            }
            Turn::Nothing => Vec::new(),
        }
    }

    /// The socket goes on with this credential, and without what it does not allow.
    async fn authenticated(&mut self, access: Access) -> Vec<ByteString> {
        let ends = end_of(&access);
        self.peer.stream_until(ends);
        self.credential_ends.send_replace(ends);
        let mut lost = self.asker.sessions.current();
        lost.retain(|session| access.may_act_for(session).is_err());
        let subscriptions = Rc::clone(&self.asker.subscriptions);
        let reads = |room_id: &RoomId| access.may_read(room_id).is_ok();
        let unread = subscriptions.borrow_mut().retain(reads);
        if let Some(contacts) = &mut self.contacts {
            contacts.retain(|user| access.may_locate(user).is_ok());
        }
        self.asker.access = access;
        self.report_lost(lost).await;
        let told = unread
            .iter()
            .map(|room_id| socket::text(&Unsubscribed::new(room_id)));
        told.map(ByteString::from).collect()
    }

    /// Looks for the people whom the socket follows.
    fn look(&mut self) -> Option<Looking> {
        let users = self.contacts.as_mut()?.look();
        let presence = self.asker.api.presence.clone();
        Some(Box::pin(async move { presence.whereabouts(users).await }))
    }

    /// The client's software answered a ping, also where its page is hidden: a sign of life of all
    /// that the socket holds. With those that are found to be stale.
    fn renewal(&self) -> Option<Renewing> {
        let sessions = self.asker.sessions.current();
        let api = self.asker.api.clone();
        let first = sessions.first()?.clone();
        let mut entry = self.log.begin("pong");
        if sessions.len() == 1 {
            entry.is_about(|| Subject::of(&first));
        }
        Some(Box::pin(async move {
            let renewals = sessions.into_iter().map(async |session| {
                let outcome = renew(&api, Heartbeat::bare(session.clone())).await;
                outcome.err().map(|error| (session, error))
            });
            let refused: Vec<_> = join_all(renewals).await.into_iter().flatten().collect();
            let first = refused.first().map(|(_, error)| error.clone());
            entry.end_with(&first.map_or(Ok(()), Err));
            // Without an answer there is another ping.
            let stale = refused.into_iter();
            stale
                .filter(|(_, error)| error.is_of_the_session())
                .collect()
        }))
    }

    async fn tell_stale(&mut self, stale: Vec<(SessionKey, ApiError)>) -> Result<(), Closed> {
        for (session, error) in stale {
            // One that left meanwhile need not hear of it.
            if self.asker.sessions.release(&session) {
                self.asker.api.metrics.requests.refused(error.code());
                let text = socket::text(&Stale::new(&session, error.code()));
                self.send(&[text.into()]).await?;
            }
        }
        Ok(())
    }

    /// A socket that closes without a leave removes nobody: the lease decides.
    async fn report_lost(&self, sessions: Vec<SessionKey>) {
        let Some(first) = sessions.first() else {
            return;
        };
        let mut entry = self.log.begin("disconnect");
        if sessions.len() == 1 {
            entry.is_about(|| Subject::of(first));
        }
        // Where it was not reported others see it by the missing heartbeats.
        let reports = sessions.into_iter().map(async |session| {
            self.asker.sessions.release(&session);
            let outcome = self.asker.api.presence.disconnect(session).await;
            outcome.map_err(ApiError::from)?.map_err(ApiError::from)
        });
        let outcomes = join_all(reports).await;
        entry.end_with(&outcomes.into_iter().collect());
    }
}

fn end_of(access: &Access) -> Option<Instant> {
    access.expires_in().map(|left| Instant::now() + left)
}

/// Returns when the credential has ended that was the last to be shown.
async fn over(mut ends: watch::Receiver<Option<Instant>>) {
    loop {
        let end = *ends.borrow_and_update();
        tokio::select! {
            () = until(end) => return,
            Ok(()) = ends.changed() => {}
        }
    }
}
