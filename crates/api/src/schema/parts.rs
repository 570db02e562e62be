//! Parts that the schemas of several fields share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// How many requirements a selector may have, and how many values each.
pub(crate) const MAX_SELECTOR_ENTRIES: usize = 32;

/// Zero is allowed.
const DURATION_PATTERN: &str = r"^(0|([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+)$";
const DURATION_HINT: &str = "write a duration like 90s, 10m or 1h30m (a day is 24h)";
const LABEL_KEY_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
const LABEL_VALUE_PATTERN: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
const LABEL_KEY_HINT: &str = "write a label key like app or example.com/app";
const LABEL_VALUE_HINT: &str = "write a label value: at most 63 letters, digits, '-', '_' and '.', starting and ending with \
     a letter or digit";
const NAME_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// A CEL rule, and the message for whoever breaks it.
pub(crate) fn validation_rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A rule whose message is shown at another field.
pub(crate) fn rule_at(field: &str, rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message, "fieldPath": field })
}

/// The text must match the regular expression.
pub(crate) fn pattern_rule(pattern: &str, message: &str) -> Value {
    validation_rule(&format!("self.matches(r'{pattern}')"), message)
}

/// A Go duration of at least `least`; `why` says what to write, and why not less.
pub(crate) fn min_time_limit(least: &str, why: &str) -> Vec<Value> {
    let mut rules = time_limit_rules();
    // An invalid duration breaks another rule.
    rules.push(validation_rule(
        &format!(
            "!self.matches(r'^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') || \
             duration(self) >= duration('{least}')"
        ),
        why,
    ));
    rules
}

fn time_limit_rules() -> Vec<Value> {
    let positive = validation_rule(
        r"!self.matches(r'^[0.a-zµ]*$')",
        "write a duration longer than zero",
    );
    vec![pattern_rule(DURATION_PATTERN, DURATION_HINT), positive]
}

fn text_schema(longest: usize, rules: impl Into<Value>) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": longest,
        "x-kubernetes-validations": rules.into(),
    })
}

/// A list without duplicates.
fn set_schema(least: usize, most: usize, description: &str, mut item: Schema) -> Schema {
    item.insert("description".to_owned(), json!(description));
    json_schema!({
        "type": "array",
        "minItems": least,
        "maxItems": most,
        "items": item,
        "x-kubernetes-list-type": "set",
    })
}

/// A Go duration.
pub(crate) fn duration_text(_: &mut SchemaGenerator) -> Schema {
    text_schema(32, vec![pattern_rule(DURATION_PATTERN, DURATION_HINT)])
}

/// A Go duration longer than zero.
pub(crate) fn time_limit(_: &mut SchemaGenerator) -> Schema {
    text_schema(32, time_limit_rules())
}

/// A regular expression. Prometheus, the API server and kured use the same syntax (RE2).
pub(crate) fn regular_expression(_: &mut SchemaGenerator) -> Schema {
    let valid = validation_rule(
        "'a'.matches(self) in [true, false]",
        "write a regular expression (RE2)",
    );
    let mut regex = text_schema(512, vec![valid]);
    regex.insert("minLength".to_owned(), json!(1));
    regex
}

pub(crate) fn label_key(_: &mut SchemaGenerator) -> Schema {
    text_schema(317, vec![pattern_rule(LABEL_KEY_PATTERN, LABEL_KEY_HINT)])
}

fn label_value() -> Schema {
    let mut value = text_schema(
        63,
        vec![pattern_rule(LABEL_VALUE_PATTERN, LABEL_VALUE_HINT)],
    );
    value.insert("description".to_owned(), json!("A label's value."));
    value
}

/// `values` of a selector's requirement.
pub(crate) fn label_values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": MAX_SELECTOR_ENTRIES, "items": label_value() })
}

/// `matchLabels` of a selector.
pub(crate) fn match_labels(_: &mut SchemaGenerator) -> Schema {
    let keys = validation_rule(
        &format!("self.all(key, key.size() <= 317 && key.matches(r'{LABEL_KEY_PATTERN}'))"),
        LABEL_KEY_HINT,
    );
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": MAX_SELECTOR_ENTRIES,
        "additionalProperties": label_value(),
        "x-kubernetes-validations": [keys],
    })
}

