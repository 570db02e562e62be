//! Checks one value against its type and limits, without what is below it.

use serde_json::{Number, Value};

use super::format;
use super::node::{NumberLimit, SchemaNode, ValueType};
use super::structure_check::StructureCheck;
use crate::api::status::FieldError;

/// In the order of the real server: type, then limits by the value's own type, then `enum`.
pub(super) fn check_value(
    check: &mut StructureCheck,
    node: &SchemaNode,
    path: &str,
    value: &Value,
) {
    check_type(check, node, path, value);
    match value {
        Value::String(text) => {
            check_text(check, node, path, text);
            check_format(check, node, path, text);
        }
        Value::Number(number) => check_number(check, node, path, number),
        Value::Array(items) => check_list(check, node, path, items),
        Value::Object(fields) => check_field_count(check, node, path, fields.len() as u64),
        Value::Null | Value::Bool(_) => {}
    }
    let allowed = &node.limits.allowed;
    if !allowed.is_empty() && !allowed.contains(value) {
        check.report(path, |field| {
            FieldError::not_supported(field, value, allowed)
        });
    }
}

/// The type of a value, as OpenAPI names it.
fn name_of_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_whole(number) && !number.is_f64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(number: &Number) -> bool {
    number.as_f64().is_none_or(|number| number.fract() == 0.0)
}

impl ValueType {
    /// As errors name it.
    fn as_text(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer,string",
        }
    }

    pub(super) fn accepts_value(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::String | Self::IntOrString, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_)) => true,
            (Self::Integer | Self::IntOrString, Value::Number(number)) => is_whole(number),
            (
                Self::Object
                | Self::Array
                | Self::String
                | Self::Integer
                | Self::Number
                | Self::Boolean
                | Self::IntOrString,
                _,
            ) => false,
        }
    }
}

fn check_type(check: &mut StructureCheck, node: &SchemaNode, path: &str, value: &Value) {
    if node.value_type.accepts_value(value) {
        return;
    }
    let format = checked_format(node);
    let (expected, found) = match (format, value) {
        (Some(format), Value::Number(number)) if number.is_f64() => (format, "float64"),
        (Some(format), Value::Number(_)) => (format, "int64"),
        (Some(format), Value::Bool(_) | Value::Object(_) | Value::Null) => (format, ""),
        (Some(_) | None, _) => (node.value_type.as_text(), name_of_type(value)),
    };
    report_type(check, path, expected, &found.into());
}

fn report_type(check: &mut StructureCheck, path: &str, expected: &str, found: &Value) {
    let why = format!("{path} in body must be of type {expected}: {found}");
    check.report(path, |field| FieldError::type_invalid(field, found, &why));
}

/// The format, if the real server checks it.
fn checked_format(node: &SchemaNode) -> Option<&str> {
    let format = node.limits.format.as_deref()?;
    let known = match node.value_type {
        ValueType::Integer => matches!(format, "int32" | "int64"),
        ValueType::Number => matches!(format, "float" | "double"),
        ValueType::String | ValueType::Any => format::is_known_format(format),
        ValueType::Object | ValueType::Array | ValueType::Boolean | ValueType::IntOrString => false,
    };
    known.then_some(format)
}

fn check_text(check: &mut StructureCheck, node: &SchemaNode, path: &str, text: &str) {
    let limits = &node.limits;
    let length = text.chars().count() as u64;
    if let Some(max) = limits.max_length.filter(|max| length > *max) {
        check.report(path, |field| {
            FieldError::too_long(field, usize::try_from(max).unwrap_or(usize::MAX))
        });
        return;
    }
    if let Some(min) = limits.min_length.filter(|min| length < *min) {
        let why = format!("{path} in body should be at least {min} chars long");
        report_invalid(check, path, &text.into(), &why);
        return;
    }
    if let Some(pattern) = limits
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.is_match(text))
    {
        let why = format!("{path} in body should match '{pattern}'");
        report_invalid(check, path, &text.into(), &why);
    }
}

