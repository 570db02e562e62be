//! What schemas are made of.

use serde_json::{Map, Value, json};

/// An object with these fields and no others.
pub(crate) fn object<const N: usize>(
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

/// A text of at most so many characters.
pub(crate) fn text(description: &str, longest: usize) -> Value {
    json!({ "type": "string", "maxLength": longest, "description": description })
}

/// One of these words.
pub(crate) fn one_of(description: &str, words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words, "description": description })
}

/// A list of at most so many; one that is given is not empty, unless `least` is 0.
pub(crate) fn list(description: &str, least: usize, most: usize, item: &Value) -> Value {
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

/// The same, with no value twice.
pub(crate) fn set(description: &str, least: usize, most: usize, item: &Value) -> Value {
    with(
        list(description, least, most, item),
        "x-kubernetes-list-type",
        json!("set"),
    )
}

/// With one more word.
pub(crate) fn with(mut schema: Value, word: &str, value: Value) -> Value {
    schema[word] = value;
    schema
}

/// Held to these rules.
pub(crate) fn ruled<const N: usize>(schema: Value, rules: [Value; N]) -> Value {
    with(
        schema,
        "x-kubernetes-validations",
        Value::Array(rules.into()),
    )
}

/// A CEL rule, and what is said to who breaks it.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A text of a form.
pub(crate) fn formed(description: &str, longest: usize, form: &str, message: &str) -> Value {
    ruled(
        text(description, longest),
        [rule(&format!("self.matches(r'{form}')"), message)],
    )
}

/// Zero included.
const DURATION: &str = r"^(0|([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+)$";
const HOW_TO_WRITE_A_DURATION: &str = "write a duration like 90s, 10m or 1h30m (a day is 24h)";

/// A Go duration.
pub(crate) fn duration(description: &str) -> Value {
    formed(description, 32, DURATION, HOW_TO_WRITE_A_DURATION)
}

/// A Go duration longer than zero.
pub(crate) fn time_limit(description: &str) -> Value {
    ruled(
        text(description, 32),
        [
            rule(
                &format!("self.matches(r'{DURATION}')"),
                HOW_TO_WRITE_A_DURATION,
            ),
            rule(
                r"!self.matches(r'^[0.a-zµ]*$')",
                "write a duration longer than zero",
            ),
        ],
    )
}

/// The same, and at least so long; `why` says what to write, and why not less.
pub(crate) fn time_limit_of_at_least(description: &str, least: &str, why: &str) -> Value {
    let mut limit = time_limit(description);
    // What is no duration has its own rule.
    let least = rule(
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

/// What a status says in words.
pub(crate) fn said(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// How many, in a status.
pub(crate) fn count(description: &str) -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 0, "description": description })
}

/// A moment.
pub(crate) fn time(description: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": description })
}

/// `observedGeneration`.
pub(crate) fn generation() -> Value {
    json!({
        "type": "integer",
        "format": "int64",
        "description": "The metadata.generation that it speaks of.",
    })
}

/// `status.conditions`; `types` names them.
pub(crate) fn conditions(description: &str, types: &str) -> Value {
    let condition = object(
        "A metav1.Condition.",
        &["type", "status", "lastTransitionTime", "reason", "message"],
        [
            ("type", said(types)),
            ("status", said("True, False or Unknown.")),
            ("observedGeneration", generation()),
            ("lastTransitionTime", time("When status last changed.")),
            ("reason", said("Why, in one word.")),
            ("message", said("Why, in a sentence.")),
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
