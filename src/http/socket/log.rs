//! A log line for each message of a socket, in the form of those for requests.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use actix_web::{HttpRequest, ResponseError};
use tracing::Level;

use crate::http::ApiError;
use crate::http::access_log::{Line, Subject, id_of};
use crate::http::client_address::client_address;

/// The lines of one socket; cheap to clone.
#[derive(Clone)]
pub(super) struct Log(Rc<Opened>);

/// What the lines of a socket have in common.
struct Opened {
    request_id: String,
    client: Option<IpAddr>,
    path: String,
    messages: Cell<u64>,
}

/// The line of a message that is under way.
pub(super) struct Entry {
    log: Log,
    number: u64,
    message: &'static str,
    subject: Option<Subject>,
    began: Instant,
}

impl Log {
    pub(super) fn new(request: &HttpRequest) -> Self {
        Self(Rc::new(Opened {
            request_id: id_of(request),
            client: client_address(request),
            path: request.path().to_owned(),
            messages: Cell::new(0),
        }))
    }

    /// A message came; what it asks for is known when it is read.
    pub(super) fn begin(&self, message: &'static str) -> Entry {
        let number = self.0.messages.get() + 1;
        self.0.messages.set(number);
        Entry {
            log: self.clone(),
            number,
            message,
            subject: None,
            began: Instant::now(),
        }
    }
}

impl Entry {
    /// What it asks for: a word of ours, never the client's.
    pub(super) fn asks_for(&mut self, message: &'static str) {
        self.message = message;
    }

    /// Whom it is about.
    pub(super) fn is_about(&mut self, subject: impl FnOnce() -> Subject) {
        if tracing::enabled!(Level::INFO) {
            self.subject = Some(subject());
        }
    }

    /// Writes the line.
    pub(super) fn end(self, status: u16, error: Option<&ApiError>) {
        if !tracing::enabled!(Level::INFO) {
            return;
        }
        let opened = &*self.log.0;
        let line = Line {
            request_id: &format!("{}/{}", opened.request_id, self.number),
            client: opened.client,
            method: "GET",
            path: &opened.path,
            message: Some(self.message),
            subject: self.subject.as_ref(),
            status,
            outcome: error.map_or("ok", |error| error.code().as_str()),
            took: self.began.elapsed(),
        };
        line.write();
    }

    /// Writes the line of what is answered with nothing else.
    pub(super) fn end_with(self, outcome: &Result<(), ApiError>) {
        match outcome {
            Ok(()) => self.end(204, None),
            Err(error) => self.end(error.status_code().as_u16(), Some(error)),
        }
    }
}
