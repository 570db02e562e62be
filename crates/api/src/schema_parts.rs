//! Builds the parts of OpenAPI schemas.

use serde_json::{Map, Value, json};

/// An object with these fields and no others.
pub(crate) fn object_schema<const N: usize>(
    description: &str,
    required: &[&str],
    fields: [(&str, Value); N],
) -> Value {
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let mut object = json!({ "type": "object", "description": description });
    if !properties.is_empty() {
        object["properties"] = Value::Object(properties);
    }
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// A text of at most `longest` characters.
pub(crate) fn text_schema(description: &str, longest: usize) -> Value {
    json!({ "type": "string", "maxLength": longest, "description": description })
}

pub(crate) fn enum_schema(description: &str, words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words, "description": description })
}

/// A list that has `least` to `most` entries if it is given.
pub(crate) fn list_schema(description: &str, least: usize, most: usize, item: &Value) -> Value {
    let mut list = json!({
        "type": "array",
        "description": description,
        "maxItems": most,
        "items": item,
        "x-kubernetes-list-type": "atomic",
    });
    if least > 0 {
        list["minItems"] = json!(least);
    }
    list
}

/// A list without duplicates.
pub(crate) fn set_schema(description: &str, least: usize, most: usize, item: &Value) -> Value {
    with_keyword(
        list_schema(description, least, most, item),
        "x-kubernetes-list-type",
        json!("set"),
    )
}

/// Adds a keyword to a schema.
pub(crate) fn with_keyword(mut schema: Value, word: &str, value: Value) -> Value {
    schema[word] = value;
    schema
}

/// Adds CEL rules to a schema.
pub(crate) fn with_rules<const N: usize>(schema: Value, rules: [Value; N]) -> Value {
    with_keyword(
        schema,
        "x-kubernetes-validations",
        Value::Array(rules.into()),
    )
}

/// A CEL rule, and the message for whoever breaks it.
pub(crate) fn cel_rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

pub(crate) fn pattern_schema(
    description: &str,
    longest: usize,
    form: &str,
    message: &str,
) -> Value {
    with_rules(
        text_schema(description, longest),
        [cel_rule(&format!("self.matches(r'{form}')"), message)],
    )
}

/// Zero is allowed.
const DURATION_PATTERN: &str = r"^(0|([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+)$";
const DURATION_HINT: &str = "write a duration like 90s, 10m or 1h30m (a day is 24h)";

/// A Go duration.
pub(crate) fn duration_schema(description: &str) -> Value {
    pattern_schema(description, 32, DURATION_PATTERN, DURATION_HINT)
}

/// A Go duration longer than zero.
pub(crate) fn time_limit_schema(description: &str) -> Value {
    with_rules(
        text_schema(description, 32),
        [
            cel_rule(
                &format!("self.matches(r'{DURATION_PATTERN}')"),
                DURATION_HINT,
            ),
            cel_rule(
                r"!self.matches(r'^[0.a-zµ]*$')",
                "write a duration longer than zero",
            ),
        ],
    )
}

/// A Go duration of at least `least`; `why` says what to write, and why not less.
pub(crate) fn min_time_limit_schema(description: &str, least: &str, why: &str) -> Value {
    let mut limit = time_limit_schema(description);
    // An invalid duration breaks another rule.
    let least = cel_rule(
        &format!(
            "!self.matches(r'^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') || \
             duration(self) >= duration('{least}')"
        ),
        why,
    );
    if let Some(rules) = limit["x-kubernetes-validations"].as_array_mut() {
        rules.push(least);
    }
    limit
}

pub(crate) fn status_text_schema(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(crate) fn status_count_schema(description: &str) -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 0, "description": description })
}

pub(crate) fn status_time_schema(description: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": description })
}

pub(crate) fn observed_generation_schema() -> Value {
    json!({
        "type": "integer",
        "format": "int64",
        "description": "The metadata.generation that the condition describes.",
    })
}

/// `status.conditions`; `types` names their types.
pub(crate) fn conditions_schema(description: &str, types: &str) -> Value {
    let condition = object_schema(
        "A metav1.Condition.",
        &["type", "status", "lastTransitionTime", "reason", "message"],
        [
            ("type", status_text_schema(types)),
            ("status", status_text_schema("True, False or Unknown.")),
            ("observedGeneration", observed_generation_schema()),
            (
                "lastTransitionTime",
                status_time_schema("When status last changed."),
            ),
            ("reason", status_text_schema("The reason, in one word.")),
            ("message", status_text_schema("The reason, in a sentence.")),
        ],
    );
    json!({
        "type": "array",
        "description": description,
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
