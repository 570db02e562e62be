//! Checks an object against the types and limits of its schema.
//!
//! As in the real server, a part that an update leaves as it was is not checked again, so a schema
//! that became stricter does not block other changes.

use serde_json::{Map, Value};

use super::CheckedPart;
use super::node::{FurtherKeys, SchemaNode};
use super::value_check::check_value;
use crate::api::status::FieldError;

/// The fields of an object that every schema knows.
const TYPE_AND_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn check_structure(
    root: &SchemaNode,
    object: &Value,
    old: Option<&Value>,
    part: CheckedPart,
) -> Vec<FieldError> {
    let mut check = StructureCheck {
        prefix: "",
        wrong: Vec::new(),
    };
    match part {
        CheckedPart::WholeObject => check.visit(root, "", object, old),
        CheckedPart::Status => {
            check.prefix = "status";
            let old = old.and_then(|old| old.get("status"));
            if let (Some(node), Some(status)) =
                (root.properties.get("status"), object.get("status"))
            {
                check.visit(node, "", status, old);
            }
        }
    }
    check.wrong
}

/// One check; messages name paths below `prefix`, fields the whole path.
pub(super) struct StructureCheck {
    prefix: &'static str,
    wrong: Vec<FieldError>,
}

impl StructureCheck {
    pub(super) fn visit(
        &mut self,
        node: &SchemaNode,
        path: &str,
        value: &Value,
        old: Option<&Value>,
    ) {
        if old == Some(value) {
            return;
        }
        check_value(self, node, path, value);
        self.check_combinations(node, path, value);
        match value {
            Value::Object(fields) => self.visit_fields(node, path, fields, old),
            Value::Array(items) => self.visit_items(node, path, items, old),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Adds a fault of the value at this path.
    pub(super) fn report(&mut self, path: &str, fault: impl FnOnce(String) -> FieldError) {
        let path = path.trim_start_matches('.');
        let field = match (self.prefix, path) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        self.wrong.push(fault(field));
    }

    fn visit_fields(
        &mut self,
        node: &SchemaNode,
        path: &str,
        fields: &Map<String, Value>,
        old: Option<&Value>,
    ) {
        if let FurtherKeys::Typed(further) = &node.further_keys {
            for (name, value) in fields {
                if !node.properties.contains_key(name) {
                    self.visit(
                        further,
                        &format!("{path}.{name}"),
                        value,
                        node.old_field(old, name),
                    );
                }
            }
        }
        for (name, field) in &node.properties {
            if let Some(value) = fields.get(name) {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                self.visit(field, &path, value, node.old_field(old, name));
            }
        }
        for name in &node.required {
            // The stored form has no kind and version, and always has metadata.
            let is_given = node.embedded_resource && TYPE_AND_META.contains(&name.as_str());
            if !fields.contains_key(name) && !is_given {
                self.report(&format!("{path}.{name}"), |field| {
                    FieldError::required(field, "")
                });
            }
        }
    }

    fn visit_items(&mut self, node: &SchemaNode, path: &str, items: &[Value], old: Option<&Value>) {
        let Some(item_node) = &node.items else { return };
        for (index, item) in items.iter().enumerate() {
            let old = node.old_item(old, item);
            self.visit(item_node, &format!("{path}[{index}]"), item, old);
        }
    }

    fn check_combinations(&mut self, node: &SchemaNode, path: &str, value: &Value) {
        let combinations = &node.combinations;
        let fits = |node: &SchemaNode| {
            let mut trial = Self {
                prefix: "",
                wrong: Vec::new(),
            };
            trial.visit(node, path, value, None);
            trial.wrong.is_empty()
        };
        let mut faults = Vec::new();
        let count = combinations.any_of.iter().filter(|node| fits(node)).count();
        if !combinations.any_of.is_empty() && count == 0 {
            faults.push(format!(
                "\"{path}\" must validate at least one schema (anyOf)"
            ));
        }
        let count = combinations.one_of.iter().filter(|node| fits(node)).count();
        if !combinations.one_of.is_empty() && count != 1 {
            let found = match count {
                0 => "Found none valid".to_owned(),
                many => format!("Found {many} valid alternatives"),
            };
            faults.push(format!(
                "\"{path}\" must validate one and only one schema (oneOf). {found}"
            ));
        }
        faults.extend(self.check_all_of(node, path, value));
        if combinations.not.as_ref().is_some_and(|node| fits(node)) {
            faults.push(format!("\"{path}\" must not validate the schema (not)"));
        }
        for fault in faults {
            self.wrong
                .push(FieldError::invalid(self.root_field(), &"".into(), &fault));
        }
    }

    fn check_all_of(&mut self, node: &SchemaNode, path: &str, value: &Value) -> Option<String> {
        let schemas = &node.combinations.all_of;
        let mut failed = 0;
        for schema in schemas {
            let before = self.wrong.len();
            self.visit(schema, path, value, None);
            failed += usize::from(self.wrong.len() > before);
        }
        let none = if failed == schemas.len() {
            ". None validated"
        } else {
            ""
        };
        (failed > 0).then(|| format!("\"{path}\" must validate all the schemas (allOf){none}"))
    }

    /// The field of a fault that names its place only in its text.
    fn root_field(&self) -> String {
        if self.prefix.is_empty() {
            "<nil>".into()
        } else {
            self.prefix.into()
        }
    }

    /// Adds a fault that names its place only in its text.
    pub(super) fn report_without_field(&mut self, text: &str) {
        let field = self.root_field();
        self.wrong
            .push(FieldError::invalid(field, &"".into(), text));
    }
}
