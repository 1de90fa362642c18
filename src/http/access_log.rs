//! One log line a request, an id by which it can be found, and its metrics.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue, UPGRADE};
use actix_web::{HttpMessage, HttpRequest};
use tracing::Level;

use super::ApiError;
use super::client_address::client_address;
use super::pulse::PULSE_PATH;
use crate::domain::{RoomId, SessionKey, UserId};
use crate::telemetry::RouteMetrics;
use crate::wire::Code;

/// Taken over from the caller where it is short and plain, made up otherwise, and sent back.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Whom a request is about.
pub(crate) struct Subject {
    room: String,
    user: String,
    epoch: Option<i64>,
}

impl Subject {
    pub(crate) fn new(room: &RoomId, user: &UserId, epoch: Option<i64>) -> Self {
        Self {
            room: room.to_string(),
            user: user.to_string(),
            epoch,
        }
    }

    pub(crate) fn of(session: &SessionKey) -> Self {
        Self::new(&session.room_id, &session.user_id, Some(session.epoch))
    }
}

/// What the log says of one request, whichever way it came.
pub(crate) struct Line<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) client: Option<IpAddr>,
    pub(crate) method: &'a str,
    /// Without the query, which may hold a token.
    pub(crate) path: &'a str,
    /// What a message of a socket asked for.
    pub(crate) message: Option<&'static str>,
    pub(crate) subject: Option<&'a Subject>,
    pub(crate) status: u16,
    pub(crate) outcome: &'static str,
    pub(crate) took: Duration,
}

impl Line<'_> {
    pub(crate) fn write(&self) {
        let subject = self.subject;
        tracing::info!(
            request_id = self.request_id,
            client = self.client.map(tracing::field::display),
            method = self.method,
            path = self.path,
            socket_message = self.message,
            room = subject.map(|s| s.room.as_str()),
            user = subject.map(|s| s.user.as_str()),
            epoch = subject.and_then(|s| s.epoch),
            status = self.status,
            outcome = self.outcome,
            duration_us = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
    }
}

/// The id of a request that becomes a socket.
struct RequestId(HeaderValue);

/// By which a request is found in the log.
pub(crate) fn id_of(request: &HttpRequest) -> String {
    let extensions = request.extensions();
    let id = extensions.get::<RequestId>();
    let id = id.and_then(|id| id.0.to_str().ok());
    id.unwrap_or_default().to_owned()
}

/// Adds to the request's log line whom it is about.
pub(crate) fn note(request: &HttpRequest, room: &RoomId, user: &UserId, epoch: Option<i64>) {
    if tracing::enabled!(Level::INFO) {
        let subject = Subject::new(room, user, epoch);
        request.extensions_mut().insert(subject);
    }
}

/// The same where the request names a session.
pub(crate) fn note_session(request: &HttpRequest, session: &SessionKey) {
    note(
        request,
        &session.room_id,
        &session.user_id,
        Some(session.epoch),
    );
}

/// A request that is not yet answered.
pub(crate) struct Arrived {
    at: Instant,
    id: HeaderValue,
}

impl Arrived {
    pub(crate) fn now(request: &ServiceRequest) -> Self {
        let at = Instant::now();
        let id = request_id(request);
        // A socket's messages have lines of their own.
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(RequestId(id.clone()));
        }
        Self { at, id }
    }

    /// Logs and counts the request, and sends its id back.
    pub(crate) fn answered<B>(self, response: &mut ServiceResponse<B>) {
        // A line a second would say nothing.
        let is_pulse = response.request().path() == PULSE_PATH;
        if !is_pulse {
            let took = self.at.elapsed();
            count(response, took);
            if tracing::enabled!(Level::INFO) {
                write(response, &self.id, took);
            }
        }
        response.headers_mut().insert(REQUEST_ID, self.id);
    }
}

fn request_id(request: &ServiceRequest) -> HeaderValue {
    request
        .headers()
        .get(REQUEST_ID)
        .filter(|id| (1..=64).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic))
        .cloned()
        .unwrap_or_else(|| {
            HeaderValue::from_str(&format!("{:016x}", rand::random::<u64>()))
                .expect("hexadecimal digits are a header value")
        })
}

/// The error that was answered, where it is one of the API.
fn refusal<B>(response: &ServiceResponse<B>) -> Option<Code> {
    let error = response.response().error()?.as_error::<ApiError>()?;
    Some(error.code())
}

fn count<B>(response: &ServiceResponse<B>, took: Duration) {
    let request = response.request();
    // That of the address, or else of the whole app: for what nobody answers.
    if let Some(route) = request.app_data::<RouteMetrics>() {
        let status = response.status().as_u16();
        route.answered(request.method().as_str(), status, refusal(response), took);
    }
}

fn write<B>(response: &ServiceResponse<B>, id: &HeaderValue, took: Duration) {
    let request = response.request();
    let extensions = request.extensions();
    let subject = extensions.get::<Subject>();
    let outcome = match response.response().error() {
        Some(_) => refusal(response).map_or("error", Code::as_str),
        None => "ok",
    };
    let line = Line {
        request_id: id.to_str().unwrap_or(""),
        client: client_address(request),
        method: request.method().as_str(),
        path: request.path(),
        message: None,
        subject,
        status: response.status().as_u16(),
        outcome,
        took,
    };
    line.write();
}
