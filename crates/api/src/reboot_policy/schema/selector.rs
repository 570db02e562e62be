//! Label selectors and label keys.

use serde_json::{Value, json};

use super::words::{formed, list, object, one_of, rule, ruled, with};

const KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
const VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
const HOW_TO_WRITE_A_KEY: &str = "write a label key like app or example.com/app";
const HOW_TO_WRITE_A_VALUE: &str = "write a label value: at most 63 letters, digits, '-', '_' and '.', starting and ending with \
     a letter or digit";

/// How many requirements a selector may have, and how many values each.
const MOST: usize = 32;

/// A label's key.
pub(super) fn key(description: &str) -> Value {
    formed(description, 317, KEY, HOW_TO_WRITE_A_KEY)
}

/// A `metav1.LabelSelector`; `{}` selects everything.
pub(crate) fn selector(description: &str) -> Value {
    object(
        description,
        &[],
        [
            ("matchLabels", match_labels()),
            (
                "matchExpressions",
                list("All of these must hold.", 1, MOST, &requirement()),
            ),
        ],
    )
}

/// One that names at least a label.
pub(super) fn some(description: &str) -> Value {
    ruled(
        selector(description),
        [rule(
            "has(self.matchLabels) || has(self.matchExpressions)",
            "name at least one label in matchLabels or matchExpressions: an empty selector would select every pod",
        )],
    )
}

fn match_labels() -> Value {
    let value = formed("A label's value.", 63, VALUE, HOW_TO_WRITE_A_VALUE);
    let labels = json!({
        "type": "object",
        "description": "Labels with these very values.",
        "minProperties": 1,
        "maxProperties": MOST,
        "additionalProperties": value,
    });
    ruled(
        labels,
        [rule(
            &format!("self.all(key, key.size() <= 317 && key.matches(r'{KEY}'))"),
            HOW_TO_WRITE_A_KEY,
        )],
    )
}

fn requirement() -> Value {
    let value = formed("A label's value.", 63, VALUE, HOW_TO_WRITE_A_VALUE);
    let operator = one_of(
        "In and NotIn compare with values, Exists and DoesNotExist take none.",
        &["In", "NotIn", "Exists", "DoesNotExist"],
    );
    let requirement = object(
        "What is asked of one label.",
        &["key", "operator"],
        [
            ("key", key("The label's key.")),
            ("operator", operator),
            ("values", list("For In and NotIn.", 0, MOST, &value)),
        ],
    );
    with(
        requirement,
        "x-kubernetes-validations",
        json!([rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            "In and NotIn need at least one of values, Exists and DoesNotExist take none",
        )]),
    )
}
