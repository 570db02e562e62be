//! A node of a compiled schema.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::cel_rule::CelRule;

/// The declared type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    /// No type is declared: everything is allowed.
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// Which keys an object may have beside its declared properties.
#[derive(Debug)]
pub(super) enum FurtherKeys {
    Undeclared,
    Any,
    Typed(Box<SchemaNode>),
}

/// How the items of a list are identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListIdentity {
    Atomic,
    Set,
    Keyed(Vec<String>),
}

/// Limits on one value.
#[derive(Debug, Default)]
pub(super) struct ValueLimits {
    pub(super) allowed: Vec<Value>,
    pub(super) format: Option<String>,
    pub(super) pattern: Option<Regex>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) minimum: Option<NumberLimit>,
    pub(super) maximum: Option<NumberLimit>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NumberLimit {
    pub(super) limit: f64,
    pub(super) exclusive: bool,
}

/// `allOf`, `anyOf`, `oneOf` and `not`: further limits on the same value.
#[derive(Debug, Default)]
pub(super) struct Combinations {
    pub(super) all_of: Vec<SchemaNode>,
    pub(super) any_of: Vec<SchemaNode>,
    pub(super) one_of: Vec<SchemaNode>,
    pub(super) not: Option<Box<SchemaNode>>,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent marks of a schema"
)]
pub(super) struct SchemaNode {
    pub(super) value_type: ValueType,
    pub(super) properties: BTreeMap<String, Self>,
    pub(super) further_keys: FurtherKeys,
    pub(super) items: Option<Box<Self>>,
    pub(super) required: Vec<String>,
    pub(super) default: Option<Value>,
    pub(super) limits: ValueLimits,
    pub(super) combinations: Combinations,
    pub(super) list: ListIdentity,
    pub(super) atomic_map: bool,
    pub(super) preserves_unknown: bool,
    pub(super) embedded_resource: bool,
    pub(super) rules: Vec<CelRule>,
    /// Whether this node or one below has rules.
    pub(super) has_rules: bool,
    /// Whether this node or one below has a rule that compares with the old state.
    pub(super) has_transition_rules: bool,
    /// Whether a node below has a default.
    pub(super) has_defaults: bool,
}

impl SchemaNode {
    /// The schema of an object's field.
    pub(super) fn field_schema(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.further_keys {
            FurtherKeys::Typed(node) => Some(node),
            FurtherKeys::Undeclared | FurtherKeys::Any => None,
        })
    }

    /// The nodes right below.
    pub(super) fn child_nodes(&self) -> impl Iterator<Item = &Self> {
        let further = match &self.further_keys {
            FurtherKeys::Typed(node) => Some(node.as_ref()),
            FurtherKeys::Undeclared | FurtherKeys::Any => None,
        };
        self.properties
            .values()
            .chain(further)
            .chain(self.items.as_deref())
    }

    /// The old value of a field, if the two states of the object can be compared by field.
    pub(super) fn old_field<'a>(&self, old: Option<&'a Value>, name: &str) -> Option<&'a Value> {
        if self.atomic_map {
            return None;
        }
        old?.get(name)
    }

    /// The old state of a list's item, if the items are identified by keys.
    pub(super) fn old_item<'a>(&self, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
        let ListIdentity::Keyed(keys) = &self.list else {
            return None;
        };
        let same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
        old?.as_array()?.iter().find(same)
    }
}
