//! Parses an `openAPIV3Schema` into nodes.

use regex::Regex;
use serde_json::Value;

use super::cel_rule::CelRule;
use super::node::{
    Combinations, FurtherKeys, ListIdentity, NumberLimit, SchemaNode, ValueLimits, ValueType,
};
use crate::api::status::FieldError;
use crate::api::value::{bool_at, list_at, text_at};

/// Where the real server reports a fault of a schema.
const SCHEMA_FIELD: &str = "spec.validation.openAPIV3Schema";

pub(super) fn parse_root(schema: &Value) -> Result<SchemaNode, Vec<FieldError>> {
    let mut faults = Vec::new();
    let mut root = parse_node(schema, SCHEMA_FIELD, &mut faults);
    root.embedded_resource = true;
    if faults.is_empty() {
        Ok(root)
    } else {
        Err(faults)
    }
}

fn parse_node(schema: &Value, place: &str, faults: &mut Vec<FieldError>) -> SchemaNode {
    let fields = schema.get("properties").and_then(Value::as_object);
    let properties = fields.into_iter().flatten().map(|(name, schema)| {
        let place = format!("{place}.properties[{name}]");
        (name.clone(), parse_node(schema, &place, faults))
    });
    let properties = properties.collect();
    let items = schema.get("items").filter(|items| items.is_object());
    let items = items.map(|schema| Box::new(parse_node(schema, &format!("{place}.items"), faults)));
    let mut node = SchemaNode {
        value_type: parse_type(schema),
        properties,
        further_keys: parse_further_keys(schema, place, faults),
        items,
        required: text_list(schema, "required"),
        default: schema.get("default").cloned(),
        limits: parse_limits(schema, place, faults),
        combinations: parse_combinations(schema, place, faults),
        list: parse_list_identity(schema),
        atomic_map: text_at(schema, &["x-kubernetes-map-type"]) == "atomic",
        preserves_unknown: bool_at(schema, &["x-kubernetes-preserve-unknown-fields"]),
        embedded_resource: bool_at(schema, &["x-kubernetes-embedded-resource"]),
        rules: parse_rules(schema, place, faults),
        has_rules: false,
        has_transition_rules: false,
        has_defaults: false,
    };
    note_what_is_below(&mut node);
    node
}

fn note_what_is_below(node: &mut SchemaNode) {
    let below = |mark: fn(&SchemaNode) -> bool| node.child_nodes().any(mark);
    let has_rules = !node.rules.is_empty() || below(|child| child.has_rules);
    let has_transition_rules = node.rules.iter().any(CelRule::is_transition_rule)
        || below(|child| child.has_transition_rules);
    let has_defaults = below(|child| child.has_defaults || child.default.is_some());
    node.has_rules = has_rules;
    node.has_transition_rules = has_transition_rules;
    node.has_defaults = has_defaults;
}

fn parse_type(schema: &Value) -> ValueType {
    if bool_at(schema, &["x-kubernetes-int-or-string"]) {
        return ValueType::IntOrString;
    }
    match text_at(schema, &["type"]) {
        "object" => ValueType::Object,
        "array" => ValueType::Array,
        "string" => ValueType::String,
        "integer" => ValueType::Integer,
        "number" => ValueType::Number,
        "boolean" => ValueType::Boolean,
        _ => ValueType::Any,
    }
}

fn parse_further_keys(schema: &Value, place: &str, faults: &mut Vec<FieldError>) -> FurtherKeys {
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => FurtherKeys::Any,
        Some(schema) if schema.is_object() => {
            let place = format!("{place}.additionalProperties");
            FurtherKeys::Typed(Box::new(parse_node(schema, &place, faults)))
        }
        Some(_) | None => FurtherKeys::Undeclared,
    }
}

fn parse_list_identity(schema: &Value) -> ListIdentity {
    match text_at(schema, &["x-kubernetes-list-type"]) {
        "set" => ListIdentity::Set,
        "map" => ListIdentity::Keyed(text_list(schema, "x-kubernetes-list-map-keys")),
        _ => ListIdentity::Atomic,
    }
}

fn parse_limits(schema: &Value, place: &str, faults: &mut Vec<FieldError>) -> ValueLimits {
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let number = |name: &str, exclusive: &str| {
        let limit = schema.get(name)?.as_f64()?;
        let exclusive = bool_at(schema, &[exclusive]);
        Some(NumberLimit { limit, exclusive })
    };
    ValueLimits {
        allowed: list_at(schema, &["enum"]).to_vec(),
        format: schema.get("format").and_then(Value::as_str).map(Into::into),
        pattern: parse_pattern(schema, place, faults),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        minimum: number("minimum", "exclusiveMinimum"),
        maximum: number("maximum", "exclusiveMaximum"),
        multiple_of: schema.get("multipleOf").and_then(Value::as_f64),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: bool_at(schema, &["uniqueItems"]),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    }
}

fn parse_pattern(schema: &Value, place: &str, faults: &mut Vec<FieldError>) -> Option<Regex> {
    let pattern = schema.get("pattern")?.as_str()?;
    match Regex::new(pattern) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let field = format!("{place}.pattern");
            let why = format!("must be a valid regular expression, but isn't: {error}");
            faults.push(FieldError::invalid(field, &pattern.into(), &why));
            None
        }
    }
}

fn parse_combinations(schema: &Value, place: &str, faults: &mut Vec<FieldError>) -> Combinations {
    let mut parse_all = |name: &str| {
        let schemas = list_at(schema, &[name]).iter();
        let place = format!("{place}.{name}");
        schemas
            .map(|schema| parse_node(schema, &place, faults))
            .collect()
    };
    let (all_of, any_of, one_of) = (parse_all("allOf"), parse_all("anyOf"), parse_all("oneOf"));
    let not = schema.get("not");
    Combinations {
        all_of,
        any_of,
        one_of,
        not: not.map(|schema| Box::new(parse_node(schema, &format!("{place}.not"), faults))),
    }
}

fn parse_rules(schema: &Value, place: &str, faults: &mut Vec<FieldError>) -> Vec<CelRule> {
    let mut rules = Vec::new();
    for (index, rule) in list_at(schema, &["x-kubernetes-validations"])
        .iter()
        .enumerate()
    {
        match CelRule::compile_rule(rule) {
            Ok(rule) => rules.push(rule),
            Err(why) => {
                let field = format!("{place}.x-kubernetes-validations[{index}].rule");
                let why = format!("compilation failed: {why}");
                faults.push(FieldError::invalid(field, &rule["rule"], &why));
            }
        }
    }
    rules
}

fn text_list(schema: &Value, name: &str) -> Vec<String> {
    let list = list_at(schema, &[name]).iter();
    list.filter_map(Value::as_str).map(Into::into).collect()
}
