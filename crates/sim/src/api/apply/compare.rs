//! What changed from one object to another, as sets of paths.

use std::collections::BTreeMap;

use serde_json::Value;

use super::paths::{FieldSet, item_element};
use crate::api::schema::{Shape, Type};

/// What changed from one value to another.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// Compares two objects.
    pub(crate) fn of<'a>(old: &'a Value, new: &'a Value, ty: Type<'a>) -> Self {
        let mut comparison = Self::default();
        comparison.compare(&mut Vec::new(), Some(old), Some(new), ty);
        comparison
    }

    /// The comparison without these fields and what lies below them.
    pub(crate) fn without_trees(&self, trees: &FieldSet) -> Self {
        Self {
            added: self.added.without_trees(trees),
            modified: self.modified.without_trees(trees),
            removed: self.removed.without_trees(trees),
        }
    }

    fn compare<'a>(
        &mut self,
        path: &mut Vec<String>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        ty: Type<'a>,
    ) {
        // Equal trees have nothing to say, and most of an object stays as it was.
        if old == new {
            return;
        }
        let Some(seen) = new.or(old) else { return };
        let hollow = |value: Option<&Value>| match value {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) | None => true,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
        };
        let shape = ty.shape(seen);
        let shape = if hollow(old) && hollow(new) {
            Shape::Leaf
        } else {
            shape
        };
        match shape {
            Shape::Leaf => {
                self.note_leaf(path, old, new);
                return;
            }
            Shape::Struct | Shape::Map => self.compare_fields(path, old, new, ty),
            Shape::Keyed(_) | Shape::Set => self.compare_items(path, old, new, ty, &shape),
        }
        if path.is_empty() {
            return;
        }
        if old.is_none() {
            self.added.insert(path);
        } else if new.is_none() {
            self.removed.insert(path);
        }
    }

    fn note_leaf(&mut self, path: &[String], old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(_), Some(_)) => self.modified.insert(path),
        }
    }

    fn compare_fields<'a>(
        &mut self,
        path: &mut Vec<String>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        ty: Type<'a>,
    ) {
        let (old, new) = (
            old.and_then(Value::as_object),
            new.and_then(Value::as_object),
        );
        for (name, value) in old.into_iter().flatten() {
            path.push(format!("f:{name}"));
            self.compare(
                path,
                Some(value),
                new.and_then(|new| new.get(name)),
                ty.field(name),
            );
            path.pop();
        }
        for (name, value) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                path.push(format!("f:{name}"));
                self.compare(path, None, Some(value), ty.field(name));
                path.pop();
            }
        }
    }

    fn compare_items<'a>(
        &mut self,
        path: &mut Vec<String>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        ty: Type<'a>,
        shape: &Shape,
    ) {
        let index = |value: Option<&'a Value>| -> BTreeMap<String, &'a Value> {
            let list = value.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|item| Some((item_element(shape, item)?, item)))
                .collect()
        };
        let (old, new) = (index(old), index(new));
        for element in old
            .keys()
            .chain(new.keys().filter(|key| !old.contains_key(*key)))
        {
            path.push(element.clone());
            self.compare(
                path,
                old.get(element).copied(),
                new.get(element).copied(),
                ty.item(),
            );
            path.pop();
        }
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
    fn a_comparison_tells_added_modified_and_removed_apart() {
        let old = json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"x": 1}});
        let new = json!({"metadata": {"labels": {"a": "2"}, "annotations": {"n": "v"}}, "spec": {"x": 1}});
        let comparison = Comparison::of(&old, &new, NODE);
        assert_eq!(
            comparison.modified.to_fields(),
            json!({"f:metadata": {"f:labels": {"f:a": {}}}})
        );
        assert_eq!(
            comparison.removed.to_fields(),
            json!({"f:metadata": {"f:labels": {"f:b": {}}}})
        );
        let added = json!({"f:metadata": {"f:annotations": {".": {}, "f:n": {}}}});
        assert_eq!(comparison.added.to_fields(), added);
    }
}
