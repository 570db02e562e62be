//! Sets of field paths, as server-side apply stores them in `fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::schema::{MergeShape, SchemaType};

/// A set of field paths as a tree. An element is spelt as in `fieldsV1`: `f:NAME` for a field,
/// `k:{…}` for an item of a keyed list, `v:…` for an item of a set, `i:N` for an index.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSet {
    /// Whether the path that ends here is in the set.
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    pub(crate) fn parse(fields: &Value) -> Self {
        let mut set = Self::parse_node(fields);
        set.member = false;
        set
    }

    fn parse_node(fields: &Value) -> Self {
        let Some(map) = fields.as_object() else {
            return Self::default();
        };
        let mut set = Self {
            member: map.is_empty(),
            children: BTreeMap::new(),
        };
        for (key, value) in map {
            if key == "." {
                set.member = true;
            } else {
                set.children
                    .insert(canonical_element(key), Self::parse_node(value));
            }
        }
        set
    }

    pub(crate) fn to_fields(&self) -> Value {
        let mut out = Map::new();
        if self.member && !self.children.is_empty() {
            out.insert(".".into(), Value::Object(Map::new()));
        }
        for (key, child) in &self.children {
            out.insert(key.clone(), child.to_fields());
        }
        Value::Object(out)
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(Self::is_empty)
    }

    pub(crate) fn insert(&mut self, path: &[String]) {
        let node = path.iter().fold(self, |node, element| {
            node.children.entry(element.clone()).or_default()
        });
        node.member = true;
    }

    fn has_element(&self, element: &str) -> bool {
        self.children.get(element).is_some_and(|child| child.member)
    }

    fn subset_below_element(&self, element: &str) -> Option<&Self> {
        self.children
            .get(element)
            .filter(|child| child.children.values().any(|c| !c.is_empty()))
    }

    /// Whether a path of this set is in the given `fieldsV1`, without parsing that into a set.
    pub(crate) fn overlaps_fields(&self, fields: &Value) -> bool {
        self.children
            .iter()
            .any(|(element, child)| match fields.get(element) {
                Some(Value::Object(map)) => {
                    (child.member && (map.is_empty() || map.contains_key(".")))
                        || child.overlaps_fields(&fields[element])
                }
                Some(_) | None => false,
            })
    }

    fn combine_with(&self, other: &Self, rule: fn(bool, bool) -> bool) -> Self {
        let nothing = Self::default();
        let mut children = BTreeMap::new();
        for key in self.children.keys().chain(other.children.keys()) {
            if children.contains_key(key) {
                continue;
            }
            let mine = self.children.get(key).unwrap_or(&nothing);
            let its = other.children.get(key).unwrap_or(&nothing);
            let child = mine.combine_with(its, rule);
            if !child.is_empty() {
                children.insert(key.clone(), child);
            }
        }
        Self {
            member: rule(self.member, other.member),
            children,
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        self.combine_with(other, |mine, its| mine || its)
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine_with(other, |mine, its| mine && its)
    }

    /// Paths of this set that the other set lacks.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine_with(other, |mine, its| mine && !its)
    }

    /// This set without the given paths and everything below them.
    pub(crate) fn without_trees(&self, trees: &Self) -> Self {
        let mut children = BTreeMap::new();
        for (key, child) in &self.children {
            let kept = match trees.children.get(key) {
                Some(tree) if tree.member => continue,
                Some(tree) => child.without_trees(tree),
                None => child.clone(),
            };
            if !kept.is_empty() {
                children.insert(key.clone(), kept);
            }
        }
        Self {
            member: self.member,
            children,
        }
    }

    /// This set with every declared field on the way to its paths, which a set usually leaves out.
    pub(crate) fn with_declared<'a>(&'a self, ty: SchemaType<'a>) -> Self {
        let mut out = Self {
            member: self.member,
            children: BTreeMap::new(),
        };
        for (key, child) in &self.children {
            let (ty, declared) = match key.strip_prefix("f:") {
                Some(name) => (ty.field_type(name), ty.declares_field(name)),
                None => (ty.item_type(), false),
            };
            let mut child = child.with_declared(ty);
            child.member |= declared && !child.children.is_empty();
            out.children.insert(key.clone(), child);
        }
        out
    }

    /// Every path; paths that end at a level come before those that go deeper.
    pub(crate) fn list_paths(&self) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
        for (key, _) in self.children.iter().filter(|(_, child)| child.member) {
            let mut path = prefix.clone();
            path.push(key.clone());
            out.push(path);
        }
        for (key, child) in &self.children {
            prefix.push(key.clone());
            child.collect_paths(prefix, out);
            prefix.pop();
        }
    }
}

/// The path as error messages show it: `.spec.containers[name="web"].image`.
pub(crate) fn format_path(path: &[String]) -> String {
    path.iter()
        .map(|element| format_path_element(element))
        .collect()
}

