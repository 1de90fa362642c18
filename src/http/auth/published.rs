//! Public keys where an identity provider publishes them: fetched at start, now and then, and for a key
//! that is not known. No request waits for it.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use ureq::Agent;
use ureq::http::Uri;
use ureq::http::header::ACCEPT;
use ureq::tls::{RootCerts, TlsConfig};

use super::jwks::KeySet;
use super::token::Unproven;

/// The shortest time between two fetches, whatever keys tokens name.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest that one may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The largest set, in bytes.
const MAX_BYTES: u64 = 262_144;

const MAX_REDIRECTS: u32 = 3;

/// The address of a published set.
#[derive(Debug, Clone)]
pub struct KeySetUrl(Uri);

impl FromStr for KeySetUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url: Option<Uri> = text.trim().parse().ok();
        url.filter(|url| matches!(url.scheme_str(), Some("https" | "http")))
            .map(Self)
            .ok_or("LEASEHOLD_JWKS_URL must be an address like https://id.example.com/jwks.json")
    }
}

/// Where keys are published, and how often they are fetched.
#[derive(Debug, Clone)]
pub struct PublishedSettings {
    /// A JSON Web Key Set.
    pub url: KeySetUrl,
    /// How often it is fetched again; more often, but not much, where a token names a key that is not in it.
    pub interval: Duration,
}

/// The keys as they were last fetched.
pub(crate) struct PublishedKeys {
    settings: PublishedSettings,
    agent: Agent,
    state: Mutex<State>,
    /// Told of a token whose key is not known.
    wanted: Notify,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// When they came; `None` once a fetch has failed.
    fetched_at: Option<Instant>,
}

impl PublishedKeys {
    /// Fetches nothing yet.
    pub(crate) fn new(settings: PublishedSettings) -> Self {
        let is_encrypted = settings.url.0.scheme_str() == Some("https");
        if !is_encrypted {
            tracing::warn!(
                "LEASEHOLD_JWKS_URL is not https: whoever is on the way to it can make tokens"
            );
        }
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let agent = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .max_redirects(MAX_REDIRECTS)
            // Also where it is redirected to.
            .https_only(is_encrypted)
            .tls_config(tls.build())
            .build();
        Self {
            settings,
            agent: agent.into(),
            state: Mutex::default(),
            wanted: Notify::new(),
        }
    }

    /// Tries the keys for this algorithm, and with this id where the token names one.
    ///
    /// # Errors
    /// Where there is none of them, and there may be once the set is fetched again.
    pub(crate) fn tried(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        mut signs: impl FnMut(&DecodingKey) -> bool,
    ) -> Result<bool, Unproven> {
        let (keys, fetched_at) = {
            let state = self.state();
            (state.keys.clone(), state.fetched_at)
        };
        let mut keys = keys.iter().flat_map(|keys| keys.keys(algorithm, id));
        let Some(first) = keys.next() else {
            if fetched_at.is_some_and(|at| at.elapsed() < self.pause()) {
                return Ok(false);
            }
            self.wanted.notify_one();
            return Err(Unproven::Pending);
        };
        Ok(signs(first) || keys.any(signs))
    }

    /// Fetches the keys in their time, until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let rounds = async {
            loop {
                sleep(self.pause()).await;
                let is_current = self.state().fetched_at.is_some();
                if is_current {
                    let rest = self.settings.interval.saturating_sub(self.pause());
                    // Whichever comes first.
                    let _ = timeout(rest, self.wanted.notified()).await;
                }
                self.refresh().await;
            }
        };
        let _ = stop.run_until_cancelled(rounds).await;
    }

    /// Fetches the keys. Those of before still hold where that fails.
    pub(crate) async fn refresh(&self) {
        let fetched = self.fetch().await;
        let mut state = self.state();
        let is_news = state.fetched_at.is_some() != fetched.is_ok() || state.keys.is_none();
        match fetched {
            Ok(keys) => {
                if is_news {
                    tracing::info!(url = %self.settings.url.0, "the published keys were fetched");
                }
                state.keys = Some(Arc::new(keys));
                state.fetched_at = Some(Instant::now());
            }
            Err(error) => {
                if is_news {
                    let otherwise = match state.keys {
                        Some(_) => "those of before still hold",
                        None => "no token of theirs can be verified",
                    };
                    tracing::warn!(
                        url = %self.settings.url.0,
                        error = format!("{error:#}"),
                        "the published keys cannot be fetched; {otherwise}"
                    );
                }
                state.fetched_at = None;
            }
        }
    }

    /// On a thread of its own, for which nobody has to wait when the service stops.
    async fn fetch(&self) -> anyhow::Result<KeySet> {
        let (tell, told) = oneshot::channel();
        let (agent, url) = (self.agent.clone(), self.settings.url.0.clone());
        std::thread::Builder::new().spawn(move || {
            // Nobody listens any more where the service stops.
            let _ = tell.send(get(&agent, url));
        })?;
        KeySet::parse(&told.await??)
    }

    fn pause(&self) -> Duration {
        self.settings.interval.min(PAUSE)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that can panic leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn get(agent: &Agent, url: Uri) -> Result<Vec<u8>, ureq::Error> {
    let request = agent
        .get(url)
        .header(ACCEPT, "application/jwk-set+json, application/json");
    let mut answer = request.call()?;
    answer
        .body_mut()
        .with_config()
        .limit(MAX_BYTES)
        .read_to_vec()
}