/// The selector names at least one label.
pub(crate) fn names_a_label() -> Value {
    validation_rule(
        "has(self.matchLabels) || has(self.matchExpressions)",
        "name at least one label in matchLabels or matchExpressions: an empty selector would select every pod",
    )
}

/// Labels or annotations.
pub(crate) fn text_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "description": "Its value." },
    })
}

pub(crate) fn weekday_set(_: &mut SchemaGenerator) -> Schema {
    let day = json_schema!({
        "type": "string",
        "enum": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    });
    set_schema(1, 7, "A day.", day)
}

pub(crate) fn excluded_dates(_: &mut SchemaGenerator) -> Schema {
    let day = "(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
    let date = format!("[0-9]{{4}}-{day}");
    let written = pattern_rule(
        &format!("^({date}([.][.]{date})?|{day}([.][.]{day})?)$"),
        "write a date like 2026-12-24, a day of each year like 12-25, or a span like 12-20..01-06",
    );
    // Only a span of dates is that long, and dates sort as texts.
    let in_order = validation_rule(
        "self.size() != 22 || self.find('^[0-9-]{10}') <= self.find('[0-9-]{10}$')",
        "write the earlier date of a span first",
    );
    let entry = text_schema(22, vec![written, in_order]);
    set_schema(1, 128, "A date, a day of each year, or a span.", entry)
}

pub(crate) fn start_time(_: &mut SchemaGenerator) -> Schema {
    let time = pattern_rule(
        "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "write a time of day like 22:00",
    );
    text_schema(5, vec![time])
}

pub(crate) fn time_zone(_: &mut SchemaGenerator) -> Schema {
    let name = pattern_rule(
        "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
        "write a time zone's IANA name like Europe/Berlin, or UTC",
    );
    text_schema(64, vec![name])
}

/// A recurrence rule of RFC 5545.
pub(crate) fn recurrence_rule(_: &mut SchemaGenerator) -> Schema {
    let frequency = pattern_rule(
        r"(?i)^\s*(DTSTART[^\n]*\n\s*)?(RRULE:)?([^\n]*;)?FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[^\n]*)?\s*$",
        "write one rule with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, like FREQ=MONTHLY;BYDAY=2TU",
    );
    let no_time = validation_rule(
        r"!self.matches(r'(?i)BY(HOUR|MINUTE|SECOND)=')",
        "leave out BYHOUR, BYMINUTE and BYSECOND: the times of day are start and end",
    );
    text_schema(512, vec![frequency, no_time])
}

/// Either `days` or `rrule`.
pub(crate) fn days_or_rrule() -> Value {
    validation_rule(
        "!(has(self.days) && has(self.rrule))",
        "write either days or rrule; an rrule can name days by BYDAY",
    )
}

/// The names of up to 500 objects; for more there is the selector.
pub(crate) fn object_names(generator: &mut SchemaGenerator) -> Schema {
    set_schema(1, 500, "A name.", object_name(generator))
}

/// The name of an object.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    let name = pattern_rule(
        NAME_PATTERN,
        "write a name of lower-case letters, digits, '-' and '.'",
    );
    text_schema(253, vec![name])
}

pub(crate) fn object_metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// `status.conditions`.
pub(crate) fn condition_list(generator: &mut SchemaGenerator) -> Schema {
    let condition = ConditionFields::json_schema(generator);
    json_schema!({
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// A metav1.Condition.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "k8s_openapi has the type, but no schema without its second model"
)]
struct ConditionFields {
    /// The type of the condition.
    #[schemars(rename = "type")]
    kind: String,
    /// True, False or Unknown.
    status: String,
    /// The metadata.generation that the condition describes.
    observed_generation: Option<i64>,
    /// When status last changed.
    last_transition_time: jiff::Timestamp,
    /// The reason, in one word.
    reason: String,
    /// The reason, in a sentence.
    message: String,
}
