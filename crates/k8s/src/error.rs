//! Classifies the errors of requests to the API server.
//!
//! **Promises:** a request without an answer fails after [`REQUEST_TIMEOUT`]; the [`ApiErrorKind`]
//! of an [`Error`] tells whether a write may have been done, and whether a retry can help.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use kube::core::Status;
use serde_json::error::Category;
use tokio::time::{Instant, sleep_until};

/// Limit for one request. A connection that died silently (a cut cable, a firewall that dropped its
/// state) never answers. The API server itself gives up on a request after 60 s, but such a late
/// answer is of no use to a caller that works with fresh facts.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused the request.
    #[error("the API server answered {} {}: {}", .0.code, .0.reason, .0.message)]
    Answer(Box<Status>),
    /// The API server denied (403) a list beside a watch that it does not deny: it may have just
    /// started. A retry may help.
    #[error("the API server answered {} {} once: {}", .0.code, .0.reason, .0.message)]
    UnconfirmedRefusal(Box<Status>),
    /// No answer arrived. A write may have been done.
    #[error("no answer from the API server")]
    NoAnswer(#[source] kube::Error),
    /// No answer arrived within this time. A write may have been done.
    #[error("no answer from the API server within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The answer does not have the promised form. A write was done. The text gives the place of
    /// the error and not the content, which may be a Secret.
    #[error("the answer of the API server cannot be read: {0}")]
    Unreadable(String),
    /// The request could not be built or signed. Nothing was sent.
    #[error("the request could not be sent")]
    NotSent(#[source] kube::Error),
}

/// What an [`Error`] means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// No such object (404).
    NotFound,
    /// The object exists already (409 `AlreadyExists`).
    AlreadyExists,
    /// A precondition failed, or another manager owns a field (409 `Conflict`).
    Conflict,
    /// The resource version is too old: the caller has to list again (410).
    Gone,
    /// Not allowed (401, 403). A retry may work later: people repair rights and tokens.
    Forbidden,
    /// Too many requests (429).
    Throttled {
        /// `Retry-After`, if the server sent one.
        after: Option<Duration>,
    },
    /// Any other 4xx: a retry of the same request gets the same answer.
    Refused,
    /// A retry may help (5xx, no answer, timeout). A write may have been done.
    Transient,
}

impl Error {
    pub fn kind(&self) -> ApiErrorKind {
        match self {
            Error::Answer(status) => kind_of_status(status),
            Error::UnconfirmedRefusal(_)
            | Error::NoAnswer(_)
            | Error::Timeout(_)
            | Error::Unreadable(_)
            | Error::NotSent(_) => ApiErrorKind::Transient,
        }
    }

    /// Whether the API server denies the request (403): a decision, while 401 is a temporary
    /// problem of the token.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Error::Answer(status) if status.code == 403)
    }

    /// Whether the API server does not accept the credential (401).
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Error::Answer(status) if status.code == 401)
    }

    /// Whether the caller has no right to this verb: the answer of the authorizer, not of an
    /// admission webhook. Source: Kubernetes, `responsewriters.forbiddenMessage`.
    pub(crate) fn is_missing_right(&self, verb: &str) -> bool {
        let says = format!(" cannot {verb} resource ");
        match self {
            Error::Answer(status) => status.code == 403 && status.message.contains(&says),
            Error::UnconfirmedRefusal(_)
            | Error::NoAnswer(_)
            | Error::Timeout(_)
            | Error::Unreadable(_)
            | Error::NotSent(_) => false,
        }
    }

    /// Whether a ResourceQuota forbids the creation. Source: Kubernetes' admission plugin, which
    /// has no reason of its own for this.
    pub fn is_over_quota(&self) -> bool {
        match self {
            Error::Answer(status) => {
                status.code == 403 && status.message.contains("exceeded quota: ")
            }
            Error::UnconfirmedRefusal(_)
            | Error::NoAnswer(_)
            | Error::Timeout(_)
            | Error::Unreadable(_)
            | Error::NotSent(_) => false,
        }
    }

    /// The error and its causes in one line, for conditions and Events.
    pub fn error_chain(&self) -> String {
        error_chain(self)
    }
}

/// An error and its causes in one line.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Many libraries repeat the cause in their own text.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

impl From<kube::Error> for Error {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "kube's own enum, which grows"
    )]
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Error::Answer(status),
            kube::Error::SerdeError(error) => Error::Unreadable(describe_json_error(&error)),
            kube::Error::FromUtf8(_) => Error::Unreadable("it is not UTF-8".into()),
            kube::Error::BuildRequest(_)
            | kube::Error::HttpError(_)
            | kube::Error::Auth(_)
            | kube::Error::InferConfig(_)
            | kube::Error::InferKubeconfig(_) => Error::NotSent(error),
            _ => Error::NoAnswer(error),
        }
    }
}

