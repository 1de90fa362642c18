//! Names become addresses once for each connection, and only those that may be reached are connected to.

use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::Reach;

/// What a name leads to.
pub(super) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// As the machine resolves names.
pub(super) fn of_the_machine() -> Lookup {
    Arc::new(|name| {
        async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    })
}

/// Answers the addresses of a name that may be reached, which are then connected to as they are:
/// nobody asks a second time.
#[derive(Clone)]
pub(super) struct Resolver {
    pub reach: Reach,
    pub lookup: Lookup,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.reach.clone();
        let found = (self.lookup)(name.as_str().to_owned());
        found
            .then(move |found| ready(found.and_then(|found| permitted(&name, found, &reach))))
            .boxed()
    }
}

fn permitted(
    name: &Name,
    found: Vec<IpAddr>,
    reach: &Reach,
) -> io::Result<std::vec::IntoIter<SocketAddr>> {
    let first = found.first().copied();
    let addresses = found.into_iter().filter(|address| reach.permits(*address));
    // The port is that of the request.
    let addresses: Vec<SocketAddr> = addresses.map(|address| (address, 0).into()).collect();
    match first {
        Some(refused) if addresses.is_empty() => Err(io::Error::other(format!(
            "{name} leads to {refused}, which is not on the public internet; \
             LEASEHOLD_WEBHOOKS_ALLOW can allow its network"
        ))),
        _ => Ok(addresses.into_iter()),
    }
}
