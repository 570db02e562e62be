//! What the fields are made of: which lists are keyed, which are sets, which maps are free.
//!
//! Server-side apply and strategic merge both need it. The real server reads it from its OpenAPI
//! document; here it is a table by field name, which is unambiguous among the kinds that we serve.
//! Custom resources bring their own schema.

use serde_json::Value;

use super::value::at;

/// Lists of objects and the fields that tell their items apart.
const KEYED: &[(&str, &[&str])] = &[
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

/// Lists of scalars without an order.
const SETS: &[&str] = &["finalizers", "podCIDRs"];

/// Maps whose keys the user makes up.
const MAPS: &[&str] = &[
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

/// Objects that have one owner as a whole.
const ATOMIC: &[&str] = &[
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

/// Where we are in the schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// A field of a built-in kind, by its name and that of the field above it.
    BuiltIn { field: &'a str, parent: &'a str },
    /// A node of a custom resource's OpenAPI schema.
    Custom { schema: &'a Value, root: bool },
    /// Nothing is known: what the value looks like decides.
    Unknown,
}

/// How a value is owned and merged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// As a whole.
    Leaf,
    /// Field by field, the fields known beforehand.
    Struct,
    /// Key by key.
    Map,
    /// Item by item, told apart by these fields.
    Keyed(Vec<String>),
    /// Item by item, told apart by their value.
    Set,
}

impl<'a> Type<'a> {
    /// The schema of a resource's objects.
    pub(crate) fn of(custom: Option<&'a Value>) -> Self {
        match custom {
            None => Self::BuiltIn {
                field: "",
                parent: "",
            },
            Some(version) => match at(version, &["schema", "openAPIV3Schema"]) {
                Some(schema) => Self::Custom { schema, root: true },
                None => Self::Unknown,
            },
        }
    }

    /// The type of a field of an object of this type.
    pub(crate) fn field(self, name: &'a str) -> Self {
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
                let known = at(schema, &["properties", name]);
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

    /// The type of an item of a list of this type.
    pub(crate) fn item(self) -> Self {
        match self {
            // An item is a struct; its fields look up to the list's name.
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

    /// Whether `name` is a field known to the schema, as opposed to a key of a map.
    pub(crate) fn declares(self, name: &str) -> bool {
        match self {
            Self::BuiltIn { field, .. } => !MAPS.contains(&field),
            Self::Custom { root: true, .. }
                if matches!(name, "metadata" | "apiVersion" | "kind") =>
            {
                true
            }
            Self::Custom { schema, .. } => at(schema, &["properties", name]).is_some(),
            Self::Unknown => false,
        }
    }

    /// How this value is owned and merged.
    pub(crate) fn shape(self, value: &Value) -> Shape {
        match value {
            Value::Object(_) => self.object_shape(),
            Value::Array(_) => self.list_shape(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Shape::Leaf,
        }
    }

    fn object_shape(self) -> Shape {
        match self {
            Self::BuiltIn { field, .. } if ATOMIC.contains(&field) => Shape::Leaf,
            // An owner is named as a whole.
            Self::BuiltIn {
                field: "",
                parent: "ownerReferences",
            } => Shape::Leaf,
            Self::BuiltIn { field, .. } if MAPS.contains(&field) => Shape::Map,
            Self::BuiltIn { .. } => Shape::Struct,
            Self::Custom { schema, .. } => {
                if schema["x-kubernetes-map-type"] == "atomic" {
                    Shape::Leaf
                } else if schema
                    .get("additionalProperties")
                    .is_some_and(|s| s != &Value::Bool(false))
                {
                    Shape::Map
                } else {
                    Shape::Struct
                }
            }
            Self::Unknown => Shape::Map,
        }
    }

    fn list_shape(self) -> Shape {
        match self {
            Self::BuiltIn { field, parent } => built_in_list(field, parent),
            Self::Custom { schema, .. } => match schema["x-kubernetes-list-type"].as_str() {
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array();
                    let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                    Shape::Keyed(keys.map(Into::into).collect())
                }
                Some("set") => Shape::Set,
                _ => Shape::Leaf,
            },
            Self::Unknown => Shape::Leaf,
        }
    }
}

fn built_in_list(field: &str, parent: &str) -> Shape {
    if field == "ports" {
        // A container's ports and a Service's.
        let port = if parent == "spec" {
            "port"
        } else {
            "containerPort"
        };
        return Shape::Keyed(vec![port.into(), "protocol".into()]);
    }
    if field == "finalizers" && parent != "metadata" {
        return Shape::Leaf;
    }
    if SETS.contains(&field) {
        return Shape::Set;
    }
    match KEYED.iter().find(|(name, _)| *name == field) {
        Some((_, keys)) => Shape::Keyed(keys.iter().map(|key| (*key).to_owned()).collect()),
        None => Shape::Leaf,
    }
}

/// What strategic merge goes by: the first key alone.
pub(crate) fn strategic_key(field: &str, parent: &str) -> Option<String> {
    match built_in_list(field, parent) {
        Shape::Keyed(keys) => keys.into_iter().next(),
        Shape::Leaf | Shape::Struct | Shape::Map | Shape::Set => None,
    }
}

/// Whether strategic merge adds to this list of scalars instead of replacing it.
pub(crate) fn strategic_set(field: &str, parent: &str) -> bool {
    SETS.contains(&field) && (field != "finalizers" || parent == "metadata")
}
