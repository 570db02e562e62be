//! Serves `openapi.json`, the lock API's description in OpenAPI 3.1. A test compares it with the
//! real answers.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

pub(super) const OPENAPI_JSON: &str = include_str!("openapi.json");

pub(super) async fn serve_openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI_JSON).into_response()
}
