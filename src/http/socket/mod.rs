//! The same events over a WebSocket, and inwards what a member does.
//!
//! A message in: `{"type": "join" | "heartbeat" | "cursor" | "leave", "requestId": …}`
//! with the fields of the HTTP body, `subscribe` and `unsubscribe`, or `authenticate` with a fresh `token`. Its answer: `{"type": "answer", "requestId": …,
//! "status": …, "body": …}` with the status and body of the HTTP answer. They
//! are answered one after the other.

mod connection;
mod contacts;
mod handshake;
mod inward;
mod log;
mod request;
mod sessions;

pub(crate) use handshake::{__path_open_socket, __path_socket, open_socket, socket};
pub use sessions::Holders;
