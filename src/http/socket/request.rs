//! What a message asks for: it is done as over HTTP, and answered with the same status and body.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::ResponseError;
use actix_web::web::Data;
use bytestring::ByteString;
use serde_json::Value;

use super::contacts::MAX_CONTACTS;
use super::log::Entry;
use super::sessions::{MAX_SESSIONS, Sessions};
use crate::domain::{Heartbeat, Located, RoomId, SessionKey, UserId, View};
use crate::http::access_log::Subject;
use crate::http::admission::require_reader;
use crate::http::auth::Gate;
use crate::http::events::first;
use crate::http::members::{depart, renew};
use crate::http::{Access, Api, ApiError};
use crate::stream::{Batch, Client, MAX_ROOMS, Subscriptions};
use crate::wire::socket::{self, Answer, Authenticate, Refusal, Request};
use crate::wire::{CursorBody, HeartbeatBody, JoinAnswer, JoinBody, SessionBody, parse, view};

/// What a request changes for the socket.
pub(super) enum Turn {
    /// It goes on with this credential.
    Authenticated(Access),
    /// It follows another room, which looks like this.
    Follows(Arc<Batch>),
    /// It follows these people, and nobody else.
    LooksFor(Vec<Located>),
    Nothing,
}

/// With the body of the answer, where it has one.
type Done = Result<(Option<Value>, Turn), ApiError>;

/// Who asks, and what there is to answer from; a copy for each message.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) api: Data<Api>,
    pub(super) gate: Data<Gate>,
    pub(super) access: Access,
    pub(super) client: Client,
    /// The room of those requests that name none.
    pub(super) room_id: Option<RoomId>,
    pub(super) sessions: Sessions,
    pub(super) subscriptions: Rc<RefCell<Subscriptions>>,
}

impl Asker {
    /// Does what a message asks for.
    pub(super) async fn answer(self, text: ByteString, mut entry: Entry) -> (ByteString, Turn) {
        let request = parse::<Request>(text.as_bytes());
        let request_id = match &request {
            Ok(request) => request.request_id.clone(),
            Err(_) => Value::Null,
        };
        let done = match (self.admit(&text), request) {
            (Err(refused), _) => Err(refused),
            (_, Err(error)) => Err(error.into()),
            (Ok(()), Ok(request)) => self.perform(request, text.as_bytes(), &mut entry).await,
        };
        let (status, body, turn) = match done {
            Ok((body, turn)) => {
                let status = if body.is_some() { 200 } else { 204 };
                entry.end(status, None);
                (status, body, turn)
            }
            Err(error) => {
                let status = error.status_code().as_u16();
                self.api.metrics.requests.refused(error.code());
                entry.end(status, Some(&error));
                (status, Some(refusal(&error)), Turn::Nothing)
            }
        };
        let answer = socket::text(&Answer::new(request_id, status, body));
        (answer.into(), turn)
    }

    /// A message is a request of its client, and no larger than one.
    fn admit(&self, text: &str) -> Result<(), ApiError> {
        self.gate.admit_message(&self.client)?;
        match self.api.max_message_bytes {
            limit if text.len() > limit => Err(ApiError::too_large(limit)),
            _ => Ok(()),
        }
    }

    /// The room that a request names, or else the socket's.
    fn room(&self, request: &Request) -> Result<RoomId, ApiError> {
        match (request.room()?, &self.room_id) {
            (Some(room_id), _) => Ok(room_id),
            (None, Some(room_id)) => Ok(room_id.clone()),
            (None, None) => Err(ApiError::invalid("roomId is required on this socket")),
        }
    }

