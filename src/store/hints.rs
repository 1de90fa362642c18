//! Hints between instances: which rooms changed, by NOTIFY, after the commit and from connections of their own.
//!
//! NOTIFY takes a lock of the whole database at commit, so it has no place in a
//! transaction that changes membership. A hint may be lost: it only makes
//! another instance look sooner than it would.

use std::io;
use std::time::Duration;

use rand::random;
use sqlx::postgres::PgListener;
use sqlx::{Acquire, Connection, Error};
use tokio::time::timeout;

use super::connector::Connector;
use super::pool::{Connections, in_time};
use super::{DatabaseSettings, StoreError};
use crate::domain::RoomId;

const CHANNEL: &str = "leasehold_rooms";

/// Postgres refuses a payload of 8,000 bytes.
const MAX_PAYLOAD_BYTES: usize = 7_999;

/// A listener that has heard nothing for so long is asked whether it lives: a connection that dies in
/// silence looks like one on which nothing happens.
const QUIET: Duration = Duration::from_secs(3);

/// How long it may take to show that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// One connection to send and one to listen.
#[derive(Clone)]
pub struct Hints {
    sending: Connections,
    connector: Connector,
    /// The first line of every payload, by which an instance knows its own.
    sender: String,
}

/// Hears what other instances send.
pub struct HintListener {
    listener: PgListener,
    sender: String,
}

impl Hints {
    /// Prepares the connections; they are made when they are first needed.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] where the address cannot be read.
    pub fn new(settings: &DatabaseSettings) -> Result<Self, StoreError> {
        let timeout_ms = settings.timeout.as_millis().to_string();
        let connector = settings.connector(&[
            // A lost hint is no loss: do not wait for the disk.
            ("synchronous_commit", "off"),
            ("statement_timeout", &timeout_ms),
            ("lock_timeout", "0"),
            ("idle_in_transaction_session_timeout", &timeout_ms),
        ])?;
        Ok(Self {
            sending: Connections::new(connector.clone(), 1, settings.timeout, settings.timeout),
            connector,
            sender: format!("{:016x}", random::<u64>()),
        })
    }

    /// Tells the other instances, in one transaction of its own.
    ///
    /// # Errors
    /// Where they were not told.
    pub async fn send(&self, rooms: impl IntoIterator<Item = RoomId>) -> Result<(), StoreError> {
        let payloads = payloads(&self.sender, rooms);
        sqlx::query!(
            r#"select pg_notify($1, payload) as "sent!: ()" from unnest($2::text[]) as payload"#,
            CHANNEL,
            &payloads,
        )
        .execute(&self.sending)
        .await?;
        Ok(())
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub async fn listen(&self) -> Result<HintListener, StoreError> {
        let starting = async {
            let mut listener = self.connector.listener().await?;
            // Then it is for the caller to listen anew, and to know that it has missed something.
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok(listener)
        };
        Ok(HintListener {
            listener: in_time(SIGN_OF_LIFE, "no connection", starting).await?,
            sender: self.sender.clone(),
        })
    }

    /// Closes the connection that sends; that of a listener is closed when it is dropped.
    pub async fn close(&self) {
        self.sending.close().await;
    }
}

impl HintListener {
    /// Waits for a hint of another instance: the rooms that changed. Between hints the connection is
    /// idle, in no transaction, and asked for a sign of life.
    ///
    /// # Errors
    /// Where the connection is lost: listen anew.
    pub async fn heard(&mut self) -> Result<Vec<RoomId>, StoreError> {
        loop {
            match timeout(QUIET, self.listener.try_recv()).await {
                Ok(Ok(Some(notification))) => {
                    if let Some(rooms) = rooms(&self.sender, notification.payload()) {
                        return Ok(rooms);
                    }
                }
                Ok(Ok(None)) => {
                    let lost = io::Error::from(io::ErrorKind::ConnectionReset);
                    return Err(Error::Io(lost).into());
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    let asking = async { self.listener.acquire().await?.ping().await };
                    in_time(SIGN_OF_LIFE, "no sign of life", asking).await?;
                }
            }
        }
    }
}

/// The sender's line and then a line per room, as many rooms to a payload as fit.
/// No id holds a line break.
fn payloads(sender: &str, rooms: impl IntoIterator<Item = RoomId>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for room in rooms {
        let room = room.as_str();
        match payloads.last_mut() {
            Some(last) if last.len() + 1 + room.len() <= MAX_PAYLOAD_BYTES => {
                last.push('\n');
                last.push_str(room);
            }
            _ => payloads.push(format!("{sender}\n{room}")),
        }
    }
    payloads
}

/// The rooms of a payload of somebody else's; what is no id is left out.
fn rooms(own: &str, payload: &str) -> Option<Vec<RoomId>> {
    let (sender, rooms) = payload.split_once('\n')?;
    (sender != own).then(|| {
        rooms
            .split('\n')
            .filter_map(|id| RoomId::parse(id).ok())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_split_below_8000_bytes_and_read_back_whole() {
        let sent: Vec<RoomId> = (0..100)
            .map(|n| RoomId::parse(format!("{n:0>3}{}", "\u{10348}".repeat(253))).unwrap())
            .collect();
        let payloads = payloads("me", sent.clone());
        assert!(payloads.len() > 1);
        assert!(payloads.iter().all(|payload| payload.len() < 8_000));
        let read: Vec<RoomId> = payloads
            .iter()
            .flat_map(|payload| rooms("another", payload).unwrap())
            .collect();
        assert_eq!(read, sent);
    }

    #[test]
    fn an_instance_does_not_hear_itself() {
        let payload = &payloads("me", [RoomId::parse("a").unwrap()])[0];
        assert_eq!(rooms("me", payload), None);
    }
}
