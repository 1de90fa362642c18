//! One request to an endpoint, and what its answer means.

use std::error::Error;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use super::resolver::{Lookup, Resolver, of_the_machine};
use super::signature::signature;
use super::{Reach, Target};
use crate::domain::WebhookSecret;

/// Of an answer's body no more is read; the rest is cut off.
const MOST_ANSWERED: usize = 16 * 1024;

/// An endpoint may ask for a longer pause, and is not given it.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// A connection without a request is kept so long.
const IDLE: Duration = Duration::from_secs(20);

const NAME: &str = concat!("leasehold/", env!("CARGO_PKG_VERSION"));

/// What is sent.
#[derive(Debug, Clone)]
pub struct Message {
    /// The same for every try.
    pub id: String,
    /// In Unix seconds, of this try.
    pub timestamp: i64,
    /// The same for every try.
    pub body: String,
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 2xx: it has the delivery.
    Taken,
    /// 410: it wants none any more.
    Gone,
    /// Anything else, and no answer.
    Failed {
        /// In words.
        why: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
        /// 429: with all deliveries, not only with this one.
        is_overrun: bool,
    },
}

impl Answer {
    /// There was none, for a reason that is not the endpoint's to name.
    pub(super) fn failed(why: String) -> Self {
        Self::Failed {
            why,
            retry_after: None,
            is_overrun: false,
        }
    }
}

/// Sends; cheap to clone. Follows no redirect and knows no proxy.
#[derive(Clone)]
pub struct Sender {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
}

impl Sender {
    /// Connects only to what `reach` permits.
    ///
    /// # Errors
    /// Where the certificates that the machine trusts cannot be read.
    pub fn new(reach: Reach) -> anyhow::Result<Self> {
        Self::resolving(reach, of_the_machine())
    }

    pub(super) fn resolving(reach: Reach, lookup: Lookup) -> anyhow::Result<Self> {
        let mut http = HttpConnector::new_with_resolver(Resolver { reach, lookup });
        http.enforce_http(false);
        http.set_nodelay(true);
        let https = HttpsConnectorBuilder::new()
            .with_provider_and_platform_verifier(rustls::crypto::ring::default_provider())
            .context("the certificates that this machine trusts cannot be used")?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(https);
        Ok(Self { client })
    }

    /// Sends once, and has the whole answer by the deadline or none.
    pub async fn send(
        &self,
        target: &Target,
        secrets: &[WebhookSecret],
        message: Message,
        deadline: Instant,
    ) -> Answer {
        let signature = signature(secrets, &message.id, message.timestamp, &message.body);
        let request = Request::post(target.uri())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, NAME)
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.timestamp)
            .header("webhook-signature", signature)
            .body(Full::new(Bytes::from(message.body)));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Answer::failed(error.to_string()),
        };
        match timeout_at(deadline, self.answer(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => Answer::failed(why),
            Err(_) => Answer::failed("no whole answer within the time-out".to_owned()),
        }
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        let response = self.client.request(request).await;
        let response = response.map_err(|error| innermost(&error))?;
        let (head, mut body) = response.into_parts();
        let mut read = 0;
        while read < MOST_ANSWERED {
            match body.frame().await {
                None => break,
                Some(frame) => {
                    let frame = frame.map_err(|error| innermost(&error))?;
                    read += frame.data_ref().map_or(0, Bytes::len);
                }
            }
        }
        Ok(meaning(&Response::from_parts(head, ())))
    }
}

fn meaning(response: &Response<()>) -> Answer {
    let status = response.status();
    if status.is_success() {
        return Answer::Taken;
    }
    if status == StatusCode::GONE {
        return Answer::Gone;
    }
    let remark = if status.is_redirection() {
        "; redirects are not followed"
    } else {
        ""
    };
    Answer::Failed {
        why: format!("it answered {}{remark}", status.as_u16()),
        retry_after: retry_after(response.headers()),
        is_overrun: status == StatusCode::TOO_MANY_REQUESTS,
    }
}

/// Seconds, or an instant by the clock of the one who wrote it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let asked = text(RETRY_AFTER)?.trim();
    let pause = match asked.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = httpdate::parse_http_date(asked).ok()?;
            let now = httpdate::parse_http_date(text(DATE)?).ok()?;
            until.duration_since(now).ok()?
        }
    };
    Some(pause.min(LONGEST_PAUSE))
}

/// What lies at the ground of an error.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, headers: &[(&'static str, &str)]) -> Answer {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        meaning(&response.body(()).unwrap())
    }

    #[test]
    fn an_answer_means_what_its_status_says() {
        for status in [200, 201, 204, 299] {
            assert_eq!(answered(status, &[]), Answer::Taken);
        }
        assert_eq!(answered(410, &[]), Answer::Gone);
        for status in [301, 302, 307, 400, 404, 429, 500, 503] {
            let Answer::Failed {
                why, is_overrun, ..
            } = answered(status, &[])
            else {
                unreachable!("{status}");
            };
            assert!(why.contains(&status.to_string()), "{why}");
            assert_eq!(is_overrun, status == 429);
        }
    }

    #[test]
    fn a_pause_is_in_seconds_or_until_an_instant_and_never_longer_than_a_day() {
        let pause = |headers: &[(&'static str, &str)]| match answered(503, headers) {
            Answer::Failed { retry_after, .. } => retry_after,
            _ => None,
        };
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(pause(&[("retry-after", "120")]), seconds(120));
        assert_eq!(pause(&[("retry-after", "99999999")]), seconds(86_400));
        let date = ("date", "Tue, 01 Dec 2026 10:00:00 GMT");
        let until = ("retry-after", "Tue, 01 Dec 2026 10:05:00 GMT");
        assert_eq!(pause(&[date, until]), seconds(300));
        for wrong in ["", "-1", "soon", "1.5"] {
            assert_eq!(pause(&[date, ("retry-after", wrong)]), None, "{wrong:?}");
        }
        assert_eq!(pause(&[until]), None);
    }
}
