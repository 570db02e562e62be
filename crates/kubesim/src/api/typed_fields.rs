//! The fields of built-in kinds, by the types of `k8s-openapi`.
//!
//! An object is read into its type and written out again: what is gone had no field to go to.

use k8s_openapi::api::{apps, coordination, core, events, policy, storage};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kinds::ServedResource;

/// Why a value does not fit its field.
#[derive(Debug)]
pub(crate) struct TypeFault(pub(crate) String);

/// Removes the fields that a built-in kind does not have, and returns their paths, sorted.
pub(crate) fn find_type_faults(
    resource: &ServedResource,
    object: &mut Value,
) -> Result<Vec<String>, TypeFault> {
    let mut typed = object.clone();
    typed["kind"] = resource.kind.as_str().into();
    typed["apiVersion"] = resource.api_version().into();
    let Some(typed) = pass_through_type(resource, typed) else {
        return Ok(Vec::new());
    };
    let typed = typed.map_err(|error| TypeFault(format!("json: {error}")))?;
    let mut unknown = Vec::new();
    remove_missing_fields(object, &typed, "", &mut unknown);
    unknown.sort();
    Ok(unknown)
}

/// The object as its type writes it; None for a kind without a type here.
fn pass_through_type(
    resource: &ServedResource,
    object: Value,
) -> Option<Result<Value, serde_json::Error>> {
    Some(match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "configmaps") => pass_through::<core::v1::ConfigMap>(object),
        ("", "events") => pass_through::<core::v1::Event>(object),
        ("", "namespaces") => pass_through::<core::v1::Namespace>(object),
        ("", "nodes") => pass_through::<core::v1::Node>(object),
        ("", "persistentvolumeclaims") => pass_through::<core::v1::PersistentVolumeClaim>(object),
        ("", "persistentvolumes") => pass_through::<core::v1::PersistentVolume>(object),
        ("", "pods") => pass_through::<core::v1::Pod>(object),
        ("", "secrets") => pass_through::<core::v1::Secret>(object),
        ("", "serviceaccounts") => pass_through::<core::v1::ServiceAccount>(object),
        ("", "services") => pass_through::<core::v1::Service>(object),
        ("apiextensions.k8s.io", _) => {
            pass_through::<apiextensions::v1::CustomResourceDefinition>(object)
        }
        ("apps", "daemonsets") => pass_through::<apps::v1::DaemonSet>(object),
        ("apps", "deployments") => pass_through::<apps::v1::Deployment>(object),
        ("apps", "replicasets") => pass_through::<apps::v1::ReplicaSet>(object),
        ("apps", "statefulsets") => pass_through::<apps::v1::StatefulSet>(object),
        ("coordination.k8s.io", "leases") => pass_through::<coordination::v1::Lease>(object),
        ("events.k8s.io", "events") => pass_through::<events::v1::Event>(object),
        ("policy", _) => pass_through::<policy::v1::PodDisruptionBudget>(object),
        ("storage.k8s.io", "csinodes") => pass_through::<storage::v1::CSINode>(object),
        ("storage.k8s.io", "volumeattachments") => {
            pass_through::<storage::v1::VolumeAttachment>(object)
        }
        (_, _) => return None,
    })
}

fn pass_through<T: DeserializeOwned + Serialize>(
    object: Value,
) -> Result<Value, serde_json::Error> {
    let typed: T = serde_json::from_value(object)?;
    serde_json::to_value(typed)
}

fn remove_missing_fields(object: &mut Value, typed: &Value, path: &str, gone: &mut Vec<String>) {
    match object {
        Value::Object(fields) => fields.retain(|name, value| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            match typed.get(name) {
                Some(typed) => remove_missing_fields(value, typed, &path, gone),
                None if value.is_null() => {}
                None => {
                    gone.push(path);
                    return false;
                }
            }
            true
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some(typed) = typed.get(index) {
                    remove_missing_fields(item, typed, &format!("{path}[{index}]"), gone);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
