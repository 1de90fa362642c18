//! The other end of a connection: whether it is still there, and cut off where it takes nothing.
//!
//! The server writes what it is given and waits for as long as that takes, and passes on no end of what
//! it reads. So a reader that is gone, or does not read, is noticed here, below it.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::rt::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::crowd::Place;

/// The server spins where it comes by in vain so often in so short a time: it does once a client that
/// sends request after request, without waiting for answers, has filled what is read ahead.
const SPIN: (u32, Duration) = (1_000, Duration::from_millis(100));

/// What is known of the other end, for what is streamed to it.
#[derive(Debug, Default)]
pub(super) struct Peer {
    has_left: Cell<bool>,
    is_behind: Cell<bool>,
    streams_until: Cell<Option<Instant>>,
}

impl Peer {
    /// Whoever asks.
    pub(super) fn of(request: &HttpRequest) -> Rc<Self> {
        request.conn_data::<Rc<Self>>().cloned().unwrap_or_default()
    }

    /// It closed its side. Whoever asks a question may do so and still wait for the answer; the reader of
    /// a stream, which has no end, is gone.
    pub(super) fn has_left(&self) -> bool {
        self.has_left.get()
    }

    /// It has not yet taken what it was sent.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.get()
    }

    /// From then on the connection is cut where the peer does not take what it is sent; `None` for not
    /// before it stalls.
    pub(super) fn stream_until(&self, end: Option<Instant>) {
        self.streams_until.set(end);
    }
}

/// A connection that ends with an error where its peer takes nothing for too long.
pub(super) struct PeerStream {
    tcp: TcpStream,
    peer: Rc<Peer>,
    /// How long the peer may take nothing.
    patience: Duration,
    /// Until when it must take something; only while it does not.
    cut: Option<Pin<Box<Sleep>>>,
    /// How often the server has come by since then without anything read or written.
    in_vain: (u32, Instant),
    _place: Place,
}

impl PeerStream {
    pub(super) fn new(tcp: TcpStream, place: Place, patience: Duration) -> Self {
        Self {
            tcp,
            peer: Rc::default(),
            patience,
            cut: None,
            in_vain: (0, Instant::now()),
            _place: place,
        }
    }

    pub(super) fn peer(&self) -> &Rc<Peer> {
        &self.peer
    }

    fn came_in_vain(&mut self) -> Result<()> {
        let (often, quickly) = SPIN;
        if self.in_vain.0 == 0 {
            self.in_vain.1 = Instant::now();
        }
        self.in_vain.0 += 1;
        if self.in_vain.0 < often {
            return Ok(());
        }
        self.in_vain.0 = 0;
        if self.in_vain.1.elapsed() > quickly {
            return Ok(());
        }
        tracing::debug!("a peer was cut off that did not wait for its answers");
        self.tcp.set_zero_linger()?;
        Err(Error::from(ErrorKind::ConnectionAborted))
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let this = self.get_mut();
        let (room, before) = (buffer.remaining(), buffer.filled().len());
        ready!(Pin::new(&mut this.tcp).poll_read(context, buffer))?;
        this.in_vain.0 = 0;
        if room > 0 && buffer.filled().len() == before {
            this.peer.has_left.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.tcp).poll_write(context, bytes);
        this.peer.is_behind.set(attempt.is_pending());
        if attempt.is_ready() {
            this.cut = None;
            this.in_vain.0 = 0;
            return attempt;
        }
        this.came_in_vain()?;
        let cut = this.cut.get_or_insert_with(|| {
            let stalled = Instant::now() + this.patience;
            let end = this.peer.streams_until.get();
            Box::pin(sleep_until(end.map_or(stalled, |end| end.min(stalled))))
        });
        ready!(cut.as_mut().poll(context));
        tracing::debug!("a peer was cut off that did not take what it was sent");
        // What it did not take is not kept for it any longer.
        this.tcp.set_zero_linger()?;
        Poll::Ready(Err(Error::from(ErrorKind::TimedOut)))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        this.came_in_vain()?;
        Pin::new(&mut this.tcp).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(context)
    }
}
