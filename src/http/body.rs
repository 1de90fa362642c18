//! Bodies: which content types are read, how much of them, and for how long.

use std::future::ready;
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::web::BytesMut;
use actix_web::{FromRequest, HttpRequest};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

use super::ApiError;
use crate::wire::parse;

/// A JSON object of the shape `T`.
pub struct Json<T>(pub T);

/// The same, also where it is labelled `text/plain`: what a page can send while it unloads.
pub struct JsonOrText<T>(pub T);

/// The same of many items, which may be as large as a batch.
pub struct BatchJson<T>(pub T);

/// How large a body may be, and how long it may take to arrive.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// Of a request about one member, in bytes.
    pub max_bytes: usize,
    /// Of a batch, in bytes.
    pub max_batch_bytes: usize,
    /// From the end of the head to the end of the body.
    pub timeout: Duration,
}

type Reading<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

macro_rules! body {
    ($name:ident, $accepted:literal, $limit:ident) => {
        impl<T: DeserializeOwned + 'static> FromRequest for $name<T> {
            type Error = ApiError;
            type Future = Reading<Self>;

            fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
                let Some(limits) = request.app_data::<BodyLimits>() else {
                    return Box::pin(ready(Err(ApiError::unavailable(
                        "the service is not set up",
                    ))));
                };
                let (limit, timeout) = (limits.$limit, limits.timeout);
                let bytes = read(request, payload.take(), $accepted, limit, timeout);
                Box::pin(async move { Ok(Self(parse(&bytes.await?)?)) })
            }
        }
    };
}

body!(Json, "application/json", max_bytes);
body!(JsonOrText, "application/json or text/plain", max_bytes);
body!(BatchJson, "application/json", max_batch_bytes);

/// Reads the body where its content type is one of those named, or none is given, for a bounded time.
fn read(
    request: &HttpRequest,
    mut payload: Payload,
    accepted: &'static str,
    limit: usize,
    timeout: Duration,
) -> impl Future<Output = Result<BytesMut, ApiError>> + use<> {
    let content_type = request.headers().get(header::CONTENT_TYPE).map(|value| {
        let text = value.to_str().unwrap_or("");
        text.split(';')
            .next()
            .unwrap_or("")
            .trim()
            .to_ascii_lowercase()
    });
    let is_accepted =
        content_type.is_none_or(|found| accepted.split(" or ").any(|accepted| accepted == found));
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    async move {
        if !is_accepted {
            return Err(ApiError::unsupported_media_type(accepted));
        }
        if announced.is_some_and(|length| length > limit) {
            return Err(ApiError::too_large(limit));
        }
        let reading = async {
            let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0));
            while let Some(chunk) = payload.next().await {
                let chunk = chunk.map_err(|error| {
                    ApiError::invalid(format!("the body cannot be read: {error}"))
                })?;
                if bytes.len() + chunk.len() > limit {
                    return Err(ApiError::too_large(limit));
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        };
        tokio::time::timeout(timeout, reading)
            .await
            .unwrap_or_else(|_| Err(ApiError::too_slow()))
    }
}
