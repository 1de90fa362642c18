//! What a message asks for: it is done as over HTTP, and answered with the same status and body.

use std::time::Duration;

use actix_web::ResponseError;
use actix_web::web::Data;
use bytestring::ByteString;
use serde_json::Value;

use super::log::Entry;
use crate::domain::{Heartbeat, RoomId, SessionKey};
use crate::http::access_log::Subject;
use crate::http::members::{depart, renew};
use crate::http::{Access, Api, ApiError};
use crate::wire::socket::{self, Answer, Request};
use crate::wire::{
    CursorBody, HeartbeatBody, InvalidRequest, JoinAnswer, JoinBody, SessionBody, parse,
};

/// What a request changes for the socket.
pub(super) enum Turn {
    /// The session is this socket's from now on, and is to be heard of this often.
    Joined(SessionKey, Duration),
    /// Left, or found to be stale.
    Over(SessionKey),
    Nothing,
}

/// What a message may ask for.
const KINDS: [&str; 4] = ["join", "heartbeat", "cursor", "leave"];

/// A request about a session that is there already.
enum Asked {
    Renew(Heartbeat),
    Leave(SessionKey),
}

impl Asked {
    fn session(&self) -> &SessionKey {
        match self {
            Self::Renew(heartbeat) => &heartbeat.session,
            Self::Leave(session) => session,
        }
    }
}

/// Does what a message asks for.
pub(super) async fn answer(
    api: Data<Api>,
    access: Access,
    room_id: RoomId,
    text: ByteString,
    mut entry: Entry,
) -> (ByteString, Turn) {
    let (request_id, outcome) = match parse::<Request>(text.as_bytes()) {
        Ok(request) => (
            request.request_id,
            perform(
                &api,
                &access,
                room_id,
                request.r#type.as_deref(),
                text.as_bytes(),
                &mut entry,
            )
            .await,
        ),
        Err(error) => (Value::Null, (Err(error.into()), Turn::Nothing)),
    };
    let (outcome, turn) = outcome;
    let refusal = outcome.as_ref().err().cloned();
    let (status, body) = match outcome {
        Ok(Some(body)) => (200, Some(body)),
        Ok(None) => (204, None),
        Err(error) => {
            api.metrics.requests.refused(error.code());
            (
                error.status_code().as_u16(),
                Some(serde_json::to_value(error.body()).expect("texts and numbers")),
            )
        }
    };
    entry.end(status, refusal.as_ref());
    (
        socket::text(&Answer::new(request_id, status, body)).into(),
        turn,
    )
}

type Performed = (Result<Option<Value>, ApiError>, Turn);

async fn perform(
    api: &Api,
    access: &Access,
    room_id: RoomId,
    kind: Option<&str>,
    text: &[u8],
    entry: &mut Entry,
) -> Performed {
    let kind = kind.and_then(|kind| KINDS.iter().find(|known| **known == kind));
    if let Some(kind) = kind {
        entry.asks_for(kind);
    }
    let rules = &api.fields;
    let read =
        match kind.copied() {
            Some("join") => return join(api, access, room_id, text, entry).await,
            Some("heartbeat") => parse(text)
                .and_then(|body: HeartbeatBody| Ok(Asked::Renew(body.read(room_id, rules)?))),
            Some("cursor") => parse(text)
                .and_then(|body: CursorBody| Ok(Asked::Renew(body.read(room_id, rules)?))),
            Some("leave") => {
                parse(text).and_then(|body: SessionBody| Ok(Asked::Leave(body.read(room_id)?)))
            }
            _ => Err(InvalidRequest::new(
                "type must be join, heartbeat, cursor or leave",
            )),
        };
    let allowed = read.map_err(ApiError::from).and_then(|asked| {
        entry.is_about(|| Subject::of(asked.session()));
        access.may_act_for(asked.session())?;
        Ok(asked)
    });
    let asked = match allowed {
        Ok(asked) => asked,
        Err(error) => return (Err(error), Turn::Nothing),
    };
    let session = asked.session().clone();
    let (outcome, is_over) = match asked {
        Asked::Renew(heartbeat) => (renew(api, heartbeat).await, false),
        Asked::Leave(session) => (depart(api, session).await, true),
    };
    let turn = match &outcome {
        Ok(()) if is_over => Turn::Over(session),
        Err(error) if error.status_code() == 409 => Turn::Over(session),
        _ => Turn::Nothing,
    };
    (outcome.map(|()| None), turn)
}

async fn join(
    api: &Api,
    access: &Access,
    room_id: RoomId,
    text: &[u8],
    entry: &mut Entry,
) -> Performed {
    match try_join(api, access, room_id, text, entry).await {
        Ok((body, turn)) => (Ok(Some(body)), turn),
        Err(error) => (Err(error), Turn::Nothing),
    }
}

async fn try_join(
    api: &Api,
    access: &Access,
    room_id: RoomId,
    text: &[u8],
    entry: &mut Entry,
) -> Result<(Value, Turn), ApiError> {
    let join = parse::<JoinBody>(text)?.read(room_id, &api.fields)?;
    entry.is_about(|| Subject::new(&join.room_id, &join.user_id, None));
    access.may_act_as(&join.user_id, &join.room_id)?;
    let join = access.vouch(join)?;
    let joined = api.presence.join(join.clone()).await??;
    entry.is_about(|| Subject::new(&join.room_id, &join.user_id, Some(joined.epoch)));
    let answer = JoinAnswer::new(&join, &joined, None);
    let body = serde_json::to_value(answer).expect("texts and numbers");
    let heartbeat = Duration::from_millis(join.lease.heartbeat_ms.into());
    let session = SessionKey {
        room_id: join.room_id,
        user_id: join.user_id,
        device_id: join.device_id,
        epoch: joined.epoch,
    };
    Ok((body, Turn::Joined(session, heartbeat)))
}