fn format_path_element(element: &str) -> String {
    let (kind, rest) = element.split_at(element.len().min(2));
    match kind {
        "f:" => format!(".{rest}"),
        "k:" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
            let keys: Vec<String> = keys
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            format!("[{}]", keys.join(","))
        }
        "v:" => format!("[={rest}]"),
        _ => format!("[{rest}]"),
    }
}

/// Rewrites a key of another client into our spelling.
fn canonical_element(element: &str) -> String {
    match element
        .strip_prefix("k:")
        .map(serde_json::from_str::<Value>)
    {
        Some(Ok(keys)) => format!("k:{keys}"),
        Some(Err(_)) | None => element.to_owned(),
    }
}

/// The element of a list item; None when nothing tells the items apart.
pub(crate) fn item_element(shape: &MergeShape, item: &Value) -> Option<String> {
    match shape {
        MergeShape::Set => Some(format!("v:{item}")),
        MergeShape::Keyed(keys) => {
            let mut out = Map::new();
            for key in keys {
                match item.get(key) {
                    Some(value) => drop(out.insert(key.clone(), value.clone())),
                    // Among the list keys we serve, only this one has a default.
                    None if key == "protocol" => drop(out.insert(key.clone(), "TCP".into())),
                    None => {}
                }
            }
            (!out.is_empty()).then(|| format!("k:{}", Value::Object(out)))
        }
        MergeShape::Leaf | MergeShape::Struct | MergeShape::Map => None,
    }
}

/// Every field that the value sets: an applier of the value owns these fields.
pub(crate) fn fields_of_value<'a>(value: &'a Value, ty: SchemaType<'a>) -> FieldSet {
    let mut set = FieldSet::default();
    add_fields_of_value(&mut set, value, ty);
    set.member = false;
    set
}

fn add_fields_of_value<'a>(set: &mut FieldSet, value: &'a Value, ty: SchemaType<'a>) {
    let shape = ty.shape_of_value(value);
    match (&shape, value) {
        (MergeShape::Struct | MergeShape::Map, Value::Object(map)) => {
            for (name, value) in map {
                let child = set.children.entry(format!("f:{name}")).or_default();
                add_fields_of_value(child, value, ty.field_type(name));
                let hollow = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                child.member |= hollow || !ty.declares_field(name);
            }
        }
        (MergeShape::Keyed(_) | MergeShape::Set, Value::Array(list)) => {
            for item in list {
                let Some(element) = item_element(&shape, item) else {
                    continue;
                };
                let child = set.children.entry(element).or_default();
                add_fields_of_value(child, item, ty.item_type());
                child.member = true;
            }
        }
        _ => set.member = true,
    }
}

/// The value without the given paths. Maps and lists that become empty stay.
pub(crate) fn remove_fields<'a>(value: &'a Value, gone: &FieldSet, ty: SchemaType<'a>) -> Value {
    let shape = ty.shape_of_value(value);
    match (&shape, value) {
        (MergeShape::Struct | MergeShape::Map, Value::Object(map)) => {
            let kept = map.iter().filter_map(|(name, value)| {
                let element = format!("f:{name}");
                if gone.has_element(&element) {
                    return None;
                }
                let value = gone.subset_below_element(&element).map_or_else(
                    || value.clone(),
                    |gone| remove_fields(value, gone, ty.field_type(name)),
                );
                Some((name.clone(), value))
            });
            Value::Object(kept.collect())
        }
        (MergeShape::Keyed(_) | MergeShape::Set, Value::Array(list)) => {
            let kept = list.iter().filter_map(|item| {
                let Some(element) = item_element(&shape, item) else {
                    return Some(item.clone());
                };
                if gone.has_element(&element) {
                    return None;
                }
                Some(gone.subset_below_element(&element).map_or_else(
                    || item.clone(),
                    |gone| remove_fields(item, gone, ty.item_type()),
                ))
            });
            Value::Array(kept.collect())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NODE: SchemaType<'static> = SchemaType::BuiltIn {
        field: "",
        parent: "",
    };

    #[test]
    fn an_applier_owns_leaves_map_keys_and_list_items() {
        let value = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"taints": [{"key": "x"}], "unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let expected = json!({
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {"f:taints": {}, "f:unschedulable": {}},
            "f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:type": {}, "f:status": {}}}},
        });
        assert_eq!(fields_of_value(&value, NODE).to_fields(), expected);
        assert_eq!(FieldSet::parse(&expected), fields_of_value(&value, NODE));
    }

    #[test]
    fn a_path_reads_as_the_real_server_writes_it() {
        let path = [
            "f:spec".to_owned(),
            "k:{\"name\":\"web\"}".to_owned(),
            "f:image".to_owned(),
        ];
        assert_eq!(format_path(&path), ".spec[name=\"web\"].image");
    }
}
