//! Errors as the API server words them: a `metav1.Status` with code, reason, message and details.

use serde_json::{Value, json};

use super::kinds::ServedResource;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: u16,
    /// The machine-readable reason; empty when the real server sends none.
    pub reason: &'static str,
    pub message: String,
    /// `details` of the Status; `Null` for none.
    pub details: Value,
}

pub type ApiResult<T> = std::result::Result<T, ApiError>;

/// `plural.group` (or `kind.group`), as errors name the resource.
fn group_qualified_name(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// `details` with name, group and kind; empty ones are left out, as with Go's `omitempty`.
pub(crate) fn status_details(group: &str, kind: &str, name: &str) -> Value {
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

    /// 404: the object does not exist.
    pub fn not_found(resource: &ServedResource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified_name());
        let details = status_details(&resource.group, &resource.plural, name);
        Self::new(404, "NotFound", message, details)
    }

    /// 404: the path does not exist.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, json!({}))
    }

    /// 409: the object exists already.
    pub fn already_exists(resource: &ServedResource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified_name());
        let details = status_details(&resource.group, &resource.plural, name);
        Self::new(409, "AlreadyExists", message, details)
    }

    /// 409: a precondition failed. `kind` is what the real server names here: mostly the plural,
    /// sometimes the kind.
    pub fn conflict(group: &str, kind: &str, name: &str, why: &str) -> Self {
        let about = group_qualified_name(group, kind);
        let message = format!("Operation cannot be fulfilled on {about} \"{name}\": {why}");
        Self::new(409, "Conflict", message, status_details(group, kind, name))
    }

    /// 409: the resourceVersion is outdated.
    pub fn modified(resource: &ServedResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(&resource.group, &resource.plural, name, why)
    }

    /// 409: another manager owns a field that this apply would change.
    pub fn apply_conflict(message: String, causes: &[Value]) -> Self {
        Self::new(409, "Conflict", message, json!({ "causes": causes }))
    }

    /// 410: the resourceVersion is older than the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into(), Value::Null)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), Value::Null)
    }

    /// 403, with the reason in prose.
    pub fn forbidden(group: &str, kind: &str, name: &str, why: &str) -> Self {
        let about = group_qualified_name(group, kind);
        let message = if name.is_empty() {
            format!("{about} is forbidden: {why}")
        } else {
            format!("{about} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message, status_details(group, kind, name))
    }

    /// 422, with its causes.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: &[FieldError]) -> Self {
        let about = group_qualified_name(group, kind);
        let mut texts: Vec<String> = causes.iter().map(FieldError::to_text).collect();
        texts.dedup();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{about} \"{name}\" is invalid: {list}");
        let mut details = status_details(group, kind, name);
        details["causes"] = causes.iter().map(FieldError::to_cause).collect();
        Self::new(422, "Invalid", message, details)
    }

    /// 429. `retry_after` is in seconds and becomes `retryAfterSeconds` unless it is 0.
    pub fn too_many_requests(message: &str, retry_after: u32, causes: &[Value]) -> Self {
        let mut details = json!({ "causes": causes });
        if retry_after > 0 {
            details["retryAfterSeconds"] = retry_after.into();
        }
        Self::new(429, "TooManyRequests", message.to_owned(), details)
    }

    /// 405: the resource does not support the verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message, json!({}))
    }

    /// 415: the server does not accept the body's media type.
    pub fn unsupported_media_type() -> Self {
        let message = "415: Unsupported Media Type".to_owned();
        Self::new(415, "UnsupportedMediaType", message, json!({}))
    }

    /// An error that the real server did not foresee: only code and message.
    pub fn without_reason(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, "", message.into(), Value::Null)
    }

    /// Seconds for the `Retry-After` header.
    pub fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds")?.as_u64()
    }

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
    /// The field's path, with dots.
    pub field: String,
    /// Without the field's path.
    pub message: String,
}

impl FieldError {
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

    /// "Invalid value"; the message contains the value as JSON.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }

    /// The value has another type than its schema.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            ..Self::invalid(field, value, detail)
        }
    }

    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let bytes = if max == 1 { "byte" } else { "bytes" };
        Self {
            reason: "FieldValueTooLong",
            field: field.into(),
            message: format!("Too long: may not be more than {max} {bytes}"),
        }
    }

    /// A list or a map has more entries than allowed.
    pub fn too_many(field: impl Into<String>, count: u64, max: u64) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        Self {
            reason: "FieldValueTooMany",
            field: field.into(),
            message: format!("Too many: {count}: must have at most {max} {items}"),
        }
    }

    /// The value is none of the allowed ones.
    pub fn not_supported(field: impl Into<String>, value: &Value, allowed: &[Value]) -> Self {
        let quoted = allowed.iter().map(|value| {
            if value.is_string() {
                value.to_string()
            } else {
                Value::from(value.to_string()).to_string()
            }
        });
        let quoted = quoted.collect::<Vec<_>>().join(", ");
        Self {
            reason: "FieldValueNotSupported",
            field: field.into(),
            message: format!("Unsupported value: {value}: supported values: {quoted}"),
        }
    }

    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            field: field.into(),
            message: format!("Duplicate value: {value}"),
        }
    }

    /// A CEL rule does not hold. `reason` is the rule's own; no value is shown of objects and
    /// lists.
    pub fn for_rule(reason: &str, field: String, value: Option<&Value>, detail: &str) -> Self {
        match reason {
            "FieldValueForbidden" => Self::forbidden(field, detail),
            "FieldValueRequired" => Self::required(field, detail),
            "FieldValueDuplicate" => Self::duplicate(field, value.unwrap_or(&Value::Null)),
            _ => match value {
                Some(value) => Self::invalid(field, value, detail),
                None => Self {
                    reason: "FieldValueInvalid",
                    field,
                    message: format!("Invalid value: {detail}"),
                },
            },
        }
    }

    /// Follows a fault that keeps CEL rules from being evaluated.
    pub fn rules_not_checked() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        Self::invalid("<nil>", &Value::Null, why)
    }

    /// Whether this fault keeps CEL rules from being evaluated.
    pub fn blocks_rules(&self) -> bool {
        matches!(
            self.reason,
            "FieldValueNotSupported"
                | "FieldValueRequired"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
                | "FieldValueTypeInvalid"
        )
    }

    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: format!("Forbidden: {detail}"),
        }
    }

    fn to_text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    fn to_cause(&self) -> Value {
        json!({ "reason": self.reason, "message": self.message, "field": self.field })
    }
}
