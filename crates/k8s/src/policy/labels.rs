//! Checks labels and selectors by the API server's rules. Source: `k8s.io/apimachinery`
//! `validation.IsQualifiedName`, `IsValidLabelValue` and `ValidateLabelSelectorRequirement`.

use dogwatch_core::name::NodeName;
use dogwatch_core::selector::{LabelOperator, LabelRequirement, LabelSelector};

/// Maximum length of a label's name and of its value.
const MAX_LABEL_LENGTH: usize = 63;

pub(crate) fn selector_problem(selector: &LabelSelector) -> Option<String> {
    let mut equal = selector.match_labels.iter();
    let mut parts = selector.match_expressions.iter();
    equal
        .find_map(|(key, value)| {
            key_problem(key)
                .or_else(|| value_problem(value))
                .map(|problem| format!("matchLabels: {problem}"))
        })
        .or_else(|| {
            parts
                .find_map(requirement_problem)
                .map(|problem| format!("matchExpressions: {problem}"))
        })
}

/// For a selector that must not select everything: an empty one is probably unfinished.
pub(super) fn nonempty_selector_problem(selector: &LabelSelector) -> Option<String> {
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        return Some("it is empty and would select every pod: name a label".to_owned());
    }
    selector_problem(selector)
}

fn requirement_problem(part: &LabelRequirement) -> Option<String> {
    if let Some(problem) = key_problem(&part.key) {
        return Some(problem);
    }
    let wrong = match part.operator {
        LabelOperator::In | LabelOperator::NotIn => part
            .values
            .is_empty()
            .then_some("needs at least one of `values`"),
        LabelOperator::Exists | LabelOperator::DoesNotExist => {
            (!part.values.is_empty()).then_some("takes no `values`")
        }
    };
    let wrong = wrong.map(|wrong| format!("{:?} on {:?} {wrong}", part.operator, part.key));
    wrong.or_else(|| part.values.iter().find_map(|value| value_problem(value)))
}

/// What is wrong with a label's key: a name, or a DNS prefix, a slash and a name.
pub(super) fn key_problem(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let fits = is_label_name(name) && prefix.is_none_or(|prefix| NodeName::new(prefix).is_ok());
    (!fits).then(|| format!("{key:?} is not a label key: write it like app or example.com/app"))
}

fn value_problem(value: &str) -> Option<String> {
    let fits = value.is_empty() || is_label_name(value);
    (!fits).then(|| {
        format!(
            "{value:?} is not a label value: at most 63 letters, digits, '-', '_' and '.', \
             starting and ending with a letter or digit"
        )
    })
}

fn is_label_name(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let outer = |c: Option<&u8>| c.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MAX_LABEL_LENGTH
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().all(|c| inner(*c))
}
