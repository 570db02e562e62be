//! From what the lock, or a check before it, says to an answer over HTTP.

use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::record::Word;
use crate::lock::service::{LockAnswer, UnlockAnswer};

/// When to come back after 429 and 503: about what another replica needs to take over.
const RETRY_AFTER_SECONDS: &str = "15";

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
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

impl Verdict {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Verdict::Held | Verdict::Free => StatusCode::OK,
            Verdict::Busy | Verdict::NotAllowed | Verdict::Refused | Verdict::UnlockFailed => {
                StatusCode::CONFLICT
            }
            Verdict::DrainFailed => StatusCode::GATEWAY_TIMEOUT,
            Verdict::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Verdict::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Verdict::Malformed | Verdict::NoHeader => StatusCode::BAD_REQUEST,
            Verdict::Unauthenticated => StatusCode::UNAUTHORIZED,
            Verdict::Forbidden => StatusCode::FORBIDDEN,
            Verdict::NoSuchPath => StatusCode::NOT_FOUND,
            Verdict::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            // Nobody reads the answer of one that is gone; a status is needed all the same.
            Verdict::Slow | Verdict::Gone => StatusCode::REQUEST_TIMEOUT,
            Verdict::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Verdict::UnknownType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// For metrics and logs, and FleetLock's `kind`, which its clients use as a label too.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Held => "held",
            Verdict::Busy => "failed_lock_semaphore_full",
            Verdict::NotAllowed => "not_allowed_now",
            Verdict::DrainFailed => "failed_drain",
            Verdict::Refused => "refused",
            Verdict::TooMany => "too_many_waiters",
            Verdict::Unavailable => "unavailable",
            Verdict::Free => "free",
            Verdict::UnlockFailed => "failed_unlock",
            Verdict::Malformed => "malformed_request",
            Verdict::NoHeader => "missing_header",
            Verdict::Unauthenticated => "unauthenticated",
            Verdict::Forbidden => "forbidden",
            Verdict::NoSuchPath => "not_found",
            Verdict::WrongMethod => "method_not_allowed",
            Verdict::Slow => "request_timeout",
            Verdict::TooLarge => "body_too_large",
            Verdict::UnknownType => "unsupported_media_type",
            Verdict::Gone => "gone",
        }
    }

    fn header(self) -> Option<(HeaderName, &'static str)> {
        match self {
            Verdict::TooMany | Verdict::Unavailable => Some((RETRY_AFTER, RETRY_AFTER_SECONDS)),
            Verdict::Unauthenticated => Some((WWW_AUTHENTICATE, "Bearer")),
            // axum says which methods there are.
            Verdict::WrongMethod
            | Verdict::Held
            | Verdict::Busy
            // Says it itself.
            | Verdict::NotAllowed
            | Verdict::DrainFailed
            | Verdict::Refused
            | Verdict::Free
            | Verdict::UnlockFailed
            | Verdict::Malformed
            | Verdict::NoHeader
            | Verdict::Forbidden
            | Verdict::NoSuchPath
            | Verdict::Slow
            | Verdict::TooLarge
            | Verdict::UnknownType
            | Verdict::Gone => None,
        }
    }
}

/// How a request ended, and the line that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) verdict: Verdict,
    line: String,
    again: Option<Duration>,
}

impl Reply {
    pub(super) fn new(verdict: Verdict, line: impl AsRef<str>) -> Self {
        let line = one_line(line.as_ref());
        Self {
            verdict,
            line,
            again: None,
        }
    }

    /// For the lock API: the line and a newline.
    pub(super) fn text(self) -> Response {
        self.response("text/plain; charset=utf-8", format!("{}\n", self.line))
    }

    /// For FleetLock: its error object, or a line that its clients do not read.
    pub(super) fn fleetlock(self) -> Response {
        if self.verdict.status().is_success() {
            return self.text();
        }
        let object = json!({ "kind": self.verdict.word(), "value": self.line });
        self.response("application/json", format!("{object}\n"))
    }

    fn response(&self, content_type: &'static str, body: String) -> Response {
        let mut response = (self.verdict.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some((name, value)) = self.verdict.header() {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(again) = self.again {
            headers.insert(RETRY_AFTER, HeaderValue::from(again.as_secs().max(1)));
        }
        response.extensions_mut().insert(Word(self.verdict.word()));
        response
    }
}

/// Names and reasons come from others: no control character gets into a terminal, no second line into a log.
fn one_line(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.trim_end().chars().map(visible).collect()
}

impl From<LockAnswer> for Reply {
    fn from(answer: LockAnswer) -> Self {
        match answer {
            LockAnswer::Held { why } => Reply::new(Verdict::Held, why),
            LockAnswer::Busy { why } => Reply::new(Verdict::Busy, why),
            LockAnswer::NotAllowed { why, again } => Reply {
                again: Some(again),
                ..Reply::new(Verdict::NotAllowed, why)
            },
            LockAnswer::DrainFailed { why } => Reply::new(Verdict::DrainFailed, why),
            LockAnswer::Refused { why } => Reply::new(Verdict::Refused, why),
            LockAnswer::TooMany { why } => Reply::new(Verdict::TooMany, why),
            LockAnswer::Unavailable { why } => Reply::new(Verdict::Unavailable, why),
        }
    }
}

impl From<UnlockAnswer> for Reply {
    fn from(answer: UnlockAnswer) -> Self {
        match answer {
            UnlockAnswer::Free { why } => Reply::new(Verdict::Free, why),
            UnlockAnswer::Failed { why } => Reply::new(Verdict::UnlockFailed, why),
            UnlockAnswer::Unavailable { why } => Reply::new(Verdict::Unavailable, why),
        }
    }
}
