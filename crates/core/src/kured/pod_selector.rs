//! Label selectors in kubectl's syntax (`a=b,c in (d,e),!f`).

use std::collections::BTreeMap;

use crate::selector::{LabelOperator, LabelRequirement, LabelSelector};

/// Parses a selector; the error says what a policy cannot express.
pub(super) fn parse_selector(text: &str) -> Result<LabelSelector, String> {
    let mut selector = LabelSelector::default();
    for part in split_requirements(text) {
        let requirement = parse_requirement(part.trim())?;
        let equal = requirement.operator == LabelOperator::In && requirement.values.len() == 1;
        if equal && !selector.match_labels.contains_key(&requirement.key) {
            let value = requirement.values[0].clone();
            selector.match_labels.insert(requirement.key, value);
        } else {
            selector.match_expressions.push(requirement);
        }
    }
    if selector == LabelSelector::default() {
        return Err("it selects every pod, and a gate must name a label".to_owned());
    }
    Ok(selector)
}

/// A selector for everything that this one does not select, if a selector can express that.
pub(super) fn negate_selector(selector: &LabelSelector) -> Option<LabelSelector> {
    let equal = selector
        .match_labels
        .iter()
        .map(|(key, value)| LabelRequirement {
            key: key.clone(),
            operator: LabelOperator::In,
            values: vec![value.clone()],
        });
    let mut all: Vec<LabelRequirement> = equal
        .chain(selector.match_expressions.iter().cloned())
        .collect();
    let mut one = all.pop().filter(|_| all.is_empty())?;
    one.operator = match one.operator {
        LabelOperator::In => LabelOperator::NotIn,
        LabelOperator::NotIn => LabelOperator::In,
        LabelOperator::Exists => LabelOperator::DoesNotExist,
        LabelOperator::DoesNotExist => LabelOperator::Exists,
    };
    Some(LabelSelector {
        match_labels: BTreeMap::new(),
        match_expressions: vec![one],
    })
}

/// Splits at the commas outside parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn parse_requirement(text: &str) -> Result<LabelRequirement, String> {
    let of = |key: &str, operator, values: Vec<String>| {
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(format!("{text:?} is not a label requirement"));
        }
        Ok(LabelRequirement {
            key: key.to_owned(),
            operator,
            values,
        })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = text.split_once("!=") {
        return of(key, LabelOperator::NotIn, one(value));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return of(key, LabelOperator::In, one(value));
    }
    if text.contains(['<', '>']) {
        return Err(format!(
            "{text:?} compares numbers, which a LabelSelector cannot"
        ));
    }
    if let Some(key) = text.strip_prefix('!') {
        return of(key, LabelOperator::DoesNotExist, Vec::new());
    }
    let Some((head, list)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return of(text, LabelOperator::Exists, Vec::new());
    };
    let values = list
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    let mut words = head.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(key), Some("in"), None) => of(key, LabelOperator::In, values),
        (Some(key), Some("notin"), None) => of(key, LabelOperator::NotIn, values),
        (_, _, _) => Err(format!("{text:?} is not a label requirement")),
    }
}
