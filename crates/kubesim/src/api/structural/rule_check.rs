//! Evaluates the CEL rules of a schema.

use serde_json::Value;

use super::cel_rule::{CelRule, RuleFault};
use super::node::{FurtherKeys, SchemaNode, ValueType};
use super::paths::FieldPath;
use crate::api::status::FieldError;

pub(super) fn check_rules(
    root: &SchemaNode,
    object: &Value,
    old: Option<&Value>,
    wrong: &mut Vec<FieldError>,
) {
    let mut check = RuleCheck { wrong };
    check.visit(root, &FieldPath::default(), object, old, false);
}

struct RuleCheck<'a> {
    wrong: &'a mut Vec<FieldError>,
}

impl RuleCheck<'_> {
    /// `parent_is_unchanged` counts where the old state of this value is not known.
    fn visit(
        &mut self,
        node: &SchemaNode,
        path: &FieldPath,
        value: &Value,
        old: Option<&Value>,
        parent_is_unchanged: bool,
    ) {
        let unchanged = old.map_or(parent_is_unchanged, |old| old == value);
        // The real server turns the failures of an unchanged part into warnings.
        let any_rule_counts = if unchanged {
            node.has_transition_rules
        } else {
            node.has_rules
        };
        if !any_rule_counts {
            return;
        }
        for rule in &node.rules {
            if !unchanged || rule.is_transition_rule() {
                self.evaluate(rule, node, path, value, old);
            }
        }
        match value {
            Value::Object(fields) => {
                let correlated = old.is_some() && !node.atomic_map;
                for (name, value) in fields {
                    let Some(child) = node.field_schema(name) else {
                        continue;
                    };
                    let path = child_path(node, path, name);
                    let old = node.old_field(old, name);
                    self.visit(child, &path, value, old, unchanged && !correlated);
                }
            }
            Value::Array(items) => {
                let Some(child) = &node.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = node.old_item(old, item);
                    self.visit(child, &path.item(index), item, old, unchanged);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn evaluate(
        &mut self,
        rule: &CelRule,
        node: &SchemaNode,
        path: &FieldPath,
        value: &Value,
        old: Option<&Value>,
    ) {
        let Some(fault) = rule.evaluate_rule(node, value, old) else {
            return;
        };
        let shown = match (&fault, node.value_type) {
            (RuleFault::Evaluation(_), kind) => Some(Value::from(kind.rule_type_name())),
            (RuleFault::Broken(_), ValueType::Object | ValueType::Array) => None,
            (RuleFault::Broken(_), _) => Some(value.clone()),
        };
        let path = match (&fault, rule.field_path()) {
            (RuleFault::Broken(_), Some(below)) => below
                .split('.')
                .fold(path.clone(), |path, name| path.field(name)),
            (RuleFault::Broken(_) | RuleFault::Evaluation(_), _) => path.clone(),
        };
        let (field, text) = (path.error_text(), fault.as_text());
        self.wrong.push(match fault {
            RuleFault::Broken(_) => {
                FieldError::for_rule(rule.reason(), field, shown.as_ref(), text)
            }
            RuleFault::Evaluation(_) => {
                FieldError::invalid(field, &shown.unwrap_or_default(), text)
            }
        });
    }
}

impl ValueType {
    /// As the real server shows the type in place of a value; empty where the schema names none.
    fn rule_type_name(self) -> &'static str {
        match self {
            Self::Any | Self::IntOrString => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

fn child_path(node: &SchemaNode, path: &FieldPath, name: &str) -> FieldPath {
    match &node.further_keys {
        FurtherKeys::Typed(_) if !node.properties.contains_key(name) => path.map_key(name),
        FurtherKeys::Typed(_) | FurtherKeys::Any | FurtherKeys::Undeclared => path.field(name),
    }
}
