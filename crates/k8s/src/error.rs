//! What can go wrong when the API server is asked, and what that means for the one who asked.
//!
//! Promises: a request that gets no answer fails after [`PATIENCE`], and whoever gets an [`Error`]
//! can tell by its [`Kind`] whether it may have acted, and whether it is worth asking again.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use kube::core::Status;
use serde_json::error::Category;
use tokio::time::{Instant, sleep_until};

/// How long one request may take. A connection that died silently (a cut cable, a firewall that
/// forgot it) answers never; the API server itself gives up on a request after 60 s, but an answer
/// that late is of no use to a caller that works with fresh facts.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Why a request was not answered as hoped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server said no.
    #[error("the API server answered {} {}: {}", .0.code, .0.reason, .0.message)]
    Answer(Box<Status>),
    /// There was no answer; a write may or may not have been done.
    #[error("no answer from the API server")]
    NoAnswer(#[source] kube::Error),
    /// There was no answer in time; a write may or may not have been done.
    #[error("no answer from the API server within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The answer is not what the API promises; a write was done. Where it is so, and not what stands
    /// there: it may be a Secret.
    #[error("the answer of the API server cannot be read: {0}")]
    Unreadable(String),
    /// The request could not even be built or signed; nothing was sent.
    #[error("the request could not be sent")]
    NotSent(#[source] kube::Error),
}

/// What an [`Error`] means for the one who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There is no such object (404).
    NotFound,
    /// There is one already (409 `AlreadyExists`).
    AlreadyExists,
    /// A precondition does not hold, or another manager owns a field (409 `Conflict`).
    Conflict,
    /// The resource version is too old: list again (410).
    Gone,
    /// Not allowed (401, 403). It may be soon: rights and tokens are mended by people.
    Forbidden,
    /// Too many requests (429): not before this, if the server said when.
    Throttled {
        /// `Retry-After`.
        after: Option<Duration>,
    },
    /// Any other 4xx: the same request will never be answered otherwise.
    Refused,
    /// Asking again may help (5xx, no answer, no time). A write may have been done.
    Transient,
}

impl Error {
    /// What it means.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Answer(status) => kind_of(status),
            Error::NoAnswer(_) | Error::Timeout(_) | Error::Unreadable(_) | Error::NotSent(_) => {
                Kind::Transient
            }
        }
    }

    /// Whether a ResourceQuota lets no more of them be made. Source: Kubernetes' admission plugin, which
    /// has no reason of its own for it.
    pub fn is_over_quota(&self) -> bool {
        match self {
            Error::Answer(status) => {
                status.code == 403 && status.message.contains("exceeded quota: ")
            }
            Error::NoAnswer(_) | Error::Timeout(_) | Error::Unreadable(_) | Error::NotSent(_) => {
                false
            }
        }
    }

    /// The error and its causes in one line, for conditions and Events.
    pub fn in_words(&self) -> String {
        in_words(self)
    }
}

/// An error and its causes in one line.
pub fn in_words(error: &dyn std::error::Error) -> String {
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
            kube::Error::SerdeError(error) => Error::Unreadable(place_of(&error)),
            kube::Error::FromUtf8(_) => Error::Unreadable("it is no UTF-8".into()),
            kube::Error::BuildRequest(_)
            | kube::Error::HttpError(_)
            | kube::Error::Auth(_)
            | kube::Error::InferConfig(_)
            | kube::Error::InferKubeconfig(_) => Error::NotSent(error),
            _ => Error::NoAnswer(error),
        }
    }
}

fn place_of(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Io | Category::Eof => "it breaks off",
        Category::Syntax => "it is no JSON",
        Category::Data => "it is no such object",
    };
    let (line, column) = (error.line(), error.column());
    format!("{what} (line {line}, column {column})")
}

/// Asks, but not for longer than [`PATIENCE`].
pub async fn ask<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    ask_for(PATIENCE, request).await
}

/// Asks, but not for longer than this.
pub async fn ask_for<T>(
    patience: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    let until = Instant::now() + patience;
    let (mut late, mut request) = (pin!(sleep_until(until)), pin!(request));
    // The deadline goes first. Where this process was stopped for a while, both have come; and a request
    // that waits for a connection, or for the client's own task, would leave now. A timer is ready once the
    // runtime has looked at it, so the clock is asked as well.
    poll_fn(|cx| {
        if late.as_mut().poll(cx).is_ready() || Instant::now() >= until {
            return Poll::Ready(Err(Error::Timeout(patience)));
        }
        request.as_mut().poll(cx).map_err(Error::from)
    })
    .await
}

fn kind_of(status: &Status) -> Kind {
    match (status.code, status.reason.as_str()) {
        (401 | 403, _) => Kind::Forbidden,
        (404, _) => Kind::NotFound,
        (409, "AlreadyExists") => Kind::AlreadyExists,
        (409, _) => Kind::Conflict,
        (410, _) => Kind::Gone,
        (429, _) => Kind::Throttled {
            after: retry_after(status),
        },
        (400..=499, _) => Kind::Refused,
        _ => Kind::Transient,
    }
}

/// kube drops the answer's headers; the API server repeats `Retry-After` in the body.
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
        for (patience, leaves) in [(Duration::from_millis(1), false), (PATIENCE, true)] {
            let left = std::cell::Cell::new(false);
            let request = async {
                // The whole process stands still, and then goes on with whatever is ready.
                std::thread::sleep(Duration::from_millis(2));
                tokio::task::yield_now().await;
                left.set(true);
                Ok(())
            };
            let answer = ask_for(patience, request).await;
            let and = (left.get(), answer.is_ok());
            assert_eq!(and, (leaves, leaves), "{patience:?}");
        }
        let answer = ask_for(Duration::ZERO, async { Ok(()) }).await;
        assert!(matches!(answer, Err(Error::Timeout(_))), "nothing is begun");
    }

    #[test]
    fn every_answer_has_one_meaning() {
        for (code, reason, kind) in [
            (401, "Unauthorized", Kind::Forbidden),
            (403, "Forbidden", Kind::Forbidden),
            (404, "NotFound", Kind::NotFound),
            (409, "AlreadyExists", Kind::AlreadyExists),
            (409, "Conflict", Kind::Conflict),
            (410, "Expired", Kind::Gone),
            (422, "Invalid", Kind::Refused),
            (429, "TooManyRequests", Kind::Throttled { after: None }),
            (500, "InternalError", Kind::Transient),
            (504, "Timeout", Kind::Transient),
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
            Kind::Throttled {
                after: Some(Duration::from_secs(7))
            }
        );
    }

    #[test]
    fn the_causes_are_told_once() {
        let text = answer(409, "Conflict").in_words();
        assert_eq!(text, "the API server answered 409 Conflict: because");
        let cause = std::io::Error::other("connection refused");
        let text = Error::NoAnswer(kube::Error::ReadEvents(cause)).in_words();
        assert_eq!(text.matches("connection refused").count(), 1, "{text}");
    }
}
