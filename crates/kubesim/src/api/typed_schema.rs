//! The schemas of built-in kinds, read from how their types of `k8s-openapi` deserialize.
//!
//! Each type tells its deserializer the names of its fields and asks for a value of each. The
//! deserializer here answers with an example, and writes down what it was asked for.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use k8s_openapi::api::{apps, coordination, core, events, policy, storage};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value::Error,
};
use serde_json::{Map, Value, json};

use super::kinds::ServedResource;

/// A type that contains itself is described down to this depth.
const MAX_DEPTH: usize = 12;

/// The fields of a built-in kind as an OpenAPI schema; None for a custom resource.
pub(crate) fn built_in_schema(resource: &ServedResource) -> Option<Value> {
    if resource.custom.is_some() {
        return None;
    }
    Some(match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps") => describe_type::<core::v1::ConfigMap>(),
        ("", "events") => describe_type::<core::v1::Event>(),
        ("", "namespaces") => describe_type::<core::v1::Namespace>(),
        ("", "nodes") => describe_type::<core::v1::Node>(),
        ("", "persistentvolumeclaims") => describe_type::<core::v1::PersistentVolumeClaim>(),
        ("", "persistentvolumes") => describe_type::<core::v1::PersistentVolume>(),
        ("", "pods") => describe_type::<core::v1::Pod>(),
        ("", "secrets") => describe_type::<core::v1::Secret>(),
        ("", "serviceaccounts") => describe_type::<core::v1::ServiceAccount>(),
        ("", "services") => describe_type::<core::v1::Service>(),
        ("apiextensions.k8s.io", _) => {
            describe_type::<apiextensions::v1::CustomResourceDefinition>()
        }
        ("apps", "daemonsets") => describe_type::<apps::v1::DaemonSet>(),
        ("apps", "deployments") => describe_type::<apps::v1::Deployment>(),
        ("apps", "replicasets") => describe_type::<apps::v1::ReplicaSet>(),
        ("apps", "statefulsets") => describe_type::<apps::v1::StatefulSet>(),
        ("coordination.k8s.io", _) => describe_type::<coordination::v1::Lease>(),
        ("events.k8s.io", _) => describe_type::<events::v1::Event>(),
        ("policy", _) => describe_type::<policy::v1::PodDisruptionBudget>(),
        ("storage.k8s.io", "csinodes") => describe_type::<storage::v1::CSINode>(),
        ("storage.k8s.io", _) => describe_type::<storage::v1::VolumeAttachment>(),
        (_, _) => return None,
    })
}

/// Reads the type until no field refuses its example any more.
fn describe_type<T: DeserializeOwned>() -> Value {
    let trace = Rc::new(RefCell::new(TypeTrace::default()));
    loop {
        let before = trace.borrow().refused.len();
        let schema = Rc::new(RefCell::new(json!({})));
        let reader = TypeReader {
            path: String::new(),
            depth: 0,
            schema: Rc::clone(&schema),
            trace: Rc::clone(&trace),
        };
        let read = T::deserialize(reader);
        if read.is_ok() || trace.borrow().refused.len() == before {
            return schema.take();
        }
    }
}

#[derive(Debug, Default)]
struct TypeTrace {
    /// Paths of fields that want a text of their own kind, like base64: they are left out when the
    /// type is read again.
    refused: BTreeSet<String>,
}

impl TypeTrace {
    /// Only the innermost field is at fault.
    fn note_refusal(&mut self, path: String) {
        if !self.refused.iter().any(|inner| inner.starts_with(&path)) {
            self.refused.insert(path);
        }
    }
}

/// Stands for the value at one path.
struct TypeReader {
    path: String,
    depth: usize,
    schema: Rc<RefCell<Value>>,
    trace: Rc<RefCell<TypeTrace>>,
}

impl TypeReader {
    fn describe(&self, schema: Value) {
        *self.schema.borrow_mut() = schema;
    }

    fn child(&self, name: &str) -> Self {
        Self {
            path: format!("{}.{name}", self.path),
            depth: self.depth + 1,
            schema: Rc::new(RefCell::new(json!({}))),
            trace: Rc::clone(&self.trace),
        }
    }
}

/// A type that asks for this is described like this, and gets this example.
macro_rules! answer_with {
    ($($method:ident $visit:ident $example:expr, $schema:expr;)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.describe($schema);
            visitor.$visit($example)
        }
    )* };
}

/// A time is the text that the most types of texts accept.
const EXAMPLE_TEXT: &str = "2026-01-01T00:00:00.000000Z";

impl<'de> Deserializer<'de> for TypeReader {
    type Error = Error;

    answer_with! {
        deserialize_bool visit_bool false, json!({ "type": "boolean" });
        deserialize_i8 visit_i8 0, json!({ "type": "integer", "format": "int32" });
        deserialize_i16 visit_i16 0, json!({ "type": "integer", "format": "int32" });
        deserialize_i32 visit_i32 0, json!({ "type": "integer", "format": "int32" });
        deserialize_i64 visit_i64 0, json!({ "type": "integer", "format": "int64" });
        deserialize_u8 visit_u8 0, json!({ "type": "integer" });
        deserialize_u16 visit_u16 0, json!({ "type": "integer" });
        deserialize_u32 visit_u32 0, json!({ "type": "integer" });
        deserialize_u64 visit_u64 0, json!({ "type": "integer" });
        deserialize_f32 visit_f32 0.0, json!({ "type": "number" });
        deserialize_f64 visit_f64 0.0, json!({ "type": "number" });
        deserialize_char visit_char 'a', json!({ "type": "string" });
        deserialize_str visit_str EXAMPLE_TEXT, json!({ "type": "string" });
        deserialize_string visit_str EXAMPLE_TEXT, json!({ "type": "string" });
        deserialize_bytes visit_str "", json!({ "type": "string", "format": "byte" });
        deserialize_byte_buf visit_str "", json!({ "type": "string", "format": "byte" });
    }

