//! Label selectors as kubectl's users write them (`a=b,c in (d,e),!f`).

use std::collections::BTreeMap;

use crate::selector::{LabelSelector, Operator, Requirement};

/// Reads one; the error says what cannot be in a policy.
pub(super) fn parse(text: &str) -> Result<LabelSelector, String> {
    let mut selector = LabelSelector::default();
    for part in parts(text) {
        let requirement = requirement(part.trim())?;
        let equal = requirement.operator == Operator::In && requirement.values.len() == 1;
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

/// What the selector does not select, where a selector can say that.
pub(super) fn opposite(selector: &LabelSelector) -> Option<LabelSelector> {
    let equal = selector
        .match_labels
        .iter()
        .map(|(key, value)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: vec![value.clone()],
        });
    let mut all: Vec<Requirement> = equal
        .chain(selector.match_expressions.iter().cloned())
        .collect();
    let mut one = all.pop().filter(|_| all.is_empty())?;
    one.operator = match one.operator {
        Operator::In => Operator::NotIn,
        Operator::NotIn => Operator::In,
        Operator::Exists => Operator::DoesNotExist,
        Operator::DoesNotExist => Operator::Exists,
    };
    Some(LabelSelector {
        match_labels: BTreeMap::new(),
        match_expressions: vec![one],
    })
}

/// Split at the commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
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

fn requirement(text: &str) -> Result<Requirement, String> {
    let of = |key: &str, operator, values: Vec<String>| {
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(format!("{text:?} is no label requirement"));
        }
        Ok(Requirement {
            key: key.to_owned(),
            operator,
            values,
        })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = text.split_once("!=") {
        return of(key, Operator::NotIn, one(value));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return of(key, Operator::In, one(value));
    }
    if text.contains(['<', '>']) {
        return Err(format!(
            "{text:?} compares numbers, which a LabelSelector cannot"
        ));
    }
    if let Some(key) = text.strip_prefix('!') {
        return of(key, Operator::DoesNotExist, Vec::new());
    }
    let Some((head, list)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return of(text, Operator::Exists, Vec::new());
    };
    let values = list
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    let mut words = head.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(key), Some("in"), None) => of(key, Operator::In, values),
        (Some(key), Some("notin"), None) => of(key, Operator::NotIn, values),
        (_, _, _) => Err(format!("{text:?} is no label requirement")),
    }
}
