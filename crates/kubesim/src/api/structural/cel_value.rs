//! Values as CEL sees them, by their schema.

// The library's maps are of this type; rules see no order of keys.
#![allow(clippy::disallowed_types)]

use std::collections::HashMap;
use std::sync::Arc;

use cel::Value as CelValue;
use cel::objects::{Key, Map as CelMap};
use serde_json::{Map, Value};

use super::node::{FurtherKeys, ListIdentity, SchemaNode, ValueType};

/// The order of the items of sets and keyed lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemOrder {
    AsGiven,
    /// The same for equal sets.
    ByIdentity,
}

/// CEL's reserved words; a field of such a name is written `__name__`.
const RESERVED_WORDS: [&str; 22] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
    "__proto__",
];

pub(super) fn cel_value_of(node: &SchemaNode, value: &Value, order: ItemOrder) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::String(text) => cel_text(node, text),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if node.value_type != ValueType::Number => CelValue::Int(whole),
            Some(_) | None => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Array(items) => {
            let item_node = node.items.as_deref();
            let items = ordered_items(node, items, order);
            let items = items
                .into_iter()
                .filter_map(|item| Some(cel_value_of(item_node?, item, order)));
            CelValue::List(Arc::new(items.collect()))
        }
        Value::Object(fields) => cel_map(node, fields, order),
    }
}

/// A time is its distance from 1970 in nanoseconds, which compares as times do.
fn cel_text(node: &SchemaNode, text: &str) -> CelValue {
    let is_time = matches!(
        node.limits.format.as_deref(),
        Some("date-time" | "datetime" | "date")
    );
    let time = is_time.then(|| nanoseconds_of_time(text)).flatten();
    time.map_or_else(|| CelValue::from(text), CelValue::Int)
}

/// A time of RFC 3339, or a date.
pub(super) fn nanoseconds_of_time(text: &str) -> Option<i64> {
    let whole = if text.len() == 10 {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    let time: jiff::Timestamp = whole.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

fn ordered_items<'a>(node: &SchemaNode, items: &'a [Value], order: ItemOrder) -> Vec<&'a Value> {
    let mut items: Vec<&Value> = items.iter().collect();
    if order == ItemOrder::ByIdentity && node.list != ListIdentity::Atomic {
        items.sort_by_cached_key(std::string::ToString::to_string);
    }
    items
}

/// Rules see declared fields only, and all keys of a map.
fn cel_map(node: &SchemaNode, fields: &Map<String, Value>, order: ItemOrder) -> CelValue {
    let mut map: HashMap<Key, CelValue> = HashMap::new();
    for (name, value) in fields {
        let entry = match (node.properties.get(name), &node.further_keys) {
            (Some(field), _) => {
                escape_field_name(name).map(|name| (name, cel_value_of(field, value, order)))
            }
            (None, FurtherKeys::Typed(field)) => {
                Some((name.clone(), cel_value_of(field, value, order)))
            }
            (None, FurtherKeys::Any | FurtherKeys::Undeclared) => None,
        };
        if let Some((name, value)) = entry {
            map.insert(Key::from(name), value);
        }
    }
    if node.embedded_resource {
        map.insert("metadata".into(), visible_metadata(fields));
        for name in ["apiVersion", "kind"] {
            if let Some(text) = fields.get(name).and_then(Value::as_str) {
                map.insert(name.into(), text.into());
            }
        }
    }
    CelValue::Map(CelMap { map: Arc::new(map) })
}

/// Rules see `name` and `generateName` of the metadata.
fn visible_metadata(fields: &Map<String, Value>) -> CelValue {
    let metadata = fields.get("metadata");
    let texts = ["name", "generateName"].into_iter().filter_map(|name| {
        let text = metadata?.get(name)?.as_str()?;
        Some((Key::from(name), CelValue::from(text)))
    });
    let map = texts.collect::<HashMap<_, _>>();
    CelValue::Map(CelMap { map: Arc::new(map) })
}

/// A field's name as rules write it; None for a name that they cannot write.
fn escape_field_name(name: &str) -> Option<String> {
    if RESERVED_WORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    let sound = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let begins_well = !escaped.starts_with(|letter: char| letter.is_ascii_digit());
    (escaped.chars().all(sound) && begins_well).then_some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cel_cannot_spell_are_escaped() {
        for (name, escaped) in [
            ("windows", Some("windows")),
            ("return", Some("__return__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("ä", None),
            ("1a", None),
        ] {
            assert_eq!(escape_field_name(name).as_deref(), escaped, "{name}");
        }
    }
}
