//! Builds HTTP answers from the lock's answers and from failed checks.

use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use dogwatch_core::printable::printable_text;
use serde_json::json;

use super::request_metrics::OutcomeLabel;
use crate::lock::service::{LockAnswer, UnlockAnswer};

/// `Retry-After` of 429 and 503, in seconds: about what another replica needs to take over.
const RETRY_AFTER_SECONDS: &str = "15";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    Held,
    Busy,
    NotAllowed,
    DrainFailed,
    Refused,
    TooMany,
    Unavailable,
    Free,
    UnlockFailed,
    Malformed,
    NoHeader,
    Unauthenticated,
    Forbidden,
    NoSuchPath,
    WrongMethod,
    Slow,
    TooLarge,
    UnknownType,
    Gone,
}

impl RequestOutcome {
    pub(super) fn http_status(self) -> StatusCode {
        match self {
            RequestOutcome::Held | RequestOutcome::Free => StatusCode::OK,
            RequestOutcome::Busy
            | RequestOutcome::NotAllowed
            | RequestOutcome::Refused
            | RequestOutcome::UnlockFailed => StatusCode::CONFLICT,
            RequestOutcome::DrainFailed => StatusCode::GATEWAY_TIMEOUT,
            RequestOutcome::TooMany => StatusCode::TOO_MANY_REQUESTS,
            RequestOutcome::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            RequestOutcome::Malformed | RequestOutcome::NoHeader => StatusCode::BAD_REQUEST,
            RequestOutcome::Unauthenticated => StatusCode::UNAUTHORIZED,
            RequestOutcome::Forbidden => StatusCode::FORBIDDEN,
            RequestOutcome::NoSuchPath => StatusCode::NOT_FOUND,
            RequestOutcome::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            // Nobody reads the answer after a disconnect, but it needs a status.
            RequestOutcome::Slow | RequestOutcome::Gone => StatusCode::REQUEST_TIMEOUT,
            RequestOutcome::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RequestOutcome::UnknownType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// For metrics and logs, and FleetLock's `kind`, which its clients use as a label too.
    pub(super) fn outcome_label(self) -> &'static str {
        match self {
            RequestOutcome::Held => "held",
            RequestOutcome::Busy => "failed_lock_semaphore_full",
            RequestOutcome::NotAllowed => "not_allowed_now",
            RequestOutcome::DrainFailed => "failed_drain",
            RequestOutcome::Refused => "refused",
            RequestOutcome::TooMany => "too_many_waiters",
            RequestOutcome::Unavailable => "unavailable",
            RequestOutcome::Free => "free",
            RequestOutcome::UnlockFailed => "failed_unlock",
            RequestOutcome::Malformed => "malformed_request",
            RequestOutcome::NoHeader => "missing_header",
            RequestOutcome::Unauthenticated => "unauthenticated",
            RequestOutcome::Forbidden => "forbidden",
            RequestOutcome::NoSuchPath => "not_found",
            RequestOutcome::WrongMethod => "method_not_allowed",
            RequestOutcome::Slow => "request_timeout",
            RequestOutcome::TooLarge => "body_too_large",
            RequestOutcome::UnknownType => "unsupported_media_type",
            RequestOutcome::Gone => "gone",
        }
    }

    fn extra_header(self) -> Option<(HeaderName, &'static str)> {
        match self {
            RequestOutcome::TooMany | RequestOutcome::Unavailable => Some((RETRY_AFTER, RETRY_AFTER_SECONDS)),
            RequestOutcome::Unauthenticated => Some((WWW_AUTHENTICATE, "Bearer")),
            // axum adds the allowed methods.
            RequestOutcome::WrongMethod
            | RequestOutcome::Held
            | RequestOutcome::Busy
            // The line itself says when to ask again.
            | RequestOutcome::NotAllowed
            | RequestOutcome::DrainFailed
            | RequestOutcome::Refused
            | RequestOutcome::Free
            | RequestOutcome::UnlockFailed
            | RequestOutcome::Malformed
            | RequestOutcome::NoHeader
            | RequestOutcome::Forbidden
            | RequestOutcome::NoSuchPath
            | RequestOutcome::Slow
            | RequestOutcome::TooLarge
            | RequestOutcome::UnknownType
            | RequestOutcome::Gone => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockReply {
    pub(super) verdict: RequestOutcome,
    pub(super) line: String,
    again: Option<Duration>,
}

impl LockReply {
    pub(super) fn new(verdict: RequestOutcome, line: impl AsRef<str>) -> Self {
        // Names and reasons come from clients.
        let line = printable_text(line.as_ref().trim_end());
        Self {
            verdict,
            line,
            again: None,
        }
    }

    /// For the lock API: the line and a newline.
    pub(super) fn into_text_response(self) -> Response {
        self.build_response("text/plain; charset=utf-8", format!("{}\n", self.line))
    }

    /// For FleetLock: its error object, or a line that its clients do not read.
    pub(super) fn into_fleetlock_response(self) -> Response {
        if self.verdict.http_status().is_success() {
            return self.into_text_response();
        }
        let object = json!({ "kind": self.verdict.outcome_label(), "value": self.line });
        self.build_response("application/json", format!("{object}\n"))
    }

    fn build_response(&self, content_type: &'static str, body: String) -> Response {
        let mut response = (self.verdict.http_status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some((name, value)) = self.verdict.extra_header() {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(again) = self.again {
            headers.insert(RETRY_AFTER, HeaderValue::from(again.as_secs().max(1)));
        }
        response
            .extensions_mut()
            .insert(OutcomeLabel(self.verdict.outcome_label()));
        response
    }
}

impl From<LockAnswer> for LockReply {
    fn from(answer: LockAnswer) -> Self {
        match answer {
            LockAnswer::Held { why } => LockReply::new(RequestOutcome::Held, why),
            LockAnswer::Busy { why } => LockReply::new(RequestOutcome::Busy, why),
            LockAnswer::NotAllowed { why, again } => LockReply {
                again: Some(again),
                ..LockReply::new(RequestOutcome::NotAllowed, why)
            },
            LockAnswer::DrainFailed { why } => LockReply::new(RequestOutcome::DrainFailed, why),
            LockAnswer::Refused { why } => LockReply::new(RequestOutcome::Refused, why),
            LockAnswer::TooMany { why } => LockReply::new(RequestOutcome::TooMany, why),
            LockAnswer::Unavailable { why } => LockReply::new(RequestOutcome::Unavailable, why),
        }
    }
}

impl From<UnlockAnswer> for LockReply {
    fn from(answer: UnlockAnswer) -> Self {
        match answer {
            UnlockAnswer::Free { why } => LockReply::new(RequestOutcome::Free, why),
            UnlockAnswer::Failed { why } => LockReply::new(RequestOutcome::UnlockFailed, why),
            UnlockAnswer::Unavailable { why } => LockReply::new(RequestOutcome::Unavailable, why),
        }
    }
}
