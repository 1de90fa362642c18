//! An open socket: events out, requests in, and pings whose pongs renew the session that was joined on it.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use actix_web::ResponseError;
use actix_web::web::Data;
use actix_ws::{AggregatedMessage, CloseCode, CloseReason, Closed};
use bytestring::ByteString;
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::log::Log;
use super::request::{Turn, answer};
use crate::domain::{Heartbeat, RoomId, SessionKey};
use crate::http::access_log::Subject;
use crate::http::members::renew;
use crate::http::{Access, Api, ApiError};
use crate::stream::{Batch, Subscription};
use crate::wire::socket::{self, Stale};

/// How long a client may not take what it is sent before it is cut off.
const STALL: Duration = Duration::from_secs(30);

type Answering = Pin<Box<dyn Future<Output = (ByteString, Turn)>>>;
type Renewing = Pin<Box<dyn Future<Output = (SessionKey, Result<(), ApiError>)>>>;

pub(super) struct Connection {
    api: Data<Api>,
    access: Access,
    /// The socket is closed with the credential that opened it.
    credential_ends: Option<Instant>,
    room_id: RoomId,
    out: actix_ws::Session,
    log: Log,
    /// The session that was joined on this socket.
    session: Option<SessionKey>,
    next_ping: Instant,
    /// Between two pings.
    beat: Duration,
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

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

impl Connection {
    pub(super) fn new(
        api: Data<Api>,
        access: Access,
        room_id: RoomId,
        out: actix_ws::Session,
        log: Log,
    ) -> Self {
        Self {
            next_ping: Instant::now() + api.keep_alive,
            beat: api.keep_alive,
            credential_ends: access.expires_in().map(|left| Instant::now() + left),
            access,
            api,
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
        mut inward: actix_ws::AggregatedMessageStream,
    ) {
        let mut answering: Option<Answering> = None;
        let mut renewing: Option<Renewing> = None;
        let mut close = None;
        let drain = self.api.drain.clone();
        let mut draining = pin!(drain.turn());
        let mut is_open = self.send(snapshot.messages()).await.is_ok();
        while is_open {
            let step = tokio::select! {
                batch = subscription.next() => match batch {
                    Some(batch) => {
                        self.send(batch.messages()).await
                    }
                    None => {
                        close = Some(CloseReason::from(CloseCode::Restart));
                        break;
                    }
                },
                (text, turn) = maybe(&mut answering) => {
                    self.turn(turn);
                    self.send(&[text]).await
                }
                (session, outcome) = maybe(&mut renewing) => self.renewed(session, outcome).await,
                // One request at a time, in their order: the next is not read before.
                message = inward.next(), if answering.is_none() => match message {
                    Some(Ok(AggregatedMessage::Text(text))) => {
                        answering = Some(Box::pin(answer(self.api.clone(), self.access.clone(), self.room_id.clone(), text, self.log.begin("unknown"))));
                        Ok(())
                    }
                    Some(Ok(AggregatedMessage::Binary(_))) => {
                        close = Some(CloseReason::from(CloseCode::Unsupported));
                        break;
                    }
                    Some(Ok(AggregatedMessage::Ping(data))) => self.out.pong(&data).await,
                    Some(Ok(AggregatedMessage::Pong(_))) => {
                        if renewing.is_none() {
                            renewing = self.session.clone().map(|session| self.renewal(session));
                        }
                        Ok(())
                    }
                    Some(Ok(AggregatedMessage::Close(reason))) => {
                        close = reason;
                        break;
                    }
                    Some(Err(_)) | None => break,
                },
                () = &mut draining => {
                    close = Some(CloseReason::from(CloseCode::Restart));
                    break;
                }
                () = until(self.credential_ends) => {
                    close = Some(CloseReason::from(CloseCode::Policy));
                    break;
                }
                () = sleep_until(self.next_ping) => {
                    self.next_ping = Instant::now() + self.beat;
                    self.out.ping(b"").await
                }
            };
            is_open = step.is_ok();
        }
        drop(subscription);
        // A join that is under way is of somebody who is gone already.
        if let Some(answering) = answering {
            let (_, turn) = answering.await;
            self.turn(turn);
        }
        self.report_lost().await;
        let _ = timeout(STALL, self.out.close(close)).await;
    }

    async fn send(&mut self, texts: &[ByteString]) -> Result<(), Closed> {
        for text in texts {
            timeout(STALL, self.out.text(text.clone()))
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
