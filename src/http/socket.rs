//! The same events over a WebSocket, and inwards what a member does.
//!
//! A message in: `{"type": "join" | "heartbeat" | "cursor" | "leave", "requestId": …}`
//! with the fields of the HTTP body. Its answer: `{"type": "answer", "requestId": …,
//! "status": …, "body": …}` with the status and body of the HTTP answer. They
//! are answered one after the other.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use actix_web::http::header;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use actix_ws::{AggregatedMessage, CloseCode, CloseReason, Closed};
use bytestring::ByteString;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::event_json::messages;
use super::members::{
    JoinAnswer, depart, read_cursor, read_heartbeat, read_join, read_session, renew,
};
use super::request::{RoomPath, parse};
use super::{Access, Api, ApiError};
use crate::domain::{DeviceId, RoomId, UserId};
use crate::store::{Disconnect, Heartbeat};
use crate::stream::Subscription;

/// How long a client may not take what it is sent before it is cut off.
const PATIENCE: Duration = Duration::from_secs(30);

/// Take part in a room over a WebSocket
///
/// The events as messages, and inwards what a member does; docs/live.md says how.
#[utoipa::path(
    get,
    path = "/rooms/{roomId}/socket",
    tag = "live",
    params(("roomId" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 101, description = "The WebSocket is open"))
)]
pub async fn socket(
    api: Data<Api>,
    access: Access,
    request: HttpRequest,
    payload: Payload,
    RoomPath(room_id): RoomPath,
) -> Result<HttpResponse, ApiError> {
    access.may_read(&room_id)?;
    if !request.headers().contains_key(header::UPGRADE) {
        return Err(ApiError::invalid(
            "this address is a WebSocket; for server-sent events ask for /events",
        ));
    }
    let subscription = api.live.subscribe(&room_id)?;
    let (response, out, inward) = actix_ws::handle(&request, payload)
        .map_err(|error| ApiError::invalid(format!("no WebSocket handshake: {error}")))?;
    let inward = inward
        .max_frame_size(api.body_limit)
        .aggregate_continuations()
        .max_continuation_size(api.body_limit);
    let connection = Connection {
        next_ping: Instant::now() + api.keep_alive,
        beat: api.keep_alive,
        credential_ends: access.expires_in().map(|left| Instant::now() + left),
        access,
        api,
        room_id,
        out,
        session: None,
    };
    actix_web::rt::spawn(connection.run(subscription, inward));
    Ok(response)
}

/// The session that was joined on this socket.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    user_id: UserId,
    device_id: DeviceId,
    epoch: i64,
}

impl From<&Heartbeat> for Session {
    fn from(heartbeat: &Heartbeat) -> Self {
        Self {
            user_id: heartbeat.user_id.clone(),
            device_id: heartbeat.device_id.clone(),
            epoch: heartbeat.epoch,
        }
    }
}

/// What a request changes for the socket.
enum Turn {
    Joined(Session, Duration),
    /// Left, or found to be stale.
    Over(Session),
    Nothing,
}

type Answering = Pin<Box<dyn Future<Output = (ByteString, Turn)>>>;
type Renewing = Pin<Box<dyn Future<Output = (Session, Result<(), ApiError>)>>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    r#type: Option<String>,
    #[serde(default)]
    request_id: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    r#type: &'static str,
    request_id: Value,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
}

