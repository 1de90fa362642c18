//! Three instances, each behind a network of its own, and the servers.

use std::sync::Mutex as StdMutex;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::{Instant, sleep};

use super::super::support::{Proxy, Service, run, text};
use super::clock::Clock;
use super::servers::Servers;

pub const INSTANCES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

const FLAGS: &[&str] = &[
    "--min-lease-ms=1s",
    "--lease-ms=3s",
    "--heartbeat-ms=1s",
    "--poll-ms=300ms",
    "--keep-alive-ms=1s",
    "--timeout-ms=2s",
];

pub struct World {
    pub servers: Mutex<Servers>,
    pub proxies: Vec<Proxy>,
    instances: Vec<Mutex<Option<Service>>>,
    /// Where they answer, but for those that are down.
    urls: StdMutex<[Option<String>; INSTANCES]>,
    quiet: RwLock<()>,
}

impl World {
    pub async fn start(clock: Option<Clock>) -> Self {
        let servers = Servers::start(clock).await;
        let migrated = run(&["migrate"], &servers.url());
        assert!(migrated.status.success(), "{}", text(&migrated.stderr));
        let mut proxies = Vec::new();
        for _ in 0..INSTANCES {
            proxies.push(Proxy::to(&servers.url()).await);
        }
        let world = Self {
            servers: Mutex::new(servers),
            proxies,
            instances: (0..INSTANCES).map(|_| Mutex::new(None)).collect(),
            urls: StdMutex::default(),
            quiet: RwLock::new(()),
        };
        for n in 0..INSTANCES {
            world.start_instance(n).await;
        }
        world
    }

    pub fn url(&self, n: usize) -> Option<String> {
        self.urls.lock().unwrap()[n].clone()
    }

    /// Of those that run.
    pub fn urls(&self) -> Vec<String> {
        self.urls
            .lock()
            .unwrap()
            .iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// One of them, by any number.
    pub fn some_url(&self, n: i64) -> Option<String> {
        let urls = self.urls();
        let n = usize::try_from(n).unwrap();
        (!urls.is_empty()).then(|| urls[n % urls.len()].clone())
    }

    /// Starts an instance, trying again while it finds no database.
    pub async fn start_instance(&self, n: usize) {
        // The first sweeps as often as it can, so that whatever befalls it befalls a sweep.
        let sweep = ["--sweep-interval-ms=20ms", "--sweep-interval-ms=1s"][n.min(1)];
        let flags = [FLAGS, &[sweep]].concat();
        let deadline = Instant::now() + PATIENCE;
        let mut instance = self.instances[n].lock().await;
        let filter = "warn,leasehold::cli=info";
        loop {
            match Service::try_serve(filter, &self.proxies[n].url, &flags).await {
                Ok(service) => {
                    self.urls.lock().unwrap()[n] = Some(service.url.clone());
                    *instance = Some(service);
                    return;
                }
                Err(said) => assert!(Instant::now() < deadline, "{said}"),
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// As a crash would.
    pub async fn kill_instance(&self, n: usize) {
        self.urls.lock().unwrap()[n] = None;
        if let Some(mut service) = self.instances[n].lock().await.take() {
            service.kill();
        }
    }

    /// It neither runs nor knows that it does not.
    pub async fn freeze_instance(&self, n: usize, time: Duration) {
        let instance = self.instances[n].lock().await;
        if let Some(service) = &*instance {
            service.signal(Signal::STOP);
            sleep(time).await;
            service.signal(Signal::CONT);
        }
    }

    /// Held by every request of the workload.
    pub async fn busy(&self) -> RwLockReadGuard<'_, ()> {
        self.quiet.read().await
    }

    /// Waits for the requests under way; no other begins meanwhile.
    pub async fn quiet(&self) -> RwLockWriteGuard<'_, ()> {
        self.quiet.write().await
    }

    /// Waits until each instance serves again.
    pub async fn until_served(&self) {
        let deadline = Instant::now() + PATIENCE;
        for url in self.urls() {
            loop {
                let answer = reqwest::get(format!("{url}/readyz")).await;
                if answer.as_ref().is_ok_and(|answer| answer.status() == 200) {
                    break;
                }
                assert!(Instant::now() < deadline, "{url} is not ready: {answer:?}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Stops the instances as a deploy would.
    pub async fn stop(&self) {
        for instance in &self.instances {
            if let Some(service) = instance.lock().await.take() {
                service.stop(Signal::TERM).await;
            }
        }
    }
}