    async fn perform(&self, request: Request, text: &[u8], entry: &mut Entry) -> Done {
        let room = || self.room(&request);
        let rules = &self.api.fields;
        match request.r#type.as_deref() {
            Some("join") => {
                entry.asks_for("join");
                self.join(room()?, parse(text)?, entry).await
            }
            Some("heartbeat") => {
                entry.asks_for("heartbeat");
                let body: HeartbeatBody = parse(text)?;
                self.renew(body.read(room()?, rules)?, entry).await
            }
            Some("cursor") => {
                entry.asks_for("cursor");
                let body: CursorBody = parse(text)?;
                self.renew(body.read(room()?, rules)?, entry).await
            }
            Some("leave") => {
                entry.asks_for("leave");
                let body: SessionBody = parse(text)?;
                self.leave(body.read(room()?)?, entry).await
            }
            Some("subscribe") => {
                entry.asks_for("subscribe");
                if let Some(users) = request.users()? {
                    return self.look_for(users).await;
                }
                self.subscribe(&room()?, view(request.view.as_deref())?)
                    .await
            }
            Some("unsubscribe") => {
                entry.asks_for("unsubscribe");
                let room_id = room()?;
                let mut subscriptions = self.subscriptions.borrow_mut();
                subscriptions.retain(|followed| *followed != room_id);
                Ok((None, Turn::Nothing))
            }
            Some("authenticate") => {
                entry.asks_for("authenticate");
                self.authenticate(parse(text)?)
            }
            _ => Err(ApiError::invalid(
                "type must be join, heartbeat, cursor, leave, subscribe, unsubscribe or authenticate",
            )),
        }
    }

    async fn join(&self, room_id: RoomId, body: JoinBody, entry: &mut Entry) -> Done {
        let join = body.read(room_id, &self.api.fields)?;
        entry.is_about(|| Subject::new(&join.room_id, &join.user_id, None));
        self.access.may_act_as(&join.user_id, &join.room_id)?;
        let join = self.access.vouch(join)?;
        if self.sessions.is_full() {
            return Err(ApiError::invalid(format!(
                "a socket holds at most {MAX_SESSIONS} sessions; open another"
            )));
        }
        let joined = self.api.presence.join(join.clone()).await??;
        entry.is_about(|| Subject::new(&join.room_id, &join.user_id, Some(joined.epoch)));
        let answer = JoinAnswer::new(&join, &joined, None);
        let body = serde_json::to_value(answer).expect("texts and numbers");
        let beat = Duration::from_millis(join.lease.heartbeat_ms.into());
        let session = SessionKey {
            room_id: join.room_id,
            user_id: join.user_id,
            device_id: join.device_id,
            epoch: joined.epoch,
        };
        self.sessions.hold(session, beat);
        Ok((Some(body), Turn::Nothing))
    }

    async fn renew(&self, heartbeat: Heartbeat, entry: &mut Entry) -> Done {
        let session = heartbeat.session.clone();
        let lease = heartbeat.lease;
        entry.is_about(|| Subject::of(&session));
        self.access.may_act_for(&session)?;
        if let Err(error) = renew(&self.api, heartbeat).await {
            if error.is_of_the_session() {
                self.sessions.release(&session);
            }
            return Err(error);
        }
        let beat = match lease {
            Some(lease) => Some(lease.heartbeat_ms),
            None if self.sessions.holds(&session) => None,
            // It was joined elsewhere. Without an answer the next renewal asks again.
            None => {
                let presence = &self.api.presence;
                let asked = presence.heartbeat_interval(session.clone()).await;
                asked.ok().flatten()
            }
        };
        let is_known = self.sessions.holds(&session);
        if let Some(beat) = beat.filter(|_| is_known || !self.sessions.is_full()) {
            let beat = Duration::from_millis(beat.into());
            self.sessions.hold(session, beat);
        }
        Ok((None, Turn::Nothing))
    }

    async fn leave(&self, session: SessionKey, entry: &mut Entry) -> Done {
        entry.is_about(|| Subject::of(&session));
        self.access.may_act_for(&session)?;
        depart(&self.api, session.clone()).await?;
        self.sessions.release(&session);
        Ok((None, Turn::Nothing))
    }

    async fn subscribe(&self, room_id: &RoomId, view: View) -> Done {
        require_reader(&self.api, &self.access, room_id).await?;
        let followed = self.subscriptions.borrow().view(room_id);
        if followed == Some(view) {
            return Ok((None, Turn::Nothing));
        }
        if followed.is_none() && self.subscriptions.borrow().is_full() {
            return Err(ApiError::invalid(format!(
                "a socket follows at most {MAX_ROOMS} rooms; open another"
            )));
        }
        Ok((None, Turn::Follows(self.follow(room_id, view).await?)))
    }

    async fn look_for(&self, mut users: Vec<UserId>) -> Done {
        users.sort_unstable();
        users.dedup();
        if users.len() > MAX_CONTACTS {
            return Err(ApiError::invalid(format!(
                "a socket follows at most {MAX_CONTACTS} people; open another"
            )));
        }
        for user in &users {
            self.access.may_locate(user)?;
        }
        let found = self.api.presence.whereabouts(users).await?;
        Ok((None, Turn::LooksFor(found)))
    }

    /// Follows a room from its first snapshot on.
    pub(super) async fn follow(
        &self,
        room_id: &RoomId,
        view: View,
    ) -> Result<Arc<Batch>, ApiError> {
        let reader = self.access.reader_of(room_id).cloned();
        let client = self.client.clone();
        let mut subscription = self.api.live.subscribe(room_id, view, client, reader)?;
        let snapshot = first(&mut subscription, self.api.timeout).await?;
        let mut subscriptions = self.subscriptions.borrow_mut();
        subscriptions.add(room_id.clone(), view, subscription);
        Ok(snapshot)
    }

    /// A fresh credential of the same caller, in place of the one that the socket has.
    fn authenticate(&self, body: Authenticate) -> Done {
        let token = body.token.ok_or_else(|| {
            ApiError::invalid("token is required: a fresh credential of the same caller")
        })?;
        let access = self.gate.verify(&token)?;
        if !access.is_of_same_caller(&self.access) {
            return Err(ApiError::forbidden(
                "the token is another caller's; open another socket with it",
            ));
        }
        Ok((None, Turn::Authenticated(access)))
    }
}

fn refusal(error: &ApiError) -> Value {
    let refusal = Refusal::new(error.body(), error.retry_after());
    serde_json::to_value(refusal).expect("texts and numbers")
}