    /// Any JSON.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if std::any::type_name::<V>().contains("IntOrString") {
            self.describe(json!({ "x-kubernetes-int-or-string": true }));
            return visitor.visit_i64(0);
        }
        self.describe(json!({ "x-kubernetes-preserve-unknown-fields": true }));
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.depth > MAX_DEPTH {
            self.describe(
                json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            );
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    /// A text or number of a kind of its own: a quantity, a time, a number or a percentage.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == "IntOrString" {
            self.describe(json!({ "x-kubernetes-int-or-string": true }));
            return visitor.visit_i32(0);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let item = self.child("[]");
        let item_schema = Rc::clone(&item.schema);
        let read = visitor.visit_seq(OneItem(Some(item)));
        self.describe(json!({ "type": "array", "items": item_schema.take() }));
        read
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let entry = self.child("{}");
        let entry_schema = Rc::clone(&entry.schema);
        let is_refused = self.trace.borrow().refused.contains(&entry.path);
        let mut fields = StructFields::new(&["key"], &self);
        fields.only_value = Some(entry);
        if is_refused {
            fields.names.clear();
        }
        let read = visitor.visit_map(fields);
        let entries = if is_refused {
            json!({ "type": "string" })
        } else {
            entry_schema.take()
        };
        self.describe(json!({ "type": "object", "additionalProperties": entries }));
        read
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let fields = StructFields::new(names, &self);
        let properties = Rc::clone(&fields.properties);
        let read = visitor.visit_map(fields);
        let properties = properties.take();
        self.describe(json!({ "type": "object", "properties": properties }));
        read
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

/// A list of one item.
struct OneItem(Option<TypeReader>);

impl<'de> SeqAccess<'de> for OneItem {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.0.take() else {
            return Ok(None);
        };
        if item.trace.borrow().refused.contains(&item.path) {
            item.describe(json!({ "type": "string" }));
            return Ok(None);
        }
        let (path, trace) = (item.path.clone(), Rc::clone(&item.trace));
        let read = seed.deserialize(item);
        if read.is_err() {
            trace.borrow_mut().note_refusal(path);
        }
        read.map(Some)
    }
}

/// An object with every field of its type, or a map with one entry.
struct StructFields {
    names: Vec<&'static str>,
    parent: TypeReader,
    only_value: Option<TypeReader>,
    properties: Rc<RefCell<Map<String, Value>>>,
}

impl StructFields {
    fn new(names: &[&'static str], parent: &TypeReader) -> Self {
        let mut names = names.to_vec();
        names.reverse();
        Self {
            names,
            parent: TypeReader {
                path: parent.path.clone(),
                ..parent.child("")
            },
            only_value: None,
            properties: Rc::default(),
        }
    }
}

impl<'de> MapAccess<'de> for StructFields {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        while let Some(name) = self.names.last() {
            let path = format!("{}.{name}", self.parent.path);
            let is_refused = self.parent.trace.borrow().refused.contains(&path);
            // Every kind has these, and every request names them.
            let is_given = path == ".apiVersion" || path == ".kind" || path == ".metadata";
            if !is_refused && !is_given {
                return seed
                    .deserialize(serde::de::value::StrDeserializer::new(name))
                    .map(Some);
            }
            if is_refused {
                let text = json!({ "type": "string" });
                self.properties.borrow_mut().insert((*name).into(), text);
            }
            self.names.pop();
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let name = self.names.pop().expect("a key comes before its value");
        let child = self
            .only_value
            .take()
            .unwrap_or_else(|| self.parent.child(name));
        let (path, trace) = (child.path.clone(), Rc::clone(&child.trace));
        let schema = Rc::clone(&child.schema);
        let read = seed.deserialize(child);
        if read.is_err() {
            trace.borrow_mut().note_refusal(path);
        }
        self.properties
            .borrow_mut()
            .insert(name.to_owned(), schema.take());
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_type_are_known_down_to_the_leaves() {
        let pod = describe_type::<core::v1::Pod>();
        let spec = &pod["properties"]["spec"]["properties"];
        assert_eq!(spec["nodeName"], json!({ "type": "string" }));
        assert_eq!(
            spec["containers"]["items"]["properties"]["image"],
            json!({ "type": "string" })
        );
        assert_eq!(
            spec["terminationGracePeriodSeconds"],
            json!({ "type": "integer", "format": "int64" })
        );
        let budget = describe_type::<policy::v1::PodDisruptionBudget>();
        let spec = &budget["properties"]["spec"]["properties"];
        assert_eq!(
            spec["minAvailable"],
            json!({ "x-kubernetes-int-or-string": true })
        );
        let secret = describe_type::<core::v1::Secret>();
        assert_eq!(secret["properties"]["data"]["type"], "object");
        assert_eq!(secret["properties"]["type"], json!({ "type": "string" }));
    }

    #[test]
    fn every_served_kind_is_described() {
        let registry = super::super::kinds::ResourceRegistry::with_built_in_kinds();
        for (version, resources) in registry.resources_by_version() {
            for (name, resource) in resources {
                let schema = built_in_schema(resource).unwrap_or_default();
                let fields = schema["properties"].as_object();
                assert!(
                    fields.is_some_and(|fields| !fields.is_empty()),
                    "{version} {name}: {schema}"
                );
            }
        }
    }
}
