//! update, and the steps that every change of an existing object takes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{
    drop_empty_metadata, drop_nulls, object_response, parse_object, set_request_namespace,
};
use super::create::{reset_fields, store_new_object};
use crate::api::apply::managed_fields::{FieldWriter, track_update};
use crate::api::kinds::ServedResource;
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::ApiRequestTarget;
use crate::api::schema::SchemaType;
use crate::api::status::{ApiError, ApiResult, FieldError};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::strategy;
use crate::api::validate;
use crate::api::value::{list_at, meta_mut, meta_text, value_at};

pub(crate) fn update_object(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    let resource = &target.resource;
    if target.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let mut object = parse_object(store, request, resource)?;
    set_request_namespace(&mut object, resource, &target.namespace)?;
    let said = meta_text(&object, "name");
    if said.is_empty() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    if said != target.name {
        let why = format!(
            "the name of the object ({said}) does not match the name on the URL ({})",
            target.name
        );
        return Err(ApiError::bad_request(why));
    }
    validate::validate_field_manager("UpdateOptions", request.query.get("fieldManager"))?;
    let Some(live) = store
        .find_object(resource, &target.collection_key())
        .map(Arc::clone)
    else {
        return create_on_update(store, request, target, object);
    };
    check_uid_precondition(
        target,
        meta_text(&object, "uid"),
        meta_text(&live.value, "uid"),
    )?;
    let stored = replace_object(store, request, target, &live, object, OwnerTracking::Track)?;
    object_response(store, request, resource, &stored, 200)
}

fn create_on_update(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
    object: Value,
) -> ApiResult<ApiResponse> {
    let resource = &target.resource;
    if !resource.create_on_update || target.subresource.is_some() {
        return Err(ApiError::not_found(resource, &target.name));
    }
    check_uid_precondition(target, meta_text(&object, "uid"), "")?;
    let mut object = object;
    meta_mut(&mut object).remove("resourceVersion");
    let stored = store_new_object(store, request, target, object, true)?;
    object_response(store, request, resource, &stored, 201)
}

/// The error for a uid precondition on a missing object.
pub(crate) fn uid_mismatch_error(target: &ApiRequestTarget, uid: &str) -> ApiError {
    let resource = &target.resource;
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    ApiError::conflict(&resource.group, &resource.plural, &target.name, &why)
}

/// Who records the field owners of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerTracking {
    /// The change is an update: its manager owns the changed fields.
    Track,
    /// An apply has already set the owners.
    Settled,
}

/// Replaces `live` by `object`: preconditions, strategy, validation, owners. Writes nothing when
/// nothing changes.
pub(crate) fn replace_object(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
    live: &Arc<StoredObject>,
    mut object: Value,
    owners: OwnerTracking,
) -> ApiResult<Arc<StoredObject>> {
    let resource = &target.resource;
    check_resource_version(target, &live.value, &object)?;
    keep_identity(&live.value, &mut object);
    drop_nulls(&mut object);
    drop_empty_metadata(&mut object);
    strategy::ensure_structs(resource, &mut object);
    let now = store.now_text();
    if owners == OwnerTracking::Track {
        let reset = reset_fields(resource, target.subresource);
        let api_version = resource.api_version();
        let writer = FieldWriter {
            manager: request.field_manager(),
            api_version: &api_version,
            subresource: target.subresource_name(),
            now: &now,
            reset: &reset,
        };
        track_update(
            Some(&live.value),
            &mut object,
            &writer,
            SchemaType::of_resource(resource.custom.as_ref()),
            resource.custom.is_some(),
        );
    }
    strategy::prepare_update(resource, target.subresource, &live.value, &mut object);
    validate::validate_update(resource, target.subresource, &live.value, &object)?;
    if differs_only_in_times(&live.value, &object) && !loses_last_finalizer(&live.value, &object) {
        return Ok(Arc::clone(live));
    }
    if request.is_dry_run() {
        return Ok(Arc::new(StoredObject::new(object)));
    }
    let key = target.collection_key();
    if loses_last_finalizer(&live.value, &object) {
        store.remove_object(resource, &key);
        return Ok(Arc::new(StoredObject::new(object)));
    }
    Ok(store.put_object(resource, &key, object))
}

