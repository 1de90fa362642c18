//! A network between the service and Postgres, which fails as networks do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// What each piece of a slow answer waits for.
const SLOW: Duration = Duration::from_millis(30);

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    /// Nothing that is sent arrives, ever.
    Silent,
    /// Whoever sends `LISTEN` is cut off.
    Deaf,
    /// Nothing arrives until it is open again; then everything does.
    Stalled,
    /// Everything arrives late.
    Slow,
    /// Connections end, and new ones too.
    Cut,
    /// Postgres is no longer heard, and hears on.
    HalfClosed,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    ToServer,
    ToClient,
}

/// Forwards connections until it is told otherwise; ends with the test's runtime.
pub struct Proxy {
    pub url: String,
    state: watch::Sender<State>,
    attempts: Arc<AtomicUsize>,
    target: Arc<Mutex<Url>>,
}

impl Proxy {
    /// In front of this database.
    pub async fn to(database_url: &str) -> Self {
        let url = Url::parse(database_url).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, watched) = watch::channel(State::Open);
        let path = url.path().to_owned();
        let target = Arc::new(Mutex::new(url));
        let current = Arc::clone(&target);
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let target = current.lock().unwrap().clone();
                tokio::spawn(forward(client, target, watched.clone()));
            }
        });
        Self {
            url: format!("postgres://postgres@127.0.0.1:{port}{path}"),
            state,
            attempts,
            target,
        }
    }

    /// How often somebody has connected, whatever came of it.
    pub fn attempts(&self) -> usize {
        self.attempts.load(Ordering::Relaxed)
    }

    /// From now on new connections go to this server.
    pub fn redirect(&self, database_url: &str) {
        *self.target.lock().unwrap() = Url::parse(database_url).unwrap();
    }

    /// From now on nothing that is sent arrives, on connections old and new.
    pub fn silence(&self) {
        self.state.send_replace(State::Silent);
    }

    /// From now on nobody can start to listen.
    pub fn deafen(&self) {
        self.state.send_replace(State::Deaf);
    }

    /// What is sent from now on arrives when it is open again.
    pub fn stall(&self) {
        self.state.send_replace(State::Stalled);
    }

    /// What is sent from now on arrives late.
    pub fn slow(&self) {
        self.state.send_replace(State::Slow);
    }

    /// Ends all connections; new ones end at once.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Ends one half of all connections: what Postgres says is no longer heard.
    pub fn half_close(&self) {
        self.state.send_replace(State::HalfClosed);
    }

    /// New connections are forwarded again; those that went silent stay so for ever.
    pub fn open(&self) {
        self.state.send_replace(State::Open);
    }
}

async fn forward(client: TcpStream, target: Url, mut state: watch::Receiver<State>) {
    let now = *state.borrow_and_update();
    match now {
        State::Silent => return hang(client).await,
        State::Cut => return,
        _ => {}
    }
    let query = |name: &str| {
        let mut pairs = target.query_pairs();
        pairs.find(|(n, _)| n == name).map(|(_, v)| v.into_owned())
    };
    let port = query("port").and_then(|port| port.parse().ok());
    let port: u16 = port.or(target.port()).unwrap_or(5432);
    let host = query("host").unwrap_or_else(|| target.host_str().unwrap().to_owned());
    // A server that is down is a connection that ends.
    if host.starts_with('/') {
        let socket = PathBuf::from(host).join(format!(".s.PGSQL.{port}"));
        if let Ok(server) = UnixStream::connect(socket).await {
            let (from_server, to_server) = server.into_split();
            both_ways(client, from_server, to_server, state).await;
        }
    } else if let Ok(server) = TcpStream::connect((host, port)).await {
        let (from_server, to_server) = server.into_split();
        both_ways(client, from_server, to_server, state).await;
    }
}

async fn both_ways(
    client: TcpStream,
    from_server: impl AsyncRead + Unpin,
    to_server: impl AsyncWrite + Unpin,
    state: watch::Receiver<State>,
) {
    let (from_client, to_client) = client.into_split();
    tokio::join!(
        pump(from_client, to_server, Direction::ToServer, state.clone()),
        pump(from_server, to_client, Direction::ToClient, state)
    );
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    mut state: watch::Receiver<State>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let now = *state.borrow_and_update();
        match now {
            State::Silent => return hang((from, to)).await,
            State::Cut => return,
            State::HalfClosed if direction == Direction::ToClient => return,
            State::Stalled if state.changed().await.is_ok() => continue,
            _ => {}
        }
        tokio::select! {
            biased;
            changed = state.changed() => if changed.is_err() {
                return;
            },
            read = from.read(&mut buffer) => match read {
                Ok(length) if length > 0 => {
                    let listens = buffer[..length].windows(7).any(|word| word == b"LISTEN ");
                    if now == State::Deaf && listens {
                        return;
                    }
                    if now == State::Slow {
                        tokio::time::sleep(SLOW).await;
                    }
                    if to.write_all(&buffer[..length]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

/// Keeps a connection open and does nothing with it.
async fn hang<T>(_kept: T) {
    std::future::pending().await
}
