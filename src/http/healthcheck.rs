//! The question of `leasehold healthcheck`: how a service that runs already is, for whoever restarts it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use ureq::Agent;

/// The most that is read of an answer, in bytes.
const MAX_BYTES: u64 = 65_536;

/// What to ask, and whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthQuestion {
    /// Where the service listens.
    pub address: SocketAddr,
    /// Whether the process lives; otherwise whether it is ready.
    pub is_of_life: bool,
    /// From the begin of the question to the end of the answer.
    pub timeout: Duration,
}

/// What both kinds of answer say.
#[derive(Deserialize)]
struct Answer {
    status: Option<String>,
    error: Option<String>,
}

impl HealthQuestion {
    /// Asks once, and returns the word that the service said. Blocks.
    ///
    /// # Errors
    /// Where it does not answer in time, or says that it is not well, with its sentence.
    pub fn ask(self) -> anyhow::Result<String> {
        let path = if self.is_of_life { "healthz" } else { "readyz" };
        let url = format!("http://{}/{path}", self.address);
        // Of the environment's proxy nothing that is on this machine is asked.
        let agent: Agent = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_global(Some(self.timeout))
            .build()
            .into();
        let mut answer = agent
            .get(&url)
            .call()
            .with_context(|| format!("{url} does not answer"))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MAX_BYTES);
        let body = body
            .read_to_vec()
            .with_context(|| format!("{url} does not answer to its end"))?;
        match serde_json::from_slice(&body) {
            Ok(Answer {
                status: Some(word), ..
            }) if status == 200 => Ok(word),
            Ok(Answer {
                error: Some(sentence),
                ..
            }) => bail!("{url} answers {status}: {sentence}"),
            _ => bail!("{url} answers {status}, and not as Leasehold does"),
        }
    }
}