fn check_format(check: &mut StructureCheck, node: &SchemaNode, path: &str, text: &str) {
    if !matches!(node.value_type, ValueType::String | ValueType::Any) {
        return;
    }
    if let Some(format) = checked_format(node).filter(|format| !format::has_format(format, text)) {
        report_type(check, path, format, &text.into());
    }
}

fn report_invalid(check: &mut StructureCheck, path: &str, value: &Value, why: &str) {
    check.report(path, |field| FieldError::invalid(field, value, why));
}

fn check_number(check: &mut StructureCheck, node: &SchemaNode, path: &str, number: &Number) {
    let (limits, value) = (&node.limits, Value::Number(number.clone()));
    let Some(amount) = number.as_f64() else {
        return;
    };
    check_integer_range(check, node, path, number);
    check_multiple(check, node, path, number);
    let breaks = |limit: &NumberLimit, order: std::cmp::Ordering| {
        let found = amount.partial_cmp(&limit.limit);
        found == Some(order) || (limit.exclusive && found == Some(std::cmp::Ordering::Equal))
    };
    if let Some(min) = limits
        .minimum
        .filter(|min| breaks(min, std::cmp::Ordering::Less))
    {
        let or = if min.exclusive { "" } else { "or equal to " };
        let why = format!("{path} in body should be greater than {or}{}", min.limit);
        report_invalid(check, path, &value, &why);
    }
    if let Some(max) = limits
        .maximum
        .filter(|max| breaks(max, std::cmp::Ordering::Greater))
    {
        let or = if max.exclusive { "" } else { "or equal to " };
        let why = format!("{path} in body should be less than {or}{}", max.limit);
        report_invalid(check, path, &value, &why);
    }
}

/// The real server tells this beside the wrong type.
fn check_integer_range(check: &mut StructureCheck, node: &SchemaNode, path: &str, number: &Number) {
    let format = checked_format(node);
    let fits = match number.as_i64() {
        Some(whole) => format != Some("int32") || i32::try_from(whole).is_ok(),
        None => is_whole(number),
    };
    if node.value_type != ValueType::Integer || fits {
        return;
    }
    let range = match format {
        Some(format) => format!("with format {format}"),
        None => "(default format)".into(),
    };
    check.report_without_field(&format!(
        "Checked value must be of type integer {range} in {path}"
    ));
}

/// For whole numbers, the real server takes the whole part of the factor.
fn check_multiple(check: &mut StructureCheck, node: &SchemaNode, path: &str, number: &Number) {
    let (Some(factor), Some(amount)) = (node.limits.multiple_of, number.as_f64()) else {
        return;
    };
    if number.is_i64() && factor < 1.0 {
        let why = format!("factor MultipleOf declared for {path} must be positive: 0");
        report_invalid(check, path, &0.into(), &why);
    } else if (amount / factor).fract() != 0.0 {
        let why = format!("{path} in body should be a multiple of {factor}");
        report_invalid(check, path, &Value::Number(number.clone()), &why);
    }
}

fn check_list(check: &mut StructureCheck, node: &SchemaNode, path: &str, items: &[Value]) {
    let (limits, count) = (&node.limits, items.len() as u64);
    if let Some(min) = limits.min_items.filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} items");
        report_invalid(check, path, &count.into(), &why);
    }
    if let Some(max) = limits.max_items.filter(|max| count > *max) {
        check.report(path, |field| FieldError::too_many(field, count, max));
    }
    let repeated = |(index, item): (usize, &Value)| items[..index].contains(item);
    if limits.unique_items && items.iter().enumerate().any(repeated) {
        let why = format!("{path} in body shouldn't contain duplicates");
        report_invalid(check, path, &"".into(), &why);
    }
}

fn check_field_count(check: &mut StructureCheck, node: &SchemaNode, path: &str, count: u64) {
    let limits = &node.limits;
    if let Some(min) = limits.min_properties.filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} properties");
        report_invalid(check, path, &count.into(), &why);
    }
    if let Some(max) = limits.max_properties.filter(|max| count > *max) {
        check.report(path, |field| FieldError::too_many(field, count, max));
    }
}
