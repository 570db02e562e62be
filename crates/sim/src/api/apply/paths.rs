//! Sets of field paths, the currency of server-side apply, in the form of `fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::schema::{Shape, Type};

/// A set of field paths as a tree. An element is spelt as in `fieldsV1`: `f:NAME` for a field,
/// `k:{…}` for an item of a keyed list, `v:…` for one of a set, `i:N` for a place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSet {
    /// Whether the path that leads here is in the set.
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Reads `fieldsV1`.
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
                set.children.insert(canonical(key), Self::parse_node(value));
            }
        }
        set
    }

    /// Writes `fieldsV1`.
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

    /// Whether no path is in it.
    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(Self::is_empty)
    }

    /// Adds a path.
    pub(crate) fn insert(&mut self, path: &[String]) {
        let node = path.iter().fold(self, |node, element| {
            node.children.entry(element.clone()).or_default()
        });
        node.member = true;
    }

    /// Whether the path of one element is in the set.
    fn has(&self, element: &str) -> bool {
        self.children.get(element).is_some_and(|child| child.member)
    }

    /// What lies below an element, if anything does.
    fn below(&self, element: &str) -> Option<&Self> {
        self.children
            .get(element)
            .filter(|child| child.children.values().any(|c| !c.is_empty()))
    }

    /// Whether a path of this set is in the given `fieldsV1`, which is not read into a set for it.
    pub(crate) fn meets(&self, fields: &Value) -> bool {
        self.children
            .iter()
            .any(|(element, child)| match fields.get(element) {
                Some(Value::Object(map)) => {
                    (child.member && (map.is_empty() || map.contains_key(".")))
                        || child.meets(&fields[element])
                }
                Some(_) | None => false,
            })
    }

    fn combine(&self, other: &Self, rule: fn(bool, bool) -> bool) -> Self {
        let nothing = Self::default();
        let mut children = BTreeMap::new();
        for key in self.children.keys().chain(other.children.keys()) {
            if children.contains_key(key) {
                continue;
            }
            let mine = self.children.get(key).unwrap_or(&nothing);
            let its = other.children.get(key).unwrap_or(&nothing);
            let child = mine.combine(its, rule);
            if !child.is_empty() {
                children.insert(key.clone(), child);
            }
        }
        Self {
            member: rule(self.member, other.member),
            children,
        }
    }

    /// Paths in either.
    pub(crate) fn union(&self, other: &Self) -> Self {
        self.combine(other, |mine, its| mine || its)
    }

    /// Paths in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |mine, its| mine && its)
    }

    /// Paths of this one that the other has not.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |mine, its| mine && !its)
    }

    /// This set without the given paths and all that lies below them.
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

    /// This set and every declared field on the way to its paths, which a set usually leaves out.
    pub(crate) fn with_declared<'a>(&'a self, ty: Type<'a>) -> Self {
        let mut out = Self {
            member: self.member,
            children: BTreeMap::new(),
        };
        for (key, child) in &self.children {
            let (ty, declared) = match key.strip_prefix("f:") {
                Some(name) => (ty.field(name), ty.declares(name)),
                None => (ty.item(), false),
            };
            let mut child = child.with_declared(ty);
            child.member |= declared && !child.children.is_empty();
            out.children.insert(key.clone(), child);
        }
        out
    }

    /// Every path, those that end at a level before those that go on.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
        for (key, _) in self.children.iter().filter(|(_, child)| child.member) {
            let mut path = prefix.clone();
            path.push(key.clone());
            out.push(path);
        }
        for (key, child) in &self.children {
            prefix.push(key.clone());
            child.collect(prefix, out);
            prefix.pop();
        }
    }
}

/// A path as messages show it: `.spec.containers[name="web"].image`.
pub(crate) fn display(path: &[String]) -> String {
    path.iter()
        .map(|element| display_element(element))
        .collect()
}

fn display_element(element: &str) -> String {
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

/// A key spelt by somebody else, in our spelling.
fn canonical(element: &str) -> String {
    match element
        .strip_prefix("k:")
        .map(serde_json::from_str::<Value>)
    {
        Some(Ok(keys)) => format!("k:{keys}"),
        Some(Err(_)) | None => element.to_owned(),
    }
}

/// The element of an item of a list; None for what cannot be told apart.
pub(crate) fn item_element(shape: &Shape, item: &Value) -> Option<String> {
    match shape {
        Shape::Set => Some(format!("v:{item}")),
        Shape::Keyed(keys) => {
            let mut out = Map::new();
            for key in keys {
                match item.get(key) {
                    Some(value) => drop(out.insert(key.clone(), value.clone())),
                    // The one key with a default among those we serve.
                    None if key == "protocol" => drop(out.insert(key.clone(), "TCP".into())),
                    None => {}
                }
            }
            (!out.is_empty()).then(|| format!("k:{}", Value::Object(out)))
        }
        Shape::Leaf | Shape::Struct | Shape::Map => None,
    }
}

/// Every field that a value speaks of, as an applier comes to own them.
pub(crate) fn of_value<'a>(value: &'a Value, ty: Type<'a>) -> FieldSet {
    let mut set = FieldSet::default();
    fill(&mut set, value, ty);
    set.member = false;
    set
}

fn fill<'a>(set: &mut FieldSet, value: &'a Value, ty: Type<'a>) {
    let shape = ty.shape(value);
    match (&shape, value) {
        (Shape::Struct | Shape::Map, Value::Object(map)) => {
            for (name, value) in map {
                let child = set.children.entry(format!("f:{name}")).or_default();
                fill(child, value, ty.field(name));
                let hollow = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                child.member |= hollow || !ty.declares(name);
            }
        }
        (Shape::Keyed(_) | Shape::Set, Value::Array(list)) => {
            for item in list {
                let Some(element) = item_element(&shape, item) else {
                    continue;
                };
                let child = set.children.entry(element).or_default();
                fill(child, item, ty.item());
                child.member = true;
            }
        }
        _ => set.member = true,
    }
}

/// The value without the given paths. What becomes empty on the way stays, empty.
pub(crate) fn remove<'a>(value: &'a Value, gone: &FieldSet, ty: Type<'a>) -> Value {
    let shape = ty.shape(value);
    match (&shape, value) {
        (Shape::Struct | Shape::Map, Value::Object(map)) => {
            let kept = map.iter().filter_map(|(name, value)| {
                let element = format!("f:{name}");
                if gone.has(&element) {
                    return None;
                }
                let value = gone
                    .below(&element)
                    .map_or_else(|| value.clone(), |gone| remove(value, gone, ty.field(name)));
                Some((name.clone(), value))
            });
            Value::Object(kept.collect())
        }
        (Shape::Keyed(_) | Shape::Set, Value::Array(list)) => {
            let kept = list.iter().filter_map(|item| {
                let Some(element) = item_element(&shape, item) else {
                    return Some(item.clone());
                };
                if gone.has(&element) {
                    return None;
                }
                Some(
                    gone.below(&element)
                        .map_or_else(|| item.clone(), |gone| remove(item, gone, ty.item())),
                )
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

    const NODE: Type<'static> = Type::BuiltIn {
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
        assert_eq!(of_value(&value, NODE).to_fields(), expected);
        assert_eq!(FieldSet::parse(&expected), of_value(&value, NODE));
    }

    #[test]
    fn a_path_reads_as_the_real_server_writes_it() {
        let path = [
            "f:spec".to_owned(),
            "k:{\"name\":\"web\"}".to_owned(),
            "f:image".to_owned(),
        ];
        assert_eq!(display(&path), ".spec[name=\"web\"].image");
    }
}
