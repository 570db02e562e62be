//! YAML whose values know their lines.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

#[derive(Debug, Clone)]
pub enum LocatedValue {
    Scalar(Value),
    List(Vec<Spanned<LocatedValue>>),
    Object(Vec<(String, Spanned<LocatedValue>)>),
}

impl LocatedValue {
    pub fn to_json(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Self::Object(fields) => {
                let fields = fields.iter();
                let field =
                    |(name, value): &(String, Spanned<Self>)| (name.clone(), value.value.to_json());
                Value::Object(fields.map(field).collect::<Map<_, _>>())
            }
        }
    }

    pub fn find_field(&self, name: &str) -> Option<&Spanned<Self>> {
        match self {
            Self::Object(fields) => {
                let found = fields.iter().find(|(field, _)| field == name);
                found.map(|(_, value)| value)
            }
            Self::Scalar(_) | Self::List(_) => None,
        }
    }

    fn find_item(&self, index: usize) -> Option<&Spanned<Self>> {
        match self {
            Self::List(items) => items.get(index),
            Self::Scalar(_) | Self::Object(_) => None,
        }
    }
}

/// The line of the value that a path such as `spec.windows[0]` names, or of the nearest one around
/// it that exists. Lines count from 1.
pub fn line_of_path(root: &Spanned<LocatedValue>, path: &str) -> u64 {
    let mut found = root;
    for part in path.split('.') {
        let (name, indices) = part.split_once('[').unwrap_or((part, ""));
        let Some(field) = found.value.find_field(name) else {
            break;
        };
        found = field;
        for index in indices.split('[') {
            let index = index.trim_end_matches(']').parse().ok();
            let Some(item) = index.and_then(|index| found.value.find_item(index)) else {
                break;
            };
            found = item;
        }
    }
    found.referenced.line()
}

impl<'de> Deserialize<'de> for LocatedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LocatedVisitor)
    }
}

struct LocatedVisitor;

impl<'de> Visitor<'de> for LocatedVisitor {
    type Value = LocatedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<LocatedValue, D::Error> {
        LocatedValue::deserialize(inner)
    }

    fn visit_bool<E>(self, value: bool) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<LocatedValue, E> {
        Ok(LocatedValue::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<LocatedValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(LocatedValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<LocatedValue, A::Error> {
        let mut object = Vec::new();
        while let Some(field) = fields.next_entry()? {
            object.push(field);
        }
        Ok(LocatedValue::Object(object))
    }
}
