//! What the lock API says of itself: `openapi.json`, OpenAPI 3.1. A test holds it to what is really answered.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

pub(super) const DESCRIPTION: &str = include_str!("openapi.json");

pub(super) async fn serve() -> Response {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}
