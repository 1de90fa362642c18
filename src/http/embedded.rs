//! Files that are part of the binary, and how they are handed out.

use actix_web::http::header;
use actix_web::{HttpResponse, HttpResponseBuilder};

use super::ApiError;

/// Files of one directory: the name of each, and its text.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// The named files of a directory of the project, as they are.
macro_rules! embedded {
    ($directory:literal, $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../", $directory, "/", $name)))),*]
    };
}
pub(super) use embedded;

/// One of the files.
///
/// # Errors
/// Where there is none of this name.
pub(super) fn file(files: Files, name: &str) -> Result<HttpResponse, ApiError> {
    let found = files.iter().find(|(each, _)| *each == name);
    let (name, text) = found.ok_or_else(ApiError::unknown_route)?;
    Ok(answer(name).body(*text))
}

/// The answer with a file of this name. Asked for again at each load, or a page would mix the files of two
/// releases.
pub(super) fn answer(name: &str) -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer
        .content_type(content_type(name))
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    answer
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}
