//! An answer of a BMC, and what its status means.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AsHeaderName, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use crate::{Class, Fault};

/// A whole answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// `GET /redfish/v1/Systems/1`, for sentences.
    asked: String,
    /// Where it was found in the end.
    pub(super) path: String,
}

/// The longest body of which every value is taken.
const LONGEST_WORDS: usize = 64 << 10;

/// Extended errors (DSP0266 §8.6), and the older spelling of their id.
const IDS: [&str; 2] = ["MessageId", "MessageID"];

/// The ends of message ids that say that the BMC does not know this reset type.
/// Source: DMTF Base registry.
const UNSUPPORTED: [&str; 7] = [
    "ActionNotSupported",
    "ActionParameterNotSupported",
    "ActionParameterUnknown",
    "ActionParameterValueFormatError",
    "ActionParameterValueNotInList",
    "ActionParameterValueTypeError",
    "PropertyValueNotInList",
];

impl Reply {
    pub(super) fn new(response: Response<Bytes>, asked: String, path: String) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
            asked,
            path,
        }
    }

    /// A header as text.
    pub(super) fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The document of a 200.
    ///
    /// # Errors
    /// The status' class; [`Class::Contradiction`] where the document is not whole.
    pub(super) fn document<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        if self.status != StatusCode::OK {
            return Err(self.fault());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let message = format!("{}: {}", self.asked, odd(&error));
            Fault::harmless(Class::Contradiction, message)
        })
    }

    /// The body as JSON, whatever the status: an error's words, or a task. A value in memory takes sixteen times
    /// its text, so that what is longer than either ever is counts as none.
    pub(super) fn json(&self) -> Option<Value> {
        let body = Some(&self.body).filter(|body| body.len() <= LONGEST_WORDS);
        body.and_then(|body| serde_json::from_slice(body).ok())
    }

    /// How long the BMC asks us to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let seconds = self.header(RETRY_AFTER)?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    /// Whether the session or the password was not accepted. HPE says 401 or 403 with `NoValidSession`.
    pub(super) fn is_unauthorized(&self) -> bool {
        let no_session = || self.ids().iter().any(|id| id.ends_with("NoValidSession"));
        self.status == StatusCode::UNAUTHORIZED
            || self.status == StatusCode::FORBIDDEN && no_session()
    }

    /// Whether there was no room for one session more.
    pub(super) fn is_out_of_sessions(&self) -> bool {
        let ids = self.ids();
        ids.iter().any(|id| id.ends_with("SessionLimitExceeded"))
    }

    /// Whether it says that it does not know what was asked for.
    pub(super) fn is_unsupported(&self) -> bool {
        let says_so = |id: &String| UNSUPPORTED.iter().any(|end| id.ends_with(end));
        let unknown = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
        unknown.contains(&self.status) || self.ids().iter().any(says_so)
    }

    /// What this answer is, where another one was wanted. Of a command: a server that failed may have run
    /// it, one that refused has not.
    pub(super) fn fault(&self) -> Fault {
        Fault {
            class: self.class(),
            message: self.sentence(),
            may_have_run: self.status.is_server_error() && !self.is_own_refusal(),
        }
    }

    /// Redfish's own "not now" and "cannot": a gateway in front of it says neither so.
    fn is_own_refusal(&self) -> bool {
        let busy = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let said = self.retry_after().is_some() || !self.ids().is_empty();
        self.status == StatusCode::NOT_IMPLEMENTED || busy && said
    }

    fn class(&self) -> Class {
        match self.status {
            StatusCode::UNAUTHORIZED => Class::WrongCredentials,
            StatusCode::NOT_FOUND | StatusCode::GONE => Class::NoSuchSystem,
            _ if self.is_unsupported() => Class::Unsupported,
            status if status.is_client_error() || status.is_server_error() => Class::Refused,
            _ => Class::Contradiction,
        }
    }

    fn sentence(&self) -> String {
        let Self { asked, status, .. } = self;
        let wait = self.retry_after();
        let wait = wait.map(|wait| format!(", and asks to wait {} s", wait.as_secs()));
        let words = self.words().map(|words| format!(": {words}"));
        let (wait, words) = (wait.unwrap_or_default(), words.unwrap_or_default());
        format!("{asked}: the BMC answered {}{wait}{words}", status.as_u16())
    }

    /// The first message of an extended error, or its id.
    fn words(&self) -> Option<String> {
        let json = self.json()?;
        let error = json.get("error")?;
        let info = error.get("@Message.ExtendedInfo").and_then(first);
        let info = info.and_then(|info| text(info, "Message").or_else(|| id_of(info)));
        info.or_else(|| text(error, "message"))
    }

    fn ids(&self) -> Vec<String> {
        let json = self.json();
        let error = json.as_ref().and_then(|json| json.get("error"));
        let infos = error.and_then(|error| error.get("@Message.ExtendedInfo"));
        let infos = infos.and_then(Value::as_array).into_iter().flatten();
        let code = error.and_then(|error| text(error, "code"));
        infos.filter_map(id_of).chain(code).collect()
    }
}

/// What is wrong with a document, without where: half a document ends elsewhere each time.
fn odd(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Eof | Category::Io => "half a document",
        Category::Syntax => "no JSON",
        Category::Data => "a document of another shape, or with two values for one property",
    }
}

fn first(infos: &Value) -> Option<&Value> {
    infos.as_array().map_or(Some(infos), |infos| infos.first())
}

fn id_of(info: &Value) -> Option<String> {
    IDS.iter().find_map(|name| text(info, name))
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(ToOwned::to_owned)
}
