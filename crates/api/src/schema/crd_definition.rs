//! Builds the parts that the `CustomResourceDefinition`s of all kinds share.

use serde_json::{Value, json};

use crate::kind::{GROUP, VERSION};

/// A column of `kubectl get`: heading, type, path, meaning.
pub(crate) type PrinterColumn = (&'static str, &'static str, &'static str, &'static str);

/// The last column of every kind.
pub(crate) const AGE_COLUMN: PrinterColumn = (
    "Age",
    "date",
    ".metadata.creationTimestamp",
    "Since when there is one",
);

/// A kind with one version and a status subresource.
pub(crate) struct CrdDefinition<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) plural: &'a str,
    /// `Namespaced` or `Cluster`.
    pub(crate) scope: &'a str,
    pub(crate) short_names: &'a [&'a str],
    pub(crate) categories: &'a [&'a str],
    pub(crate) labels: Value,
    pub(crate) columns: &'a [PrinterColumn],
    /// Headings of the columns that only `-o wide` shows.
    pub(crate) wide: &'a [&'a str],
    /// Made by [`super::schema_of_kind`].
    pub(crate) schema: Value,
}

impl CrdDefinition<'_> {
    /// Defaults for Dogwatch's own kinds.
    pub(crate) fn dogwatch_defaults() -> Self {
        Self {
            group: GROUP,
            version: VERSION,
            kind: "",
            plural: "",
            scope: "Namespaced",
            short_names: &[],
            categories: &["dogwatch"],
            labels: json!({ "app.kubernetes.io/part-of": "dogwatch" }),
            columns: &[AGE_COLUMN],
            wide: &[],
            schema: Value::Null,
        }
    }

    /// The whole `CustomResourceDefinition`, as in `deploy/`.
    pub(crate) fn into_crd(self) -> Value {
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
                    "additionalPrinterColumns": render_columns(self.columns, self.wide),
                    "schema": { "openAPIV3Schema": self.schema },
                }],
            },
        })
    }
}

fn render_columns(columns: &[PrinterColumn], wide: &[&str]) -> Vec<Value> {
    let column = |(name, kind, path, meaning): &PrinterColumn| {
        let priority = u8::from(wide.contains(name));
        json!({
            "name": name, "type": kind, "jsonPath": path, "description": meaning, "priority": priority,
        })
    };
    columns.iter().map(column).collect()
}
