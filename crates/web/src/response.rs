//! Answers, each with the headers that protect the page.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;

pub(crate) type PageBody = UnsyncBoxBody<Bytes, Infallible>;
pub(crate) type PageResponse = Response<PageBody>;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";

/// Nothing of a foreign origin, nothing inline, and no text of the cluster can become markup:
/// browsers with trusted types refuse `innerHTML` altogether.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PROTECTING_HEADERS: [(HeaderName, &str); 9] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-embedder-policy"),
        "require-corp",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// Every answer is made here.
pub(crate) fn protected_response(
    status: StatusCode,
    content_type: &'static str,
    body: PageBody,
) -> PageResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in PROTECTING_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn full_response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> PageResponse {
    protected_response(status, content_type, Full::new(body.into()).boxed_unsync())
}

pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> PageResponse {
    match serde_json::to_vec(value) {
        Ok(body) => full_response(status, JSON, body),
        Err(error) => {
            tracing::warn!(%error, "failed to encode an answer");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            full_response(
                status,
                JSON,
                &b"{\"error\":\"failed to encode the answer\"}"[..],
            )
        }
    }
}

/// `{"error": "…"}`.
pub(crate) fn error_response(status: StatusCode, error: &str) -> PageResponse {
    let mut response = json_response(status, &serde_json::json!({ "error": error }));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
    }
    response
}

pub(crate) fn wrong_method(allowed: &'static str) -> PageResponse {
    let mut response = error_response(StatusCode::METHOD_NOT_ALLOWED, "wrong method");
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
