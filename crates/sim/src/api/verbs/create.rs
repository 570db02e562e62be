//! create.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{drop_empty_metadata, object, settle_namespace, shown};
use crate::api::apply::managed::{Writer, track_update};
use crate::api::apply::paths::FieldSet;
use crate::api::kinds::{Resource, Subresource};
use crate::api::request::{Request, Response};
use crate::api::route::{Target, key};
use crate::api::schema::Type;
use crate::api::status::{ApiError, Result, details};
use crate::api::store::{Store, Stored};
use crate::api::strategy;
use crate::api::validate;
use crate::api::value::{is_terminating, meta, meta_mut};

/// Makes what a POST brings.
pub(crate) fn create(store: &mut Store, request: &Request, target: &Target) -> Result<Response> {
    let resource = &target.resource;
    let mut object = object(&store.registry, request, resource)?;
    if !resource.namespaced && !target.namespace.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if resource.namespaced && target.namespace.is_empty() {
        return Err(ApiError::bad_request(
            "an empty namespace may not be set during creation",
        ));
    }
    settle_namespace(&mut object, resource, &target.namespace)?;
    let generated = name(store, &mut object);
    validate::manager("CreateOptions", request.query.get("fieldManager"))?;
    let stored = make(store, request, target, object, true);
    let stored = match stored {
        // A generated name that is taken is the server's bad luck: it rolls again, a few times.
        Err(error) if generated && error.reason == "AlreadyExists" => {
            return create(store, request, target);
        }
        other => other?,
    };
    shown(store, request, resource, &stored, 201)
}

/// Fills in a generated name. True when it did.
fn name(store: &mut Store, object: &mut Value) -> bool {
    let prefix = meta(object, "generateName").to_owned();
    if !meta(object, "name").is_empty() || prefix.is_empty() {
        return false;
    }
    let name = format!("{}{}", &prefix[..prefix.len().min(58)], store.new_suffix());
    meta_mut(object).insert("name".into(), name.into());
    true
}

/// Makes an object from its wanted state. `tracked`: its fields are the writer's by update; when
/// not, an apply has settled the owners already.
pub(crate) fn make(
    store: &mut Store,
    request: &Request,
    target: &Target,
    mut object: Value,
    tracked: bool,
) -> Result<Arc<Stored>> {
    let resource = &target.resource;
    if !meta(&object, "resourceVersion").is_empty() && tracked {
        return Err(ApiError::plain(
            500,
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let name = meta(&object, "name").to_owned();
    admit(store, resource, &target.namespace, &name)?;
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
    validate::created(resource, &object)?;
    if tracked {
        let reset = reset_fields(resource, target.subresource);
        let api_version = resource.api_version();
        let writer = Writer {
            manager: request.manager(),
            api_version: &api_version,
            subresource: "",
            now: &now,
            reset: &reset,
        };
        track_update(
            None,
            &mut object,
            &writer,
            Type::of(resource.custom.as_ref()),
            resource.custom.is_some(),
        );
    }
    let key = key(&target.namespace, &name);
    if let Some(other) = store.find(resource, &key) {
        let mut refusal = ApiError::already_exists(resource, &name);
        if is_terminating(&other.value) {
            refusal.message = format!("object is being deleted: {}", refusal.message);
        }
        return Err(refusal);
    }
    if request.dry_run() {
        return Ok(Arc::new(Stored::new(object)));
    }
    Ok(store.put(resource, &key, object))
}

/// Namespaces must be there and stay to take anything in.
pub(crate) fn admit(store: &Store, resource: &Resource, namespace: &str, name: &str) -> Result<()> {
    if !resource.namespaced {
        return Ok(());
    }
    match store.namespace_is_terminating(namespace) {
        Some(false) => Ok(()),
        None => Err(ApiError::not_found(
            &store.registry.expect("v1", "namespaces"),
            namespace,
        )),
        Some(true) => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut refusal = ApiError::forbidden(&resource.group, &resource.plural, name, &why);
            let mut details = details(&resource.group, &resource.plural, name);
            let message = format!("namespace {namespace} is being terminated");
            details["causes"] = json!([{ "reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace" }]);
            refusal.details = details;
            Err(refusal)
        }
    }
}

/// What a write to this path can not change.
pub(crate) fn reset_fields(resource: &Resource, subresource: Option<Subresource>) -> FieldSet {
    let fields = match subresource {
        None if resource.is("", "namespaces") => {
            json!({ "f:status": {}, "f:spec": { "f:finalizers": {} } })
        }
        // Admission sets these two, and owns nothing.
        None if resource.is("", "pods") => {
            json!({ "f:status": {}, "f:spec": { "f:priority": {}, "f:preemptionPolicy": {} } })
        }
        None if resource.has(Subresource::Status) => json!({ "f:status": {} }),
        Some(Subresource::Status) if resource.is("", "pods") => {
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
