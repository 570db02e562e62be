//! Schemas of label selectors and label keys.

use serde_json::{Value, json};

use super::words::{
    cel_rule, enum_schema, list_schema, object_schema, pattern_schema, with_keyword, with_rules,
};

const LABEL_KEY_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
const LABEL_VALUE_PATTERN: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
const LABEL_KEY_HINT: &str = "write a label key like app or example.com/app";
const LABEL_VALUE_HINT: &str = "write a label value: at most 63 letters, digits, '-', '_' and '.', starting and ending with \
     a letter or digit";

/// How many requirements a selector may have, and how many values each.
const MAX_SELECTOR_ENTRIES: usize = 32;

pub(super) fn label_key_schema(description: &str) -> Value {
    pattern_schema(description, 317, LABEL_KEY_PATTERN, LABEL_KEY_HINT)
}

/// A `metav1.LabelSelector`; `{}` selects everything.
pub(crate) fn selector_schema(description: &str) -> Value {
    object_schema(
        description,
        &[],
        [
            ("matchLabels", match_labels_schema()),
            (
                "matchExpressions",
                list_schema(
                    "All of these must hold.",
                    1,
                    MAX_SELECTOR_ENTRIES,
                    &requirement_schema(),
                ),
            ),
        ],
    )
}

/// A selector that names at least one label.
pub(super) fn nonempty_selector_schema(description: &str) -> Value {
    with_rules(
        selector_schema(description),
        [cel_rule(
            "has(self.matchLabels) || has(self.matchExpressions)",
            "name at least one label in matchLabels or matchExpressions: an empty selector would select every pod",
        )],
    )
}

fn match_labels_schema() -> Value {
    let value = pattern_schema(
        "A label's value.",
        63,
        LABEL_VALUE_PATTERN,
        LABEL_VALUE_HINT,
    );
    let labels = json!({
        "type": "object",
        "description": "Labels with exactly these values.",
        "minProperties": 1,
        "maxProperties": MAX_SELECTOR_ENTRIES,
        "additionalProperties": value,
    });
    with_rules(
        labels,
        [cel_rule(
            &format!("self.all(key, key.size() <= 317 && key.matches(r'{LABEL_KEY_PATTERN}'))"),
            LABEL_KEY_HINT,
        )],
    )
}

fn requirement_schema() -> Value {
    let value = pattern_schema(
        "A label's value.",
        63,
        LABEL_VALUE_PATTERN,
        LABEL_VALUE_HINT,
    );
    let operator = enum_schema(
        "In and NotIn compare with values, Exists and DoesNotExist take none.",
        &["In", "NotIn", "Exists", "DoesNotExist"],
    );
    let requirement = object_schema(
        "A requirement for one label.",
        &["key", "operator"],
        [
            ("key", label_key_schema("The label's key.")),
            ("operator", operator),
            (
                "values",
                list_schema("For In and NotIn.", 0, MAX_SELECTOR_ENTRIES, &value),
            ),
        ],
    );
    with_keyword(
        requirement,
        "x-kubernetes-validations",
        json!([cel_rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            "In and NotIn need at least one of values, Exists and DoesNotExist take none",
        )]),
    )
}
