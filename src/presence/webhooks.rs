//! Questions about endpoints of webhooks.

use super::Presence;
use crate::coalesce::NoAnswer;
use crate::domain::{
    WebhookChange, WebhookName, WebhookOrder, WebhookPlace, WebhookState, WebhookUnset,
};

impl Presence {
    /// Makes an endpoint or changes it.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn set_webhook(
        &self,
        order: WebhookOrder,
    ) -> Result<Result<WebhookChange, WebhookUnset>, NoAnswer> {
        self.alone(None, move |store| {
            let order = order.clone();
            async move { store.set_webhook(&order).await }
        })
        .await
    }

    /// Lists endpoints in order of name, those after `after`.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn webhooks(
        &self,
        after: String,
        limit: usize,
    ) -> Result<Vec<WebhookState>, NoAnswer> {
        self.alone(None, move |store| {
            let after = after.clone();
            async move { store.webhooks(None, &after, limit).await }
        })
        .await
    }

    /// Says how one endpoint stands.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn webhook(&self, name: WebhookName) -> Result<Option<WebhookState>, NoAnswer> {
        self.alone(None, move |store| {
            let name = name.clone();
            async move { Ok(store.webhooks(Some(&name), "", 1).await?.pop()) }
        })
        .await
    }

    /// Switches an endpoint off; false where there is none.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn disable_webhook(&self, name: WebhookName) -> Result<bool, NoAnswer> {
        self.alone(None, move |store| {
            let name = name.clone();
            async move { store.disable_webhook(&name).await }
        })
        .await
    }

    /// Goes on with an endpoint, from where it stopped or from a chosen place.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn resume_webhook(
        &self,
        name: WebhookName,
        place: Option<WebhookPlace>,
    ) -> Result<Result<(), WebhookUnset>, NoAnswer> {
        self.alone(None, move |store| {
            let (name, place) = (name.clone(), place.clone());
            async move { store.resume_webhook(&name, place.as_ref()).await }
        })
        .await
    }

    /// Forgets an endpoint.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn remove_webhook(&self, name: WebhookName) -> Result<bool, NoAnswer> {
        self.alone(None, move |store| {
            let name = name.clone();
            async move { store.remove_webhook(&name).await }
        })
        .await
    }
}
