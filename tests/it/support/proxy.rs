//! A network between the service and Postgres, which can go silent.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Url;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    /// Nothing that is sent arrives.
    Silent,
    /// Whoever sends `LISTEN` is cut off.
    Deaf,
    /// Everybody is cut off.
    Closed,
}

/// Forwards connections until it is told otherwise; ends with the test's runtime.
pub struct Proxy {
    pub url: String,
    state: watch::Sender<State>,
    attempts: Arc<AtomicUsize>,
}

impl Proxy {
    /// In front of this database.
    pub async fn to(database_url: &str) -> Self {
        let url = Url::parse(database_url).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, watched) = watch::channel(State::Open);
        let target = url.clone();
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(forward(client, target.clone(), watched.clone()));
            }
        });
        Self {
            url: format!("postgres://postgres@127.0.0.1:{port}{}", url.path()),
            state,
            attempts,
        }
    }

    /// How often somebody has connected, whatever came of it.
    pub fn attempts(&self) -> usize {
        self.attempts.load(Ordering::Relaxed)
    }

    /// From now on everybody is cut off, as by a server that is not there.
    pub fn close(&self) {
        self.state.send_replace(State::Closed);
    }

    /// From now on nothing that is sent arrives, on connections old and new.
    pub fn silence(&self) {
        self.state.send_replace(State::Silent);
    }

    /// From now on nobody can start to listen.
    pub fn deafen(&self) {
        self.state.send_replace(State::Deaf);
    }

    /// New connections are forwarded again; those that went silent stay so for ever.
    pub fn open(&self) {
        self.state.send_replace(State::Open);
    }
}

async fn forward(client: TcpStream, target: Url, mut state: watch::Receiver<State>) {
    let at_first = *state.borrow_and_update();
    match at_first {
        State::Silent => return hang(client).await,
        State::Closed => return,
        State::Open | State::Deaf => {}
    }
    let query = |name: &str| {
        let mut pairs = target.query_pairs();
        pairs.find(|(n, _)| n == name).map(|(_, v)| v.into_owned())
    };
    let port = query("port").and_then(|port| port.parse().ok());
    let port: u16 = port.or(target.port()).unwrap_or(5432);
    let host = query("host").unwrap_or_else(|| target.host_str().unwrap().to_owned());
    let (from_client, to_client) = client.into_split();
    if host.starts_with('/') {
        let socket = PathBuf::from(host).join(format!(".s.PGSQL.{port}"));
        let (from_server, to_server) = UnixStream::connect(socket).await.unwrap().into_split();
        tokio::join!(
            pump(from_client, to_server, state.clone()),
            pump(from_server, to_client, state)
        );
    } else {
        let server = TcpStream::connect((host, port)).await.unwrap();
        let (from_server, to_server) = server.into_split();
        tokio::join!(
            pump(from_client, to_server, state.clone()),
            pump(from_server, to_client, state)
        );
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        tokio::select! {
            biased;
            _ = state.changed() => {
                let now = *state.borrow();
                match now {
                    State::Silent => return hang((from, to)).await,
                    State::Closed => return,
                    State::Open | State::Deaf => {}
                }
            }
            read = from.read(&mut buffer) => match read {
                Ok(length) if length > 0 => {
                    let listens = buffer[..length].windows(7).any(|word| word == b"LISTEN ");
                    if *state.borrow() == State::Deaf && listens {
                        return;
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
