//! Label and field selectors, in query parameters and in objects.

use serde_json::Value;

use super::kinds::ServedResource;
use super::status::{ApiError, ApiResult};
use super::value::{list_at, meta_text, value_at};

#[derive(Debug, Clone, PartialEq)]
enum SelectorRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    NotExists(String),
}

impl SelectorRequirement {
    fn matches_labels(&self, labels: Option<&Value>) -> bool {
        let get = |key: &str| {
            labels
                .and_then(|labels| labels.get(key))
                .and_then(Value::as_str)
        };
        match self {
            Self::In(key, values) => {
                get(key).is_some_and(|value| values.iter().any(|v| v == value))
            }
            Self::NotIn(key, values) => {
                get(key).is_none_or(|value| values.iter().all(|v| v != value))
            }
            Self::Exists(key) => get(key).is_some(),
            Self::NotExists(key) => get(key).is_none(),
        }
    }
}

/// Label requirements, all of which must hold; an empty selector selects everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiLabelSelector(Vec<SelectorRequirement>);

impl ApiLabelSelector {
    /// Parses a `labelSelector` parameter. The error is a message.
    pub fn parse(source: &str) -> std::result::Result<Self, String> {
        let terms = split_terms(source);
        let parsed: std::result::Result<Vec<_>, String> = terms
            .iter()
            .filter(|term| !term.is_empty())
            .map(|term| parse_requirement(term))
            .collect();
        parsed.map(Self)
    }

    /// Parses a `metav1.LabelSelector`. None when it is invalid. An absent selector selects
    /// nothing, an empty one everything.
    pub fn from_object(selector: Option<&Value>) -> Option<Self> {
        let selector = selector.filter(|selector| selector.is_object())?;
        let mut out = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                out.push(SelectorRequirement::In(
                    key.clone(),
                    vec![value.as_str()?.to_owned()],
                ));
            }
        }
        for expression in list_at(selector, &["matchExpressions"]) {
            let key = expression.get("key")?.as_str()?.to_owned();
            let values = list_at(expression, &["values"])
                .iter()
                .filter_map(Value::as_str);
            let values: Vec<String> = values.map(Into::into).collect();
            out.push(match expression.get("operator")?.as_str()? {
                "In" if !values.is_empty() => SelectorRequirement::In(key, values),
                "NotIn" if !values.is_empty() => SelectorRequirement::NotIn(key, values),
                "Exists" => SelectorRequirement::Exists(key),
                "DoesNotExist" => SelectorRequirement::NotExists(key),
                _ => return None,
            });
        }
        Some(Self(out))
    }

    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = value_at(object, &["metadata", "labels"]);
        self.0
            .iter()
            .all(|requirement| requirement.matches_labels(labels))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Splits at commas outside brackets.
