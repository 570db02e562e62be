//! A BMC's answer, and what its status means.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AsHeaderName, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use crate::{BmcFault, FaultClass};

#[derive(Debug)]
pub(super) struct RedfishReply {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// `GET /redfish/v1/Systems/1`, for messages.
    asked: String,
    /// The path that answered, perhaps after a redirect.
    pub(super) path: String,
}

/// The longest body, in bytes, that is parsed as untyped JSON.
const JSON_BODY_LIMIT: usize = 64 << 10;

/// Extended errors (DSP0266 §8.6), and the older spelling of their id.
const MESSAGE_ID_NAMES: [&str; 2] = ["MessageId", "MessageID"];

/// Suffixes of message ids that mean that the BMC does not know this reset type. Source: DMTF Base
/// registry.
const UNSUPPORTED_MESSAGE_IDS: [&str; 7] = [
    "ActionNotSupported",
    "ActionParameterNotSupported",
    "ActionParameterUnknown",
    "ActionParameterValueFormatError",
    "ActionParameterValueNotInList",
    "ActionParameterValueTypeError",
    "PropertyValueNotInList",
];

impl RedfishReply {
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

    pub(super) fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Parses the document of an answer with status 200.
    ///
    /// # Errors
    /// The status' class; [`FaultClass::Contradiction`] if the document is not complete.
    pub(super) fn parse_document<T: DeserializeOwned>(&self) -> Result<T, BmcFault> {
        if self.status != StatusCode::OK {
            return Err(self.to_fault());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let message = format!("{}: {}", self.asked, json_error_text(&error));
            BmcFault::without_effect(FaultClass::Contradiction, message)
        })
    }

    /// The body as JSON, whatever the status: an error message, or a task. A parsed value takes
    /// sixteen times the memory of its text, so a body that is longer than either ever is counts as
    /// none.
    pub(super) fn body_json(&self) -> Option<Value> {
        let body = Some(&self.body).filter(|body| body.len() <= JSON_BODY_LIMIT);
        body.and_then(|body| serde_json::from_slice(body).ok())
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        let seconds = self.header(RETRY_AFTER)?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    /// Whether the session or the password was refused. HPE answers 401 or 403 with
    /// `NoValidSession`.
    pub(super) fn is_unauthorized(&self) -> bool {
        let no_session = || {
            self.message_ids()
                .iter()
                .any(|id| id.ends_with("NoValidSession"))
        };
        self.status == StatusCode::UNAUTHORIZED
            || self.status == StatusCode::FORBIDDEN && no_session()
    }

    /// Whether the BMC has no room for another session.
    pub(super) fn is_out_of_sessions(&self) -> bool {
        let ids = self.message_ids();
        ids.iter().any(|id| id.ends_with("SessionLimitExceeded"))
    }

    /// Whether the BMC says that it does not support the request.
    pub(super) fn is_unsupported(&self) -> bool {
        let says_so = |id: &String| UNSUPPORTED_MESSAGE_IDS.iter().any(|end| id.ends_with(end));
        let unknown = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
        unknown.contains(&self.status) || self.message_ids().iter().any(says_so)
    }

    /// Converts an unexpected answer into a fault. For commands: a server error may mean that the
    /// command has run; a refusal means that it has not.
    pub(super) fn to_fault(&self) -> BmcFault {
        BmcFault {
            class: self.fault_class(),
            message: self.fault_message(),
            may_have_run: self.status.is_server_error() && !self.is_own_refusal(),
        }
    }

    /// Whether the BMC itself answered "not now" or "cannot". A gateway in front of it sends
    /// neither.
    fn is_own_refusal(&self) -> bool {
        let busy = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let said = self.retry_after().is_some() || !self.message_ids().is_empty();
        self.status == StatusCode::NOT_IMPLEMENTED || busy && said
    }

    fn fault_class(&self) -> FaultClass {
        match self.status {
            StatusCode::UNAUTHORIZED => FaultClass::WrongCredentials,
            StatusCode::NOT_FOUND | StatusCode::GONE => FaultClass::NoSuchSystem,
            _ if self.is_unsupported() => FaultClass::Unsupported,
            status if status.is_client_error() || status.is_server_error() => FaultClass::Refused,
            _ => FaultClass::Contradiction,
        }
    }

    fn fault_message(&self) -> String {
        let Self { asked, status, .. } = self;
        let wait = self.retry_after();
        let wait = wait.map(|wait| format!(", and asks to wait {} s", wait.as_secs()));
        let words = self.error_message().map(|words| format!(": {words}"));
        let (wait, words) = (wait.unwrap_or_default(), words.unwrap_or_default());
        format!("{asked}: the BMC answered {}{wait}{words}", status.as_u16())
    }

    /// The first message of an extended error, or its id.
    fn error_message(&self) -> Option<String> {
        let json = self.body_json()?;
        let error = json.get("error")?;
        let info = error.get("@Message.ExtendedInfo").and_then(first_info);
        let info =
            info.and_then(|info| string_member(info, "Message").or_else(|| message_id(info)));
        info.or_else(|| string_member(error, "message"))
    }

    fn message_ids(&self) -> Vec<String> {
        let json = self.body_json();
        let error = json.as_ref().and_then(|json| json.get("error"));
        let infos = error.and_then(|error| error.get("@Message.ExtendedInfo"));
        let infos = infos.and_then(Value::as_array).into_iter().flatten();
        let code = error.and_then(|error| string_member(error, "code"));
        infos.filter_map(message_id).chain(code).collect()
    }
}

/// The kind of JSON error without its position: a truncated document ends at another position each
/// time.
fn json_error_text(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        Category::Eof | Category::Io => "incomplete JSON",
        Category::Syntax => "not JSON",
        Category::Data => "JSON with unexpected types, or with two values for one property",
    }
}

fn first_info(infos: &Value) -> Option<&Value> {
    infos.as_array().map_or(Some(infos), |infos| infos.first())
}

fn message_id(info: &Value) -> Option<String> {
    MESSAGE_ID_NAMES
        .iter()
        .find_map(|name| string_member(info, name))
}

fn string_member(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(ToOwned::to_owned)
}