fn describe_json_error(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Io | Category::Eof => "it is incomplete",
        Category::Syntax => "it is not JSON",
        Category::Data => "it is not such an object",
    };
    let (line, column) = (error.line(), error.column());
    format!("{what} (line {line}, column {column})")
}

/// Fails after [`REQUEST_TIMEOUT`].
pub async fn with_timeout<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    with_custom_timeout(REQUEST_TIMEOUT, request).await
}

pub async fn with_custom_timeout<T>(
    patience: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    let until = Instant::now() + patience;
    let (mut late, mut request) = (pin!(sleep_until(until)), pin!(request));
    // The deadline is checked before the request is polled. If this process was stopped for a
    // while, both may be ready, and a request that still waits for a connection or for the client's
    // task would be sent now. A timer fires only once the runtime has polled it, so the clock is
    // read as well.
    poll_fn(|cx| {
        if late.as_mut().poll(cx).is_ready() || Instant::now() >= until {
            return Poll::Ready(Err(Error::Timeout(patience)));
        }
        request.as_mut().poll(cx).map_err(Error::from)
    })
    .await
}

fn kind_of_status(status: &Status) -> ApiErrorKind {
    match (status.code, status.reason.as_str()) {
        (401 | 403, _) => ApiErrorKind::Forbidden,
        (404, _) => ApiErrorKind::NotFound,
        (409, "AlreadyExists") => ApiErrorKind::AlreadyExists,
        (409, _) => ApiErrorKind::Conflict,
        (410, _) => ApiErrorKind::Gone,
        (429, _) => ApiErrorKind::Throttled {
            after: retry_after(status),
        },
        (400..=499, _) => ApiErrorKind::Refused,
        _ => ApiErrorKind::Transient,
    }
}

/// kube drops the headers of the answer; the API server repeats `Retry-After` in the body.
fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = u64::from(status.details.as_ref()?.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, reason: &str) -> Error {
        let status = Status::failure("because", reason).with_code(code);
        Error::from(kube::Error::Api(status.boxed()))
    }

    #[tokio::test]
    async fn a_request_that_could_leave_only_after_its_deadline_does_not() {
        for (patience, leaves) in [(Duration::from_millis(1), false), (REQUEST_TIMEOUT, true)] {
            let left = std::cell::Cell::new(false);
            let request = async {
                // Stops the whole process; then it continues with whatever is ready.
                std::thread::sleep(Duration::from_millis(2));
                tokio::task::yield_now().await;
                left.set(true);
                Ok(())
            };
            let answer = with_custom_timeout(patience, request).await;
            let and = (left.get(), answer.is_ok());
            assert_eq!(and, (leaves, leaves), "{patience:?}");
        }
        let answer = with_custom_timeout(Duration::ZERO, async { Ok(()) }).await;
        assert!(matches!(answer, Err(Error::Timeout(_))), "nothing is begun");
    }

    #[test]
    fn every_answer_has_one_meaning() {
        for (code, reason, kind) in [
            (401, "Unauthorized", ApiErrorKind::Forbidden),
            (403, "Forbidden", ApiErrorKind::Forbidden),
            (404, "NotFound", ApiErrorKind::NotFound),
            (409, "AlreadyExists", ApiErrorKind::AlreadyExists),
            (409, "Conflict", ApiErrorKind::Conflict),
            (410, "Expired", ApiErrorKind::Gone),
            (422, "Invalid", ApiErrorKind::Refused),
            (
                429,
                "TooManyRequests",
                ApiErrorKind::Throttled { after: None },
            ),
            (500, "InternalError", ApiErrorKind::Transient),
            (504, "Timeout", ApiErrorKind::Transient),
        ] {
            assert_eq!(answer(code, reason).kind(), kind, "{code} {reason}");
        }
    }

    #[test]
    fn the_servers_wish_when_to_come_back_is_kept() {
        let body = r#"{"code": 429, "details": {"retryAfterSeconds": 7}}"#;
        let status: Status = serde_json::from_str(body).unwrap();
        let kind = Error::Answer(status.boxed()).kind();
        assert_eq!(
            kind,
            ApiErrorKind::Throttled {
                after: Some(Duration::from_secs(7))
            }
        );
    }

    #[test]
    fn the_causes_are_told_once() {
        let text = answer(409, "Conflict").error_chain();
        assert_eq!(text, "the API server answered 409 Conflict: because");
        let cause = std::io::Error::other("connection refused");
        let text = Error::NoAnswer(kube::Error::ReadEvents(cause)).error_chain();
        assert_eq!(text.matches("connection refused").count(), 1, "{text}");
    }
}