struct Connection {
    api: Data<Api>,
    access: Access,
    /// The socket is closed with the credential that opened it.
    credential_ends: Option<Instant>,
    room_id: RoomId,
    out: actix_ws::Session,
    session: Option<Session>,
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
    async fn run(
        mut self,
        mut subscription: Subscription,
        mut inward: actix_ws::AggregatedMessageStream,
    ) {
        let mut answering: Option<Answering> = None;
        let mut renewing: Option<Renewing> = None;
        let mut close = None;
        loop {
            let step = tokio::select! {
                batch = subscription.next() => match batch {
                    Some(batch) => {
                        let leases = self.api.leases;
                        let texts = messages(&self.room_id, &batch, &leases);
                        self.send(texts).await
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
                        answering = Some(Box::pin(answer(self.api.clone(), self.access.clone(), self.room_id.clone(), text)));
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
                () = until(self.credential_ends) => {
                    close = Some(CloseReason::from(CloseCode::Policy));
                    break;
                }
                () = sleep_until(self.next_ping) => {
                    self.next_ping = Instant::now() + self.beat;
                    self.out.ping(b"").await
                }
            };
            if step.is_err() {
                break;
            }
        }
        drop(subscription);
        // A join that is under way is of somebody who is gone already.
        if let Some(answering) = answering {
            let (_, turn) = answering.await;
            self.turn(turn);
        }
        self.report_lost().await;
        let _ = timeout(PATIENCE, self.out.close(close)).await;
    }

    async fn send(&mut self, texts: &[ByteString]) -> Result<(), Closed> {
        for text in texts {
            timeout(PATIENCE, self.out.text(text.clone()))
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
    fn renewal(&self, session: Session) -> Renewing {
        let api = self.api.clone();
        let heartbeat = Heartbeat {
            room_id: self.room_id.clone(),
            user_id: session.user_id.clone(),
            device_id: session.device_id.clone(),
            epoch: session.epoch,
            lease_ms: None,
            cursor: None,
            metadata: None,
        };
        Box::pin(async move { (session, renew(&api, heartbeat).await) })
    }

    async fn renewed(
        &mut self,
        session: Session,
        outcome: Result<(), ApiError>,
    ) -> Result<(), Closed> {
        match outcome {
            Err(error) if error.status_code() == 409 && self.session.as_ref() == Some(&session) => {
                self.session = None;
                let message = json!({
                    "type": "stale",
                    "userId": session.user_id.as_str(),
                    "epoch": session.epoch,
                    "code": error.code(),
                });
                self.send(&[message.to_string().into()]).await
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
        let lost = Disconnect {
            room_id: self.room_id.clone(),
            user_id: session.user_id,
            device_id: session.device_id,
            epoch: session.epoch,
        };
        if let Err(error) = self.api.presence.disconnect(lost).await {
            tracing::debug!(%error, "a lost socket was not reported; others see it by the missing heartbeats");
        }
    }
}

/// Does what a message asks for.
async fn answer(
    api: Data<Api>,
    access: Access,
    room_id: RoomId,
    text: ByteString,
) -> (ByteString, Turn) {
    let (request_id, outcome) = match parse::<Envelope>(text.as_bytes()) {
        Ok(envelope) => (
            envelope.request_id,
            perform(
                &api,
                &access,
                room_id,
                envelope.r#type.as_deref(),
                text.as_bytes(),
            )
            .await,
        ),
        Err(error) => (Value::Null, (Err(error), Turn::Nothing)),
    };
    let (outcome, turn) = outcome;
    let (status, body) = match outcome {
        Ok(Some(body)) => (200, Some(body)),
        Ok(None) => (204, None),
        Err(error) => (
            error.status_code().as_u16(),
            Some(json!({ "error": error.to_string(), "code": error.code() })),
        ),
    };
    let answer = Answer {
        r#type: "answer",
        request_id,
        status,
        body,
    };
    let text = serde_json::to_string(&answer).expect("texts and numbers");
    (text.into(), turn)
}

type Performed = (Result<Option<Value>, ApiError>, Turn);

async fn perform(
    api: &Api,
    access: &Access,
    room_id: RoomId,
    kind: Option<&str>,
    text: &[u8],
) -> Performed {
    let read = match kind {
        Some("join") => return join(api, access, room_id, text).await,
        Some("heartbeat") => parse(text).and_then(|body| read_heartbeat(api, room_id, body)),
        Some("cursor") => parse(text).and_then(|body| read_cursor(api, room_id, body)),
        Some("leave") => parse(text).and_then(|body| read_session(room_id, body)),
        _ => Err(ApiError::invalid(
            "type must be join, heartbeat, cursor or leave",
        )),
    };
    let allowed = read.and_then(|heartbeat| {
        access.may_act_as(&heartbeat.user_id, &heartbeat.room_id)?;
        Ok(heartbeat)
    });
    let heartbeat = match allowed {
        Ok(heartbeat) => heartbeat,
        Err(error) => return (Err(error), Turn::Nothing),
    };
    let session = Session::from(&heartbeat);
    let is_leave = kind == Some("leave");
    let outcome = match is_leave {
        true => depart(api, heartbeat).await,
        false => renew(api, heartbeat).await,
    };
    let turn = match &outcome {
        Ok(()) if is_leave => Turn::Over(session),
        Err(error) if error.status_code() == 409 => Turn::Over(session),
        _ => Turn::Nothing,
    };
    (outcome.map(|()| None), turn)
}

async fn join(api: &Api, access: &Access, room_id: RoomId, text: &[u8]) -> Performed {
    match try_join(api, access, room_id, text).await {
        Ok((body, session, heartbeat)) => (Ok(Some(body)), Turn::Joined(session, heartbeat)),
        Err(error) => (Err(error), Turn::Nothing),
    }
}

async fn try_join(
    api: &Api,
    access: &Access,
    room_id: RoomId,
    text: &[u8],
) -> Result<(Value, Session, Duration), ApiError> {
    let join = read_join(api, room_id, parse(text)?)?;
    access.may_act_as(&join.user_id, &join.room_id)?;
    let (room_id, lease_ms) = (join.room_id.clone(), join.lease_ms);
    let (user_id, device_id) = (join.user_id.clone(), join.device_id.clone());
    let joined = api.presence.join(join).await??;
    let answer = JoinAnswer::new(api, (&room_id, &user_id, &device_id), lease_ms, &joined);
    let body = serde_json::to_value(answer).expect("texts and numbers");
    let heartbeat = Duration::from_millis(api.leases.heartbeat_ms(lease_ms).into());
    let session = Session {
        user_id,
        device_id,
        epoch: joined.epoch,
    };
    Ok((body, session, heartbeat))
}
