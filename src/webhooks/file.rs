//! `LEASEHOLD_WEBHOOKS_FILE`: endpoints that are there when an instance starts.

use std::path::Path;

use anyhow::{Context, bail};

use super::{Reach, Target};
use crate::domain::{WebhookOrder, WebhookUnset};
use crate::store::Store;
use crate::wire::{WebhooksFile, parse};

/// Makes or changes every endpoint of the file; positions and statuses stay, and so do endpoints
/// that it does not name.
///
/// # Errors
/// Names the file, and the endpoint that cannot be.
pub async fn apply_file(path: &Path, store: &Store, reach: &Reach) -> anyhow::Result<()> {
    let orders = read(path, reach)
        .with_context(|| format!("LEASEHOLD_WEBHOOKS_FILE {} cannot be used", path.display()))?;
    for order in orders {
        match store.set_webhook(&order).await? {
            Ok(_) => {}
            Err(unset) => bail!(
                "LEASEHOLD_WEBHOOKS_FILE: the webhook {} {}",
                order.name,
                match unset {
                    WebhookUnset::NoSecret => "needs a secret",
                    _ =>
                        "cannot begin there: after must be latest, oldest or a position that is kept",
                }
            ),
        }
    }
    Ok(())
}

fn read(path: &Path, reach: &Reach) -> anyhow::Result<Vec<WebhookOrder>> {
    let bytes = std::fs::read(path)?;
    let orders = parse::<WebhooksFile>(&bytes)?.read()?;
    for order in &orders {
        Target::parse(&order.url, reach)
            .with_context(|| format!("of the webhook {}", order.name))?;
    }
    Ok(orders)
}
