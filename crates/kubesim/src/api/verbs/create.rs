//! create (POST).

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{drop_empty_metadata, object_response, parse_object, set_request_namespace};
use crate::api::apply::field_set::FieldSet;
use crate::api::apply::managed_fields::{FieldWriter, track_update};
use crate::api::kinds::{ServedResource, Subresource};
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::{ApiRequestTarget, object_key};
use crate::api::schema::SchemaType;
use crate::api::status::{ApiError, ApiResult, status_details};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::strategy;
use crate::api::validate;
use crate::api::value::{is_terminating, meta_mut, meta_text};

pub(crate) fn create_object(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    let resource = &target.resource;
    let mut object = parse_object(store, request, resource)?;
    if !resource.namespaced && !target.namespace.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if resource.namespaced && target.namespace.is_empty() {
        return Err(ApiError::bad_request(
            "an empty namespace may not be set during creation",
        ));
    }
    set_request_namespace(&mut object, resource, &target.namespace)?;
    let generated = fill_generated_name(store, &mut object);
    validate::validate_field_manager("CreateOptions", request.query.get("fieldManager"))?;
    let stored = store_new_object(store, request, target, object, true);
    let stored = match stored {
        // A generated name that exists already is not the client's fault: generate again, a few
        // times.
        Err(error) if generated && error.reason == "AlreadyExists" => {
            return create_object(store, request, target);
        }
        other => other?,
    };
    object_response(store, request, resource, &stored, 201)
}

/// Fills in a generated name. Returns whether it did.
fn fill_generated_name(store: &mut ObjectStore, object: &mut Value) -> bool {
    let prefix = meta_text(object, "generateName").to_owned();
    if !meta_text(object, "name").is_empty() || prefix.is_empty() {
        return false;
    }
    let name = format!("{}{}", &prefix[..prefix.len().min(58)], store.new_suffix());
    meta_mut(object).insert("name".into(), name.into());
    true
}

/// Stores a new object. With `tracked`, the writer becomes the owner of its fields by update;
/// without, an apply has already set the owners.
pub(crate) fn store_new_object(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
    mut object: Value,
    tracked: bool,
) -> ApiResult<Arc<StoredObject>> {
    let resource = &target.resource;
    if !meta_text(&object, "resourceVersion").is_empty() && tracked {
        return Err(ApiError::without_reason(
            500,
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let name = meta_text(&object, "name").to_owned();
    admit_to_namespace(store, resource, &target.namespace, &name)?;
    drop_empty_metadata(&mut object);
    let now = store.now_text();
    let uid = store.new_uid();
    let meta = meta_mut(&mut object);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "resourceVersion",
    ] {
        meta.remove(field);
    }
    meta.insert("uid".into(), uid.into());
    meta.insert("creationTimestamp".into(), now.as_str().into());
    if resource.generation {
        meta.insert("generation".into(), 1.into());
    } else {
        meta.remove("generation");
    }
    strategy::prepare_create(resource, &mut object, &now);
    validate::validate_create(resource, &object)?;
    if tracked {
        let reset = reset_fields(resource, target.subresource);
        let api_version = resource.api_version();
        let writer = FieldWriter {
            manager: request.field_manager(),
            api_version: &api_version,
            subresource: "",
            now: &now,
            reset: &reset,
        };
        track_update(
            None,
            &mut object,
            &writer,
            SchemaType::of_resource(resource.custom.as_ref()),
            resource.custom.is_some(),
        );
    }
    let key = object_key(&target.namespace, &name);
    if let Some(other) = store.find_object(resource, &key) {
        let mut refusal = ApiError::already_exists(resource, &name);
        if is_terminating(&other.value) {
            refusal.message = format!("object is being deleted: {}", refusal.message);
        }
        return Err(refusal);
    }
    if request.is_dry_run() {
        return Ok(Arc::new(StoredObject::new(object)));
    }
    Ok(store.put_object(resource, &key, object))
}

/// The namespace must exist and must not be terminating.
pub(crate) fn admit_to_namespace(
    store: &ObjectStore,
    resource: &ServedResource,
    namespace: &str,
    name: &str,
) -> ApiResult<()> {
    if !resource.namespaced {
        return Ok(());
    }
    match store.namespace_is_terminating(namespace) {
        Some(false) => Ok(()),
        None => Err(ApiError::not_found(
            &store.registry.expect_resource("v1", "namespaces"),
            namespace,
        )),
        Some(true) => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut refusal = ApiError::forbidden(&resource.group, &resource.plural, name, &why);
            let mut details = status_details(&resource.group, &resource.plural, name);
            let message = format!("namespace {namespace} is being terminated");
            details["causes"] = json!([{ "reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace" }]);
            refusal.details = details;
            Err(refusal)
        }
    }
}

/// Fields that a write to this path cannot change.
pub(crate) fn reset_fields(
    resource: &ServedResource,
    subresource: Option<Subresource>,
) -> FieldSet {
    let fields = match subresource {
        None if resource.is_built_in_kind("", "namespaces") => {
            json!({ "f:status": {}, "f:spec": { "f:finalizers": {} } })
        }
        // Admission sets these two fields and owns nothing.
        None if resource.is_built_in_kind("", "pods") => {
            json!({ "f:status": {}, "f:spec": { "f:priority": {}, "f:preemptionPolicy": {} } })
        }
        None if resource.has_subresource(Subresource::Status) => json!({ "f:status": {} }),
        Some(Subresource::Status) if resource.is_built_in_kind("", "pods") => {
            json!({ "f:spec": {}, "f:metadata": { "f:deletionTimestamp": {}, "f:ownerReferences": {} } })
        }
        Some(Subresource::Status) if resource.custom.is_some() => {
            json!({ "f:spec": {}, "f:metadata": {} })
        }
        Some(Subresource::Status) => json!({ "f:spec": {} }),
        None | Some(Subresource::Eviction | Subresource::Binding) => json!({}),
    };
    FieldSet::parse(&fields)
}