/// A uid in a PUT is a precondition; in a patch it is an attempt to change an immutable field.
fn check_uid_precondition(target: &ApiRequestTarget, wanted: &str, uid: &str) -> ApiResult<()> {
    if wanted.is_empty() || wanted == uid {
        return Ok(());
    }
    let resource = &target.resource;
    let key = storage_key(resource, &target.collection_key());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
    );
    Err(ApiError::conflict(
        &resource.group,
        &resource.plural,
        &target.name,
        &why,
    ))
}

/// The object's key in the real server's etcd, which some of its messages contain.
fn storage_key(resource: &ServedResource, key: &str) -> String {
    let place = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("apiextensions.k8s.io", plural) => format!("apiextensions.k8s.io/{plural}"),
        (group, plural) if resource.custom.is_some() => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{place}/{key}")
}

/// The object's resourceVersion must be that of the live one.
fn check_resource_version(
    target: &ApiRequestTarget,
    live: &Value,
    object: &Value,
) -> ApiResult<()> {
    let resource = &target.resource;
    let version = meta_text(object, "resourceVersion");
    if version.is_empty() || version == "0" {
        if !resource.conditional_update {
            return Ok(());
        }
        let field = FieldError::invalid(
            "metadata.resourceVersion",
            &json!(0),
            "must be specified for an update",
        );
        return Err(ApiError::invalid(
            &resource.group,
            &resource.plural,
            &target.name,
            &[field],
        ));
    }
    if version == meta_text(live, "resourceVersion") {
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        let why = format!("strconv.ParseUint: parsing \"{version}\": invalid syntax");
        return Err(ApiError::without_reason(500, why));
    }
    Err(ApiError::modified(resource, &target.name))
}

/// Restores the metadata that no writer can change.
fn keep_identity(live: &Value, object: &mut Value) {
    if meta_text(object, "uid").is_empty() {
        meta_mut(object).insert("uid".into(), meta_text(live, "uid").into());
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "resourceVersion",
        "deletionGracePeriodSeconds",
    ] {
        match value_at(live, &["metadata", field]) {
            Some(value) => drop(meta_mut(object).insert(field.into(), value.clone())),
            None => drop(meta_mut(object).remove(field)),
        }
    }
}

/// Whether two states differ only in the times of `managedFields`.
fn differs_only_in_times(live: &Value, object: &Value) -> bool {
    if live == object {
        return true;
    }
    let (old, new) = (
        list_at(live, &["metadata", "managedFields"]),
        list_at(object, &["metadata", "managedFields"]),
    );
    if old.len() != new.len() {
        return false;
    }
    differs_only_in_field(live, object, "metadata")
        && differs_only_in_field(&live["metadata"], &object["metadata"], "managedFields")
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| differs_only_in_field(old, new, "time"))
}

/// Whether two objects differ in nothing but one field.
fn differs_only_in_field(one: &Value, other: &Value, field: &str) -> bool {
    let fields = |value: &Value| {
        value
            .as_object()
            .map_or(0, |map| map.len() - usize::from(map.contains_key(field)))
    };
    let same = |name: &String, value: &Value| name == field || other.get(name) == Some(value);
    fields(one) == fields(other)
        && one
            .as_object()
            .into_iter()
            .flatten()
            .all(|(name, value)| same(name, value))
}

/// Whether this change removes the last finalizer of an object that is being deleted.
fn loses_last_finalizer(live: &Value, object: &Value) -> bool {
    crate::api::value::is_terminating(live)
        && list_at(object, &["metadata", "finalizers"]).is_empty()
        && list_at(object, &["spec", "finalizers"]).is_empty()
        && value_at(live, &["metadata", "deletionGracePeriodSeconds"])
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0
}
