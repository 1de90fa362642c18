//! An open socket: events out, requests in, and pings whose pongs renew the session that was joined on it.

use std::future::pending;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::ResponseError;
use actix_web::web::Data;
use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, CloseReason, Closed};
use bytestring::ByteString;
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::log::Log;
use super::request::{Turn, answer};
use crate::domain::{Heartbeat, RoomId, SessionKey};
use crate::http::access_log::Subject;
use crate::http::events::until;
use crate::http::members::renew;
use crate::http::peer::Peer;
use crate::http::{Access, Api, ApiError};
use crate::stream::{Batch, Subscription};
use crate::wire::socket::{self, Stale};

/// After so many pings without a sign of life the client is gone.
const UNANSWERED_PINGS: u32 = 2;

type Answering = Pin<Box<dyn Future<Output = (ByteString, Turn)>>>;
type Renewing = Pin<Box<dyn Future<Output = (SessionKey, Result<(), ApiError>)>>>;

pub(super) struct Connection {
    api: Data<Api>,
    access: Access,
    /// The socket is closed with the credential that opened it.
    credential_ends: Option<Instant>,
    peer: Rc<Peer>,
    room_id: RoomId,
    out: actix_ws::Session,
    log: Log,
    /// The session that was joined on this socket.
    session: Option<SessionKey>,
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
    pub(super) fn new(
        api: Data<Api>,
        access: Access,
        peer: Rc<Peer>,
        room_id: RoomId,
        out: actix_ws::Session,
        log: Log,
    ) -> Self {
        let credential_ends = access.expires_in().map(|left| Instant::now() + left);
        peer.stream_until(credential_ends);
        Self {
            next_ping: Instant::now() + api.keep_alive,
            beat: api.keep_alive,
            unanswered: 0,
            credential_ends,
            access,
            api,
            peer,
            room_id,
            out,
            log,
            session: None,
        }
    }

    pub(super) async fn run(
        mut self,
        snapshot: Arc<Batch>,
        mut subscription: Subscription,
        mut inward: AggregatedMessageStream,
    ) {
        let mut answering = None;
        let (credential_ends, drain) = (self.credential_ends, self.api.drain.clone());
        // Also where the client takes nothing, and the loop waits for it.
        let close = tokio::select! {
            close = self.serve(&snapshot, &mut subscription, &mut inward, &mut answering) => close,
            () = until(credential_ends) => Some(CloseCode::Policy),
            () = drain.turn() => Some(CloseCode::Restart),
        };
        drop(subscription);
        // A join that is under way is of somebody who is gone already.
        if let Some(answering) = answering {
            let (_, turn) = answering.await;
            self.turn(turn);
        }
        self.report_lost().await;
        let close = self.out.close(close.map(CloseReason::from));
        let _ = timeout(self.api.stall_timeout, close).await;
    }

    /// Until one of the two ends it; with what the client is told.
    async fn serve(
        &mut self,
        snapshot: &Batch,
        subscription: &mut Subscription,
        inward: &mut AggregatedMessageStream,
        answering: &mut Option<Answering>,
    ) -> Option<CloseCode> {
        let mut renewing: Option<Renewing> = None;
        self.send(snapshot.messages()).await.ok()?;
        loop {
            let step = tokio::select! {
                batch = subscription.next() => match batch {
                    Some(batch) if batch.is_last() => {
                        self.send(batch.messages()).await.ok()?;
                        return Some(CloseCode::Policy);
                    }
                    Some(batch) => self.send(batch.messages()).await,
                    None => return Some(CloseCode::Restart),
                },
                (text, turn) = maybe(answering) => {
                    self.turn(turn);
                    self.send(&[text]).await
                }
                (session, outcome) = maybe(&mut renewing) => self.renewed(session, outcome).await,
                // One request at a time, in their order: the next is not read before.
                message = inward.next(), if answering.is_none() => {
                    self.unanswered = 0;
                    match message?.ok()? {
                        AggregatedMessage::Text(text) => {
                            *answering = Some(Box::pin(answer(self.api.clone(), self.access.clone(), self.room_id.clone(), text, self.log.begin("unknown"))));
                            Ok(())
                        }
                        AggregatedMessage::Binary(_) => return Some(CloseCode::Unsupported),
                        AggregatedMessage::Ping(data) => self.out.pong(&data).await,
                        AggregatedMessage::Pong(_) => {
                            if renewing.is_none() {
                                renewing = self.session.clone().map(|session| self.renewal(session));
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
            timeout(self.api.stall_timeout, self.out.text(text.clone()))
                .await
                .map_err(|_| Closed)??;
        }
        Ok(())
    }

    fn turn(&mut self, turn: Turn) {
        match turn {
            Turn::Joined(session, heartbeat) => {
                self.session = Some(session);
                self.beat = heartbeat.min(self.api.keep_alive);
                self.next_ping = self.next_ping.min(Instant::now() + self.beat);
            }
            Turn::Over(session) if self.session.as_ref() == Some(&session) => self.session = None,
            Turn::Over(_) | Turn::Nothing => {}
        }
    }

    /// The client's software answered a ping, also where its page is hidden: a sign of life.
    fn renewal(&self, session: SessionKey) -> Renewing {
        let api = self.api.clone();
        let mut entry = self.log.begin("pong");
        entry.is_about(|| Subject::of(&session));
        Box::pin(async move {
            let outcome = renew(&api, Heartbeat::bare(session.clone())).await;
            entry.end_with(&outcome);
            (session, outcome)
        })
    }

    async fn renewed(
        &mut self,
        session: SessionKey,
        outcome: Result<(), ApiError>,
    ) -> Result<(), Closed> {
        match outcome {
            Err(error) if error.status_code() == 409 && self.session.as_ref() == Some(&session) => {
                self.session = None;
                self.api.metrics.requests.refused(error.code());
                let text = socket::text(&Stale::new(&session, error.code()));
                self.send(&[text.into()]).await
            }
            // Without an answer there is another ping.
            _ => Ok(()),
        }
    }

    /// A socket that closes without a leave removes nobody: the lease decides.
    async fn report_lost(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let mut entry = self.log.begin("disconnect");
        entry.is_about(|| Subject::of(&session));
        // Where it was not reported others see it by the missing heartbeats.
        let outcome = match self.api.presence.disconnect(session).await {
            Ok(outcome) => outcome.map_err(ApiError::from),
            Err(error) => Err(error.into()),
        };
        entry.end_with(&outcome);
    }
}
