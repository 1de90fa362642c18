//! Endpoints of webhooks: who has changes delivered, and how that goes.

use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use serde::Deserialize;
use utoipa::IntoParams;

use super::body::Json;
use super::page::{self, Page};
use super::path::WebhookPath;
use super::{Access, Api, ApiError};
use crate::domain::{WebhookName, WebhookUnset};
use crate::webhooks::Target;
use crate::wire::{
    ErrorBody, WebhookAnswer, WebhookBody, WebhooksAnswer, no_webhook_place, webhook_place,
};

/// Have changes delivered
///
/// Makes the endpoint, or changes all of it but its position and status. A secret that is replaced
/// signs beside the new one for a day. Needs an admin of all rooms or a server key.
#[utoipa::path(
    put,
    path = "/webhooks/{name}",
    tag = "webhooks",
    params(("name" = String, Path, min_length = 1, max_length = 256)),
    request_body = WebhookBody,
    responses(
        (status = 200, body = WebhookAnswer, description = "How it stands; never with its secret"),
        (status = 410, body = ErrorBody, description = "`position_expired`: of the `after` of a new one"),
    )
)]
pub(crate) async fn set_webhook(
    api: Data<Api>,
    access: Access,
    WebhookPath(name): WebhookPath,
    Json(body): Json<WebhookBody>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let order = body.read(name.clone())?;
    Target::parse(&order.url, api.webhooks.reach())
        .map_err(|error| ApiError::invalid(error.to_string()))?;
    api.presence.set_webhook(order).await?.map_err(unset)?;
    api.webhooks.look();
    shown(&api, name).await
}

/// List webhooks
///
/// In order of name. Needs an admin of all rooms or a server key.
#[utoipa::path(
    get,
    path = "/webhooks",
    tag = "webhooks",
    params(Page),
    responses((status = 200, body = WebhooksAnswer))
)]
pub(crate) async fn list_webhooks(
    api: Data<Api>,
    access: Access,
    Query(page): Query<Page>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let after = page.after()?.map(|[name]| name).unwrap_or_default();
    if after.contains('\0') {
        return Err(page::not_a_token());
    }
    let limit = page.limit()?;
    let mut found = api.presence.webhooks(after, limit + 1).await?;
    let next = page::cut(&mut found, limit, |last| page::write(&[last.name.as_str()]));
    Ok(HttpResponse::Ok().json(WebhooksAnswer::new(&found, next)))
}

/// See how a webhook stands
///
/// Needs an admin of all rooms or a server key.
#[utoipa::path(
    get,
    path = "/webhooks/{name}",
    tag = "webhooks",
    params(("name" = String, Path, min_length = 1, max_length = 256)),
    responses(
        (status = 200, body = WebhookAnswer),
        (status = 404, body = ErrorBody, description = "`webhook_not_found`"),
    )
)]
pub(crate) async fn webhook(
    api: Data<Api>,
    access: Access,
    WebhookPath(name): WebhookPath,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    shown(&api, name).await
}

/// Delete a webhook
///
/// With its position and whatever waits for it; 204 also where there is none. Needs an admin of all
/// rooms or a server key.
#[utoipa::path(
    delete,
    path = "/webhooks/{name}",
    tag = "webhooks",
    params(("name" = String, Path, min_length = 1, max_length = 256)),
    responses((status = 204, description = "It is not there"))
)]
pub(crate) async fn remove_webhook(
    api: Data<Api>,
    access: Access,
    WebhookPath(name): WebhookPath,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    api.presence.remove_webhook(name).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Switch a webhook off
///
/// Its position and what waits for it stay. Needs an admin of all rooms or a server key.
#[utoipa::path(
    post,
    path = "/webhooks/{name}/disable",
    tag = "webhooks",
    params(("name" = String, Path, min_length = 1, max_length = 256)),
    responses(
        (status = 200, body = WebhookAnswer),
        (status = 404, body = ErrorBody, description = "`webhook_not_found`"),
    )
)]
pub(crate) async fn disable_webhook(
    api: Data<Api>,
    access: Access,
    WebhookPath(name): WebhookPath,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    if !api.presence.disable_webhook(name.clone()).await? {
        return Err(ApiError::webhook_not_found());
    }
    shown(&api, name).await
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Resuming {
    /// `latest`, `oldest` or a position of the feed: what waits is dropped. Left out: from where it
    /// stopped, and nothing is lost.
    after: Option<String>,
}

/// Go on with a webhook
///
/// With one that is disabled, failed, gone or expired; at once. Needs an admin of all rooms or a
/// server key.
#[utoipa::path(
    post,
    path = "/webhooks/{name}/resume",
    tag = "webhooks",
    params(("name" = String, Path, min_length = 1, max_length = 256), Resuming),
    responses(
        (status = 200, body = WebhookAnswer),
        (status = 404, body = ErrorBody, description = "`webhook_not_found`"),
        (status = 410, body = ErrorBody, description = "`position_expired`"),
    )
)]
pub(crate) async fn resume_webhook(
    api: Data<Api>,
    access: Access,
    WebhookPath(name): WebhookPath,
    Query(query): Query<Resuming>,
) -> Result<HttpResponse, ApiError> {
    access.admin()?;
    let place = query.after.map(webhook_place).transpose()?;
    let resumed = api.presence.resume_webhook(name.clone(), place).await?;
    resumed.map_err(unset)?;
    api.webhooks.look();
    shown(&api, name).await
}

async fn shown(api: &Api, name: WebhookName) -> Result<HttpResponse, ApiError> {
    let found = api.presence.webhook(name).await?;
    let webhook = found.ok_or_else(ApiError::webhook_not_found)?;
    Ok(HttpResponse::Ok().json(WebhookAnswer::new(&webhook)))
}

fn unset(unset: WebhookUnset) -> ApiError {
    match unset {
        WebhookUnset::NoSecret => ApiError::invalid("secret is required for a new webhook"),
        WebhookUnset::Unknown => ApiError::webhook_not_found(),
        WebhookUnset::NoPosition => no_webhook_place().into(),
        WebhookUnset::PositionExpired => ApiError::position_expired(),
    }
}
