//! Why a query has no answer, and what to do.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

use crate::answer::TokenSent;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Each text continues "cannot be queried: …". Of an answer's body the texts contain only what
/// Prometheus itself calls an error: whoever edits a policy chooses the address, and must not be
/// able to read what another server at it says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("no answer within {} s", .0.as_secs_f32())]
    Slow(Duration),
    #[error("no connection")]
    Connect(#[source] BoxError),
    #[error("no TLS connection; check that --prometheus-ca-file is the CA of this server")]
    Tls(#[source] std::io::Error),
    #[error("the host in the address is not valid for a certificate")]
    ServerName,
    #[error("the connection broke before the answer was complete")]
    Broken(#[source] hyper::Error),
    #[error("the answer is larger than {} MiB; make the result smaller, for instance with count()", .0 >> 20)]
    TooLarge(usize),
    #[error("it redirects{}, and Dogwatch does not follow redirects; write the right address into the policy", redirect_suffix(.0.as_deref()))]
    Redirect(Option<String>),
    #[error("it answers {status}; {}", token.token_advice())]
    NotAllowed {
        status: StatusCode,
        token: TokenSent,
    },
    #[error("it answers {status}{}", status_advice(*status))]
    Status { status: StatusCode },
    #[error("it answers with {}, not like a Prometheus; check the address, and write it without /api/v1", .0.as_deref().unwrap_or("something"))]
    NotPrometheus(Option<String>),
    #[error("it does not understand the query: {0}")]
    BadQuery(String),
    #[error("it says {kind}: {text}")]
    Refused { kind: String, text: String },
    #[error("the answer may be incomplete; Prometheus warns: {0}")]
    Warned(String),
    #[error("the answer is incomplete: some of the storage did not answer")]
    Partial,
    #[error("it reports success but returns no result")]
    NoData,
    #[error("the query returns {0}, which is never empty; write a comparison, like vector(…) > 0")]
    NeverEmpty(&'static str),
    #[error("`alerts.{field}` is not a regular expression: {why}")]
    Regex { field: &'static str, why: String },
    #[error("{flag} {} cannot be read", path.display())]
    File {
        flag: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{flag} {} {what}", path.display())]
    BadFile {
        flag: &'static str,
        path: PathBuf,
        what: &'static str,
    },
    #[error("the coordinator has no CA to check its certificate: set --prometheus-ca-file")]
    NoRoots,
}

impl QueryError {
    /// The error and its causes in one line.
    pub(crate) fn error_chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            // Many libraries repeat the cause in their own text.
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        text
    }
}

impl TokenSent {
    fn token_advice(self) -> &'static str {
        match self {
            TokenSent::Yes => {
                "the token of --prometheus-token-file was sent: check whether it has expired and may query"
            }
            TokenSent::NoneThere => {
                "if it needs a token, set --prometheus-token-file and --prometheus-token-origin"
            }
            TokenSent::OtherOrigin => {
                "no token was sent, because --prometheus-token-origin is another server"
            }
        }
    }
}

fn redirect_suffix(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" to {place}"))
}

fn status_advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "; check the address, and write it without /api/v1",
        StatusCode::URI_TOO_LONG => "; make the query shorter, for instance with a recording rule",
        _ => "",
    }
}
