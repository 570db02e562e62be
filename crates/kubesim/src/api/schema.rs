//! Field types: which lists are keyed, which are sets, which maps are free.
//!
//! Server-side apply and strategic merge need them. The real server reads them from its OpenAPI
//! document; here they are tables by field name, which is unambiguous among the kinds that we
//! serve. Custom resources bring their own schema.

use serde_json::Value;

use super::value::value_at;

/// Lists of objects, and the fields that identify an item.
const KEYED_LISTS: &[(&str, &[&str])] = &[
    ("addresses", &["type"]),
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("drivers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ownerReferences", &["uid"]),
    ("podIPs", &["ip"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("secrets", &["name"]),
    (
        "topologySpreadConstraints",
        &["topologyKey", "whenUnsatisfiable"],
    ),
    ("volumeDevices", &["devicePath"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];

/// Unordered lists of scalars.
const SET_LISTS: &[&str] = &["finalizers", "podCIDRs"];

/// Maps whose keys the user chooses.
const FREE_MAPS: &[&str] = &[
    "allocatable",
    "annotations",
    "attachmentMetadata",
    "binaryData",
    "capacity",
    "data",
    "disruptedPods",
    "labels",
    "limits",
    "overhead",
    "parameters",
    "requests",
    "stringData",
    "volumeAttributes",
];

/// Objects that one manager owns as a whole.
const ATOMIC_OBJECTS: &[&str] = &[
    "claimRef",
    "configMapKeyRef",
    "fieldRef",
    "fieldsV1",
    "involvedObject",
    "labelSelector",
    "namespaceSelector",
    "nodeSelector",
    "objectReference",
    "regarding",
    "related",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resourceFieldRef",
    "secretKeyRef",
    "secretRef",
    "selector",
];

/// A position in the schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SchemaType<'a> {
    /// A field of a built-in kind, by its name and its parent's name.
    BuiltIn { field: &'a str, parent: &'a str },
    /// A node of a custom resource's OpenAPI schema.
    Custom { schema: &'a Value, root: bool },
    /// No schema: the shape follows from the value.
    Unknown,
}

/// How a value is owned and merged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MergeShape {
    /// Owned and replaced as a whole.
    Leaf,
    /// Field by field; the schema declares the fields.
    Struct,
    /// Key by key.
    Map,
    /// Item by item, identified by these fields.
    Keyed(Vec<String>),
    /// Item by item, identified by value.
    Set,
}

impl<'a> SchemaType<'a> {
    pub(crate) fn of_resource(custom: Option<&'a Value>) -> Self {
        match custom {
            None => Self::BuiltIn {
                field: "",
                parent: "",
            },
            Some(version) => match value_at(version, &["schema", "openAPIV3Schema"]) {
                Some(schema) => Self::Custom { schema, root: true },
                None => Self::Unknown,
            },
        }
    }

    /// The type of this field of an object.
    pub(crate) fn field_type(self, name: &'a str) -> Self {
        match self {
            Self::BuiltIn { field, .. } => Self::BuiltIn {
                field: name,
                parent: field,
            },
            Self::Custom { root: true, .. } if name == "metadata" => Self::BuiltIn {
                field: name,
                parent: "",
            },
            Self::Custom { schema, .. } => {
                let known = value_at(schema, &["properties", name]);
                match known
                    .or_else(|| schema.get("additionalProperties"))
                    .filter(|s| s.is_object())
                {
                    Some(schema) => Self::Custom {
                        schema,
                        root: false,
                    },
                    None => Self::Unknown,
                }
            }
            Self::Unknown => Self::Unknown,
        }
    }

    /// The type of an item of a list.
    pub(crate) fn item_type(self) -> Self {
        match self {
            // An item is a struct; the parent of its fields is the list.
            Self::BuiltIn { field, .. } => Self::BuiltIn {
                field: "",
                parent: field,
            },
            Self::Custom { schema, .. } => match schema.get("items") {
                Some(schema) => Self::Custom {
                    schema,
                    root: false,
                },
                None => Self::Unknown,
            },
            Self::Unknown => Self::Unknown,
        }
    }

    /// Whether the schema declares `name` as a field, as opposed to a key of a map.
    pub(crate) fn declares_field(self, name: &str) -> bool {
        match self {
            Self::BuiltIn { field, .. } => !FREE_MAPS.contains(&field),
            Self::Custom { root: true, .. }
                if matches!(name, "metadata" | "apiVersion" | "kind") =>
            {
                true
            }
            Self::Custom { schema, .. } => value_at(schema, &["properties", name]).is_some(),
            Self::Unknown => false,
        }
    }

    /// How this value is owned and merged.
    pub(crate) fn shape_of_value(self, value: &Value) -> MergeShape {
        match value {
            Value::Object(_) => self.object_shape(),
            Value::Array(_) => self.list_shape(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => MergeShape::Leaf,
        }
    }

    fn object_shape(self) -> MergeShape {
        match self {
            Self::BuiltIn { field, .. } if ATOMIC_OBJECTS.contains(&field) => MergeShape::Leaf,
            // An owner reference is owned as a whole.
            Self::BuiltIn {
                field: "",
                parent: "ownerReferences",
            } => MergeShape::Leaf,
            Self::BuiltIn { field, .. } if FREE_MAPS.contains(&field) => MergeShape::Map,
            Self::BuiltIn { .. } => MergeShape::Struct,
            Self::Custom { schema, .. } => {
                if schema["x-kubernetes-map-type"] == "atomic" {
                    MergeShape::Leaf
                } else if schema
                    .get("additionalProperties")
                    .is_some_and(|s| s != &Value::Bool(false))
                {
                    MergeShape::Map
                } else {
                    MergeShape::Struct
                }
            }
            Self::Unknown => MergeShape::Map,
        }
    }

    fn list_shape(self) -> MergeShape {
        match self {
            Self::BuiltIn { field, parent } => built_in_list_shape(field, parent),
            Self::Custom { schema, .. } => match schema["x-kubernetes-list-type"].as_str() {
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array();
                    let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                    MergeShape::Keyed(keys.map(Into::into).collect())
                }
                Some("set") => MergeShape::Set,
                _ => MergeShape::Leaf,
            },
            Self::Unknown => MergeShape::Leaf,
        }
    }
}

fn built_in_list_shape(field: &str, parent: &str) -> MergeShape {
    if field == "ports" {
        // The ports of a container and of a Service.
        let port = if parent == "spec" {
            "port"
        } else {
            "containerPort"
        };
        return MergeShape::Keyed(vec![port.into(), "protocol".into()]);
    }
    if field == "finalizers" && parent != "metadata" {
        return MergeShape::Leaf;
    }
    if SET_LISTS.contains(&field) {
        return MergeShape::Set;
    }
    match KEYED_LISTS.iter().find(|(name, _)| *name == field) {
        Some((_, keys)) => MergeShape::Keyed(keys.iter().map(|key| (*key).to_owned()).collect()),
        None => MergeShape::Leaf,
    }
}

/// The merge key of strategic merge: only the first key of the list.
pub(crate) fn strategic_merge_key(field: &str, parent: &str) -> Option<String> {
    match built_in_list_shape(field, parent) {
        MergeShape::Keyed(keys) => keys.into_iter().next(),
        MergeShape::Leaf | MergeShape::Struct | MergeShape::Map | MergeShape::Set => None,
    }
}

/// Whether strategic merge adds to this list of scalars instead of replacing it.
pub(crate) fn is_strategic_set(field: &str, parent: &str) -> bool {
    SET_LISTS.contains(&field) && (field != "finalizers" || parent == "metadata")
}
