//! A signed example, for who writes a receiver.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use serde_json::json;
use tokio::time::Instant;

use super::{Answer, Message, Reach, Sender, Target};
use crate::domain::WebhookSecret;

/// Sends a change that never was, in a room that is called so, and says what was answered.
///
/// # Errors
/// Where it was not taken, and why.
pub async fn send_example(
    url: &str,
    secret: WebhookSecret,
    reach: Reach,
    timeout: Duration,
) -> anyhow::Result<String> {
    let target = Target::parse(url, &reach)?;
    let now = unix_time();
    let id = format!("msg_test{:016x}", rand::random::<u64>());
    let body = json!({ "changes": [{
        "position": "test", "kind": "joined", "roomId": "webhook-test", "generation": 1, "version": 1,
        "userId": "alice", "deviceId": null, "epoch": 1, "reason": null, "memberCount": 1,
        "atMs": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
    }] });
    let message = Message {
        id: id.clone(),
        timestamp: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        body: body.to_string(),
    };
    let deadline = Instant::now() + timeout;
    match Sender::new(reach)?
        .send(&target, &[secret], message, deadline)
        .await
    {
        Answer::Taken => Ok(format!("{id} was taken")),
        Answer::Gone => bail!("it answered 410: a webhook would be switched off"),
        Answer::Failed { why, .. } => bail!("it was not taken: {why}"),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "there is no database here, and a receiver compares with its own clock"
)]
fn unix_time() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}
