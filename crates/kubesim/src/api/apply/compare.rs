//! Comparison of two objects: the changed paths, as sets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_set::{FieldSet, item_element};
use crate::api::schema::{MergeShape, SchemaType};

#[derive(Debug, Default)]
pub(crate) struct FieldComparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl FieldComparison {
    pub(crate) fn compare_objects<'a>(old: &'a Value, new: &'a Value, ty: SchemaType<'a>) -> Self {
        let mut comparison = Self::default();
        comparison.compare_values(&mut Vec::new(), Some(old), Some(new), ty);
        comparison
    }

    /// Drops these fields and all fields below them from the comparison.
    pub(crate) fn without_trees(&self, trees: &FieldSet) -> Self {
        Self {
            added: self.added.without_trees(trees),
            modified: self.modified.without_trees(trees),
            removed: self.removed.without_trees(trees),
        }
    }

    fn compare_values<'a>(
        &mut self,
        path: &mut Vec<String>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        ty: SchemaType<'a>,
    ) {
        // Equal subtrees need no walk, and most of an object is unchanged.
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
        let shape = ty.shape_of_value(seen);
        let shape = if hollow(old) && hollow(new) {
            MergeShape::Leaf
        } else {
            shape
        };
        match shape {
            MergeShape::Leaf => {
                self.record_leaf(path, old, new);
                return;
            }
            MergeShape::Struct | MergeShape::Map => self.compare_fields(path, old, new, ty),
            MergeShape::Keyed(_) | MergeShape::Set => {
                self.compare_items(path, old, new, ty, &shape);
            }
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

    fn record_leaf(&mut self, path: &[String], old: Option<&Value>, new: Option<&Value>) {
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
        ty: SchemaType<'a>,
    ) {
        let (old, new) = (
            old.and_then(Value::as_object),
            new.and_then(Value::as_object),
        );
        for (name, value) in old.into_iter().flatten() {
            path.push(format!("f:{name}"));
            self.compare_values(
                path,
                Some(value),
                new.and_then(|new| new.get(name)),
                ty.field_type(name),
            );
            path.pop();
        }
        for (name, value) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                path.push(format!("f:{name}"));
                self.compare_values(path, None, Some(value), ty.field_type(name));
                path.pop();
            }
        }
    }

    fn compare_items<'a>(
        &mut self,
        path: &mut Vec<String>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        ty: SchemaType<'a>,
        shape: &MergeShape,
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
            self.compare_values(
                path,
                old.get(element).copied(),
                new.get(element).copied(),
                ty.item_type(),
            );
            path.pop();
        }
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
    fn a_comparison_tells_added_modified_and_removed_apart() {
        let old = json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"x": 1}});
        let new = json!({"metadata": {"labels": {"a": "2"}, "annotations": {"n": "v"}}, "spec": {"x": 1}});
        let comparison = FieldComparison::compare_objects(&old, &new, NODE);
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