fn split_terms(source: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (index, letter) in source.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(source[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(source[start..].trim());
    terms
}

fn parse_requirement(term: &str) -> std::result::Result<SelectorRequirement, String> {
    if let Some(key) = term.strip_prefix('!') {
        return Ok(SelectorRequirement::NotExists(parse_label_key(key)?));
    }
    for (sign, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = term.split_once(sign) {
            let values = vec![parse_label_value(value)?];
            let key = parse_label_key(key)?;
            return Ok(if equal {
                SelectorRequirement::In(key, values)
            } else {
                SelectorRequirement::NotIn(key, values)
            });
        }
    }
    let mut words = term.splitn(2, char::is_whitespace);
    let (key, rest) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default().trim(),
    );
    if rest.is_empty() {
        return Ok(SelectorRequirement::Exists(parse_label_key(key)?));
    }
    let unknown = |word: &str| {
        Err(format!(
            "unable to parse requirement: found '{word}', expected: in, notin, =, ==, !=, gt, lt"
        ))
    };
    let mut words = rest.splitn(2, |letter: char| letter.is_whitespace() || letter == '(');
    let operator = words.next().unwrap_or_default();
    if !matches!(operator, "in" | "notin") {
        return unknown(operator);
    }
    let list = rest[operator.len()..].trim();
    let Some(list) = list.strip_prefix('(') else {
        return Err(format!(
            "unable to parse requirement: found '{list}' expected: '('"
        ));
    };
    let Some(list) = list.strip_suffix(')') else {
        return Err("unable to parse requirement: found '', expected: ',' or ')'".to_owned());
    };
    let values: std::result::Result<Vec<String>, String> =
        list.split(',').map(parse_label_value).collect();
    let key = parse_label_key(key)?;
    Ok(if operator == "in" {
        SelectorRequirement::In(key, values?)
    } else {
        SelectorRequirement::NotIn(key, values?)
    })
}

fn parse_label_key(key: &str) -> std::result::Result<String, String> {
    let key = key.trim();
    let sound = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    if key.is_empty() || !key.chars().all(sound) {
        return Err(format!(
            "unable to parse requirement: <nil>: Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ));
    }
    Ok(key.to_owned())
}

fn parse_label_value(value: &str) -> std::result::Result<String, String> {
    let value = value.trim();
    let sound = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !value.chars().all(sound) || value.len() > 63 {
        return Err(format!(
            "unable to parse requirement: values[0][key]: Invalid value: \"{value}\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
        ));
    }
    Ok(value.to_owned())
}

#[derive(Debug, Clone, PartialEq)]
struct FieldRequirement {
    field: String,
    value: String,
    equal: bool,
}

/// Requirements on the few fields that a kind can be selected by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldSelector(Vec<FieldRequirement>);

impl FieldSelector {
    /// Parses a `fieldSelector` parameter; refuses fields that the resource cannot be selected by.
    pub fn parse(source: &str, resource: &ServedResource) -> ApiResult<Self> {
        let mut out = Vec::new();
        for term in source
            .split(',')
            .map(str::trim)
            .filter(|term| !term.is_empty())
        {
            let (field, value, equal) = if let Some((field, value)) = term.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) =
                term.split_once("==").or_else(|| term.split_once('='))
            {
                (field, value, true)
            } else {
                let message = format!("invalid selector: '{term}'; can't understand '{term}'");
                return Err(ApiError::bad_request(message));
            };
            if !is_selectable(resource, field) {
                // Kinds with field labels of their own have another wording.
                let own = matches!(
                    resource.plural.as_str(),
                    "nodes" | "pods" | "events" | "namespaces" | "secrets"
                );
                let message = if own && resource.custom.is_none() {
                    format!("field label not supported: {field}")
                } else {
                    format!(
                        "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                };
                return Err(ApiError::bad_request(message));
            }
            out.push(FieldRequirement {
                field: field.into(),
                value: value.into(),
                equal,
            });
        }
        Ok(Self(out))
    }

    pub fn matches_object(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            (field_value(object, &requirement.field) == requirement.value) == requirement.equal
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that the selector requires of a field by equality, if it does.
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        let found = self
            .0
            .iter()
            .find(|requirement| requirement.equal && requirement.field == field);
        found.map(|requirement| requirement.value.as_str())
    }
}

fn is_selectable(resource: &ServedResource, field: &str) -> bool {
    if field == "metadata.name"
        || (field == "metadata.namespace" && (resource.namespaced || resource.custom.is_none()))
    {
        return true;
    }
    let fields: &[&str] = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("" | "events.k8s.io", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("apps", "replicasets") => &["status.replicas"],
        _ => return is_custom_selectable(resource, field),
    };
    fields.contains(&field)
}

fn is_custom_selectable(resource: &ServedResource, field: &str) -> bool {
    let Some(version) = &resource.custom else {
        return false;
    };
    let declared = list_at(version, &["selectableFields"]);
    declared.iter().any(|entry| {
        entry["jsonPath"]
            .as_str()
            .map(|path| path.trim_start_matches('.'))
            == Some(field)
    })
}

/// A field's value as selectors compare it.
fn field_value(object: &Value, path: &str) -> String {
    match path {
        "metadata.name" => return meta_text(object, "name").to_owned(),
        "metadata.namespace" => return meta_text(object, "namespace").to_owned(),
        _ => {}
    }
    if path == "source" {
        return value_at(object, &["source", "component"])
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
    }
    let found = path
        .split('.')
        .try_fold(object, |here, name| here.get(name));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(truth)) => truth.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        // Selectors see Go's zero values: a node without `unschedulable` is not unschedulable.
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => match path {
            "spec.unschedulable" | "spec.hostNetwork" => "false".to_owned(),
            "status.replicas" => "0".to_owned(),
            _ => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors_select_as_kubernetes_does() {
        let pod = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app!=web", false),
            ("zone!=a", true),
            ("app in (web, db)", true),
            ("app notin (web,db)", false),
            ("zone notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!zone", true),
            ("app in (db),tier", false),
        ];
        for (source, expected) in cases {
            let selector = ApiLabelSelector::parse(source).unwrap();
            assert_eq!(selector.matches_object(&pod), expected, "{source}");
        }
        assert!(ApiLabelSelector::parse("app in web").is_err());
        assert!(ApiLabelSelector::parse("a b=c d").is_err());
    }

    #[test]
    fn an_absent_label_selector_selects_nothing_and_an_empty_one_everything() {
        let pod = json!({"metadata": {}});
        assert_eq!(ApiLabelSelector::from_object(None), None);
        let all = ApiLabelSelector::from_object(Some(&json!({}))).unwrap();
        assert!(all.matches_object(&pod));
    }
}
