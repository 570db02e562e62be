//! What the `CustomResourceDefinition`s of all kinds have in common.

use serde_json::{Value, json};

use crate::kind::{GROUP, VERSION};
use crate::schema_words::{object, said};

/// What `kubectl get` shows: heading, type, path, meaning.
pub(crate) type Column = (&'static str, &'static str, &'static str, &'static str);

/// The column that every kind ends with.
pub(crate) const AGE: Column = (
    "Age",
    "date",
    ".metadata.creationTimestamp",
    "Since when there is one",
);

/// A kind of one version, whose status is written apart.
pub(crate) struct Definition<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) plural: &'a str,
    /// `Namespaced` or `Cluster`.
    pub(crate) scope: &'a str,
    pub(crate) short_names: &'a [&'a str],
    pub(crate) categories: &'a [&'a str],
    pub(crate) labels: Value,
    pub(crate) columns: &'a [Column],
    /// Headings of the columns that only `-o wide` shows.
    pub(crate) wide: &'a [&'a str],
    /// That of [`root`].
    pub(crate) schema: Value,
}

impl Definition<'_> {
    /// What most kinds of ours begin with.
    pub(crate) fn ours() -> Self {
        Self {
            group: GROUP,
            version: VERSION,
            kind: "",
            plural: "",
            scope: "Namespaced",
            short_names: &[],
            categories: &["dogwatch"],
            labels: json!({ "app.kubernetes.io/part-of": "dogwatch" }),
            columns: &[AGE],
            wide: &[],
            schema: Value::Null,
        }
    }

    /// The whole `CustomResourceDefinition`, as `deploy/` has it.
    pub(crate) fn crd(self) -> Value {
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.kind.to_lowercase(),
            "shortNames": self.short_names,
        });
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{}.{}", self.plural, self.group),
                "labels": self.labels,
            },
            "spec": {
                "group": self.group,
                "scope": self.scope,
                "names": names,
                "versions": [{
                    "name": self.version,
                    "served": true,
                    "storage": true,
                    "subresources": { "status": {} },
                    "additionalPrinterColumns": columns(self.columns, self.wide),
                    "schema": { "openAPIV3Schema": self.schema },
                }],
            },
        })
    }
}

fn columns(columns: &[Column], wide: &[&str]) -> Vec<Value> {
    let column = |(name, kind, path, meaning): &Column| {
        let priority = u8::from(wide.contains(name));
        json!({
            "name": name, "type": kind, "jsonPath": path, "description": meaning, "priority": priority,
        })
    };
    columns.iter().map(column).collect()
}

/// The schema of a whole object.
pub(crate) fn root(
    description: &str,
    (api_version, kind): (&str, &str),
    required: &[&str],
    spec: Value,
    status: Value,
) -> Value {
    object(
        description,
        required,
        [
            ("apiVersion", said(api_version)),
            ("kind", said(kind)),
            ("metadata", json!({ "type": "object" })),
            ("spec", spec),
            ("status", status),
        ],
    )
}
