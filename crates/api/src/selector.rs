//! Label selectors, with the meaning of `metav1.LabelSelector`.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema::{self, MAX_SELECTOR_ENTRIES, validation_rule};

/// Which labels an object must have. All parts must hold; an empty selector matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels with exactly these values.
    #[cfg_attr(test, schemars(schema_with = "schema::match_labels"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// All of these must hold.
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_SELECTOR_ENTRIES)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A requirement for one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [validation_rule(
    "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
    "In and NotIn need at least one of values, Exists and DoesNotExist take none",
)])))]
pub struct LabelRequirement {
    /// The label's key.
    #[cfg_attr(test, schemars(schema_with = "schema::label_key"))]
    pub key: String,
    /// In and NotIn compare with values, Exists and DoesNotExist take none.
    pub operator: LabelOperator,
    /// For In and NotIn.
    #[cfg_attr(test, schemars(schema_with = "schema::label_values"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a requirement compares a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum LabelOperator {
    /// The label is present with one of the values.
    In,
    /// The label is absent, or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether one of its parts names this label.
    pub fn mentions_label(&self, key: &str) -> bool {
        self.match_labels.contains_key(key)
            || self.match_expressions.iter().any(|part| part.key == key)
    }

    /// The form of the API server's query parameter `labelSelector`; empty if it matches
    /// everything.
    pub fn to_query_string(&self) -> String {
        let equal = self
            .match_labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let parts = self
            .match_expressions
            .iter()
            .map(LabelRequirement::to_query_string);
        equal.chain(parts).collect::<Vec<_>>().join(",")
    }

    /// Whether an object with these labels is selected.
    pub fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.is_satisfied_by(labels))
    }
}

impl LabelRequirement {
    fn to_query_string(&self) -> String {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::In => format!("{key} in ({values})"),
            LabelOperator::NotIn => format!("{key} notin ({values})"),
            LabelOperator::Exists => key.clone(),
            LabelOperator::DoesNotExist => format!("!{key}"),
        }
    }

    fn is_satisfied_by(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            LabelOperator::In => listed(),
            LabelOperator::NotIn => !listed(),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_matches_as_kubernetes_does() {
        let labels: BTreeMap<_, _> = [("app".to_owned(), "web".to_owned())].into();
        for (json, matches) in [
            ("{}", true),
            (r#"{"matchLabels":{"app":"web"}}"#, true),
            (r#"{"matchLabels":{"app":"db"}}"#, false),
            (r#"{"matchLabels":{"app":"web","tier":"x"}}"#, false),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"In","values":["db","web"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]}"#,
                false,
            ),
            (
                r#"{"matchExpressions":[{"key":"tier","operator":"NotIn","values":["web"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions":[{"key":"tier","operator":"In","values":["x"]}]}"#,
                false,
            ),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"Exists"}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions":[{"key":"tier","operator":"Exists"}]}"#,
                false,
            ),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}"#,
                false,
            ),
            (
                r#"{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}"#,
                true,
            ),
            (
                r#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}"#,
                false,
            ),
        ] {
            let selector: LabelSelector = serde_json::from_str(json).unwrap();
            assert_eq!(selector.matches_labels(&labels), matches, "{json}");
        }
    }

    #[test]
    fn an_operator_that_kubernetes_does_not_know_is_refused() {
        let json = r#"{"matchExpressions":[{"key":"app","operator":"Like"}]}"#;
        assert!(serde_json::from_str::<LabelSelector>(json).is_err());
    }

    #[test]
    fn a_selector_is_asked_of_the_api_server_in_its_own_words() {
        let json = r#"{"matchLabels":{"a":"b"},"matchExpressions":[
            {"key":"c","operator":"In","values":["d","e"]},{"key":"f","operator":"NotIn","values":["g"]},
            {"key":"h","operator":"Exists"},{"key":"i","operator":"DoesNotExist"}]}"#;
        let selector: LabelSelector = serde_json::from_str(json).unwrap();
        assert_eq!(
            selector.to_query_string(),
            "a=b,c in (d,e),f notin (g),h,!i"
        );
        assert!(
            selector.mentions_label("a")
                && selector.mentions_label("i")
                && !selector.mentions_label("d")
        );
        assert_eq!(LabelSelector::default().to_query_string(), "");
    }
}
