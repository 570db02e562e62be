//! Refusals, as the API server words them: a `metav1.Status` with code, reason, message and details.

use serde_json::{Value, json};

use super::kinds::Resource;

/// A refusal on its way to become a `Status` body.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, empty when the real server gives none.
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
    /// `details` of the Status; `Null` when there are none.
    pub details: Value,
}

/// What every verb gives back.
pub type Result<T> = std::result::Result<T, ApiError>;

/// The group and the plural (or the kind) that an error is about.
fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// `details` with name, group and kind, empty ones left out as Go's `omitempty` does.
pub(crate) fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut out = serde_json::Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            out.insert(key.to_owned(), value.into());
        }
    }
    Value::Object(out)
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: String, details: Value) -> Self {
        Self {
            code,
            reason,
            message,
            details,
        }
    }

    /// 404: no such object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        let details = details(&resource.group, &resource.plural, name);
        Self::new(404, "NotFound", message, details)
    }

    /// 404: no such path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, json!({}))
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        let details = details(&resource.group, &resource.plural, name);
        Self::new(409, "AlreadyExists", message, details)
    }

    /// 409: a precondition does not hold. `kind` is what the real server names here: mostly the
    /// plural, sometimes the kind.
    pub fn conflict(group: &str, kind: &str, name: &str, why: &str) -> Self {
        let about = qualified(group, kind);
        let message = format!("Operation cannot be fulfilled on {about} \"{name}\": {why}");
        Self::new(409, "Conflict", message, details(group, kind, name))
    }

    /// 409: the resourceVersion is not the newest.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(&resource.group, &resource.plural, name, why)
    }

    /// 409: another manager owns what this apply would change.
    pub fn apply_conflict(message: String, causes: &[Value]) -> Self {
        Self::new(409, "Conflict", message, json!({ "causes": causes }))
    }

    /// 410: the resourceVersion is older than the history kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into(), Value::Null)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), Value::Null)
    }

    /// 403 with a reason in prose.
    pub fn forbidden(group: &str, kind: &str, name: &str, why: &str) -> Self {
        let about = qualified(group, kind);
        let message = if name.is_empty() {
            format!("{about} is forbidden: {why}")
        } else {
            format!("{about} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message, details(group, kind, name))
    }

    /// 422 with its causes.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: &[FieldError]) -> Self {
        let about = qualified(group, kind);
        let mut texts: Vec<String> = causes.iter().map(FieldError::text).collect();
        texts.dedup();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{about} \"{name}\" is invalid: {list}");
        let mut details = details(group, kind, name);
        details["causes"] = causes.iter().map(FieldError::cause).collect();
        Self::new(422, "Invalid", message, details)
    }

    /// 429, with `retryAfterSeconds` in the details when it is not 0.
    pub fn too_many_requests(message: &str, retry_after: u32, causes: &[Value]) -> Self {
        let mut details = json!({ "causes": causes });
        if retry_after > 0 {
            details["retryAfterSeconds"] = retry_after.into();
        }
        Self::new(429, "TooManyRequests", message.to_owned(), details)
    }

    /// 405: the resource has no such verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message, json!({}))
    }

    /// 415: a body of a type that the server does not take.
    pub fn unsupported_media_type() -> Self {
        let message = "415: Unsupported Media Type".to_owned();
        Self::new(415, "UnsupportedMediaType", message, json!({}))
    }

    /// An error that the real server did not foresee: code and message only.
    pub fn plain(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, "", message.into(), Value::Null)
    }

    /// Seconds after which the client may come again, for the `Retry-After` header.
    pub fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds")?.as_u64()
    }

    /// The body.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// One cause of a 422.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// `FieldValueRequired`, `FieldValueInvalid`, …
    pub reason: &'static str,
    /// The field's path, dotted.
    pub field: String,
    /// Without the field's path.
    pub message: String,
}

impl FieldError {
    /// "Required value".
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            reason: "FieldValueRequired",
            field: field.into(),
            message,
        }
    }

    /// "Invalid value", with the value as JSON.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }

    /// "Too long".
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        Self {
            reason: "FieldValueTooLong",
            field: field.into(),
            message: format!("Too long: may not be more than {max} bytes"),
        }
    }

    /// "Forbidden".
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: format!("Forbidden: {detail}"),
        }
    }

    fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    fn cause(&self) -> Value {
        json!({ "reason": self.reason, "message": self.message, "field": self.field })
    }
}
