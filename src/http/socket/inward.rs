//! What a client sends, within bounds: a message that is somewhat too large is answered, a larger one ends the socket.

use std::cell::Cell;
use std::io::ErrorKind;
use std::rc::Rc;

use actix_http::ws::ProtocolError;
use actix_web::dev;
use actix_web::error::PayloadError;
use actix_web::web::{Bytes, Payload};
use actix_web::{FromRequest, HttpRequest};
use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, MessageStream};
use futures_util::StreamExt;

use crate::http::ApiError;

/// Messages of up to so many times the largest that may be sent are read, and answered 413.
const READ_FOR_AN_ANSWER: usize = 4;

/// What the server may have read ahead, beyond the message that is read.
const READ_AHEAD: usize = 65_536;

/// The messages of a client.
pub(super) struct Inward {
    messages: AggregatedMessageStream,
    /// Since the last message.
    bytes: Rc<Cell<usize>>,
}

/// Counts what is read since the last message: a frame is otherwise kept as a whole, however large.
pub(super) struct Meter {
    bytes: Rc<Cell<usize>>,
    limit: usize,
}

impl Meter {
    /// With the payload that it counts.
    pub(super) async fn attach(
        request: &HttpRequest,
        payload: Payload,
        max_message_bytes: usize,
    ) -> Result<(Self, Payload), ApiError> {
        let bytes = Rc::new(Cell::new(0_usize));
        let limit = max_message_bytes * READ_FOR_AN_ANSWER;
        let read = Rc::clone(&bytes);
        let counted = payload.map(move |chunk: Result<Bytes, PayloadError>| {
            let chunk = chunk?;
            read.set(read.get().saturating_add(chunk.len()));
            match read.get() > limit + READ_AHEAD {
                true => Err(PayloadError::Overflow),
                false => Ok(chunk),
            }
        });
        let mut counted = dev::Payload::from(counted.boxed_local());
        let payload = Payload::from_request(request, &mut counted)
            .await
            .map_err(|error| ApiError::invalid(format!("no WebSocket handshake: {error}")))?;
        Ok((Self { bytes, limit }, payload))
    }

    /// The messages in it.
    pub(super) fn messages(self, messages: MessageStream) -> Inward {
        Inward {
            messages: messages
                .max_frame_size(self.limit)
                .aggregate_continuations()
                .max_continuation_size(self.limit),
            bytes: self.bytes,
        }
    }
}

impl Inward {
    /// The next message, or how to end the socket; `None` where there is nobody to tell.
    pub(super) async fn next(&mut self) -> Result<AggregatedMessage, Option<CloseCode>> {
        let message = self.messages.next().await.ok_or(None)?;
        let message = message.map_err(|error| match error {
            ProtocolError::Overflow => Some(CloseCode::Size),
            ProtocolError::Io(error) if error.kind() == ErrorKind::InvalidData => {
                Some(CloseCode::Invalid)
            }
            // Of a connection that failed nobody is there to hear it.
            ProtocolError::Io(_) => Some(CloseCode::Size),
            _ => Some(CloseCode::Protocol),
        })?;
        self.bytes.set(0);
        Ok(message)
    }
}
