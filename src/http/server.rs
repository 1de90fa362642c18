//! The server: what wraps the routes, and how long anything may take.

use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::{HttpService, Protocol};
use actix_service::{IntoServiceFactory, Service, ServiceFactoryExt, fn_service, map_config};
use actix_web::dev::{AppConfig, Server};
use actix_web::middleware::Condition;
use actix_web::rt::net::TcpStream;
use actix_web::web::{Data, QueryConfig};
use actix_web::{App, Error};
use anyhow::Context;
use socket2::{Domain, Socket, Type};

use super::access_log::Arrived;
use super::auth::Gate;
use super::client_address::TrustedProxies;
use super::crowd::Crowd;
use super::entrance::Entrance;
use super::origin::OriginPattern;
use super::peer::PeerStream;
use super::{Api, ApiError, BodyLimits, cors, routes};

/// How long a peer has to close its side of a connection that the server closes.
const DISCONNECT: Duration = Duration::from_secs(1);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// Bytes of one connection that the kernel takes beyond those on their way.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 65_536;

/// How the server listens.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Port 0 takes a free one.
    pub bind: SocketAddr,
    /// Threads that serve.
    pub workers: usize,
    /// Connections at a time; others wait to be accepted.
    pub max_connections: usize,
    /// Of pages that may ask from elsewhere.
    pub origins: Vec<OriginPattern>,
    /// Whether requests are answered only by names of the machine that asks, as `localhost`.
    pub loopback_names_only: bool,
    /// Whom to believe where a request comes from.
    pub proxies: TrustedProxies,
    /// How large a body may be, and how long a request's head, and then its body, may take to arrive.
    pub bodies: BodyLimits,
    /// How long a connection without a request is kept open.
    pub idle_timeout: Duration,
    /// How long a peer may take nothing of what it is sent, or acknowledge nothing.
    pub stall_timeout: Duration,
    /// How long requests under way have to finish when the server stops.
    pub shutdown_timeout: Duration,
}

/// A server that is bound to its address, and that address with the port that was taken for port 0.
///
/// # Errors
/// Where the address cannot be had.
pub fn server(
    settings: ServerSettings,
    api: Data<Api>,
    gate: Data<Gate>,
) -> anyhow::Result<(Server, SocketAddr)> {
    let ServerSettings {
        bind,
        workers,
        max_connections,
        origins,
        loopback_names_only,
        proxies,
        bodies,
        idle_timeout,
        stall_timeout,
        shutdown_timeout,
    } = settings;
    let listener = listen(bind, stall_timeout).with_context(|| {
        format!("cannot listen on {bind}; set LEASEHOLD_BIND to a free address")
    })?;
    let address = listener.local_addr()?;
    let connections_of_a_worker = (max_connections / workers).max(1);
    let entrance = Arc::new(Entrance {
        origins,
        loopback_names_only,
    });
    let crowd = Crowd::new(connections_of_a_worker * workers);
    let server = Server::build()
        .disable_signals()
        .workers(workers)
        .max_concurrent_connections(connections_of_a_worker)
        .shutdown_timeout(shutdown_timeout.as_secs());
    let stopping = server.graceful_shutdown_signal();
    // As actix's own `HttpServer` does, which has no place for the stream that watches the peer.
    let server = server.listen("http", listener, move || {
        let everybody = Arc::clone(&crowd);
        let entrance = Arc::clone(&entrance);
        let origins = &entrance.origins;
        let app = App::new()
            .app_data(api.clone())
            .app_data(gate.clone())
            .app_data(bodies)
            .app_data(proxies.clone())
            .app_data(query_config())
            .wrap(Condition::new(!origins.is_empty(), cors::cors(origins)))
            .wrap_fn(move |request, app| {
                let crowd = Arc::clone(&everybody);
                let arrived = Arrived::now(&request);
                let answer = match entrance.admit(request.head()) {
                    Ok(()) => Ok(app.call(request)),
                    Err(refusal) => Err(request.error_response(refusal)),
                };
                async move {
                    let mut response = match answer {
                        Ok(answer) => answer.await?.map_into_left_body(),
                        Err(refused) => refused.map_into_right_body(),
                    };
                    arrived.answered(&mut response);
                    crowd.make_room(&mut response);
                    Ok(response)
                }
            })
            .configure(|config| routes::routes(config, &api))
            .into_factory()
            .map_err(|error: Error| error.error_response());
        let stopping = stopping.clone();
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(idle_timeout)
            .client_request_timeout(bodies.timeout)
            .client_disconnect_timeout(DISCONNECT)
            .local_addr(address)
            .on_connect_ext(|stream: &PeerStream, data| {
                data.insert(Rc::clone(stream.peer()));
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let crowd = Arc::clone(&crowd);
        fn_service(move |tcp: TcpStream| {
            let from = tcp.peer_addr().ok();
            let stream = PeerStream::new(tcp, crowd.enter(), stall_timeout);
            ready(Ok((stream, Protocol::Http1, from)))
        })
        .and_then(http)
    })?;
    Ok((server.run(), address))
}

/// The settings of its socket are those of each connection.
fn listen(bind: SocketAddr, stall_timeout: Duration) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(bind), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    #[cfg(target_os = "linux")]
    {
        // A peer whose machine is gone acknowledges nothing, and what it is sent fits into buffers for hours.
        socket.set_tcp_user_timeout(Some(stall_timeout))?;
        // So that a peer which takes nothing is noticed before megabytes wait for it.
        socket.set_tcp_notsent_lowat(UNSENT)?;
    }
    socket.bind(&bind.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A query that cannot be read is answered like any other bad input.
fn query_config() -> QueryConfig {
    QueryConfig::default().error_handler(|error, _| {
        ApiError::invalid(format!("the query cannot be read: {error}")).into()
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpStream;

    use socket2::SockRef;

    use super::*;

    #[test]
    fn a_connection_has_the_settings_of_the_socket_that_it_came_by() {
        let stall = Duration::from_secs(30);
        let listener = listen("127.0.0.1:0".parse().unwrap(), stall).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let accepted = SockRef::from(&accepted);
        assert_eq!(accepted.tcp_user_timeout().unwrap(), Some(stall));
        assert_eq!(accepted.tcp_notsent_lowat().unwrap(), UNSENT);
    }
}
