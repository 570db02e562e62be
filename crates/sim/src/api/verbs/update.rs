//! update, and what every change of an object that is there goes through.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{drop_empty_metadata, drop_nulls, object, settle_namespace, shown};
use super::create::{make, reset_fields};
use crate::api::apply::managed::{Writer, track_update};
use crate::api::kinds::Resource;
use crate::api::request::{Request, Response};
use crate::api::route::Target;
use crate::api::schema::Type;
use crate::api::status::{ApiError, FieldError, Result};
use crate::api::store::{Store, Stored};
use crate::api::strategy;
use crate::api::validate;
use crate::api::value::{at, items, meta, meta_mut};

/// Replaces an object by what a PUT brings.
pub(crate) fn update(store: &mut Store, request: &Request, target: &Target) -> Result<Response> {
    let resource = &target.resource;
    if target.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let mut object = object(&store.registry, request, resource)?;
    settle_namespace(&mut object, resource, &target.namespace)?;
    let said = meta(&object, "name");
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
    validate::manager("UpdateOptions", request.query.get("fieldManager"))?;
    let Some(live) = store.find(resource, &target.key()).map(Arc::clone) else {
        return create_on_update(store, request, target, object);
    };
    uid_precondition(target, meta(&object, "uid"), meta(&live.value, "uid"))?;
    let stored = change(store, request, target, &live, object, Owners::Track)?;
    shown(store, request, resource, &stored, 200)
}

fn create_on_update(
    store: &mut Store,
    request: &Request,
    target: &Target,
    object: Value,
) -> Result<Response> {
    let resource = &target.resource;
    if !resource.create_on_update || target.subresource.is_some() {
        return Err(ApiError::not_found(resource, &target.name));
    }
    uid_precondition(target, meta(&object, "uid"), "")?;
    let mut object = object;
    meta_mut(&mut object).remove("resourceVersion");
    let stored = make(store, request, target, object, true)?;
    shown(store, request, resource, &stored, 201)
}

/// The refusal of a uid precondition on what is not there.
pub(crate) fn uid_of_nothing(target: &Target, uid: &str) -> ApiError {
    let resource = &target.resource;
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    ApiError::conflict(&resource.group, &resource.plural, &target.name, &why)
}

/// Who keeps the book of owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners {
    /// The change is an update: what it changes becomes its manager's.
    Track,
    /// An apply has settled the owners already.
    Settled,
}

/// Puts `object` in the place of `live`: preconditions, strategy, validation, owners, and no write
/// at all when nothing changes.
pub(crate) fn change(
    store: &mut Store,
    request: &Request,
    target: &Target,
    live: &Arc<Stored>,
    mut object: Value,
    owners: Owners,
) -> Result<Arc<Stored>> {
    let resource = &target.resource;
    preconditions(target, &live.value, &object)?;
    keep_identity(&live.value, &mut object);
    drop_nulls(&mut object);
    drop_empty_metadata(&mut object);
    strategy::ensure_structs(resource, &mut object);
    let now = store.now_text();
    if owners == Owners::Track {
        let reset = reset_fields(resource, target.subresource);
        let api_version = resource.api_version();
        let writer = Writer {
            manager: request.manager(),
            api_version: &api_version,
            subresource: target.subresource_name(),
            now: &now,
            reset: &reset,
        };
        track_update(
            Some(&live.value),
            &mut object,
            &writer,
            Type::of(resource.custom.as_ref()),
            resource.custom.is_some(),
        );
    }
    strategy::prepare_update(resource, target.subresource, &live.value, &mut object);
    validate::updated(resource, &live.value, &object)?;
    if same_but_for_times(&live.value, &object) && !goes_now(&live.value, &object) {
        return Ok(Arc::clone(live));
    }
    if request.dry_run() {
        return Ok(Arc::new(Stored::new(object)));
    }
    let key = target.key();
    if goes_now(&live.value, &object) {
        store.remove(resource, &key);
        return Ok(Arc::new(Stored::new(object)));
    }
    Ok(store.put(resource, &key, object))
}

/// A uid in a PUT is a precondition; in a patch it is a change of what cannot change.
fn uid_precondition(target: &Target, wanted: &str, uid: &str) -> Result<()> {
    if wanted.is_empty() || wanted == uid {
        return Ok(());
    }
    let resource = &target.resource;
    let key = storage_key(resource, &target.key());
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

/// Where the real server keeps an object in etcd, which some of its messages show.
fn storage_key(resource: &Resource, key: &str) -> String {
    let place = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("apiextensions.k8s.io", plural) => format!("apiextensions.k8s.io/{plural}"),
        (group, plural) if resource.custom.is_some() => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{place}/{key}")
}

/// The resourceVersion that an object carries must be that of the live one.
fn preconditions(target: &Target, live: &Value, object: &Value) -> Result<()> {
    let resource = &target.resource;
    let version = meta(object, "resourceVersion");
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
    if version == meta(live, "resourceVersion") {
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        let why = format!("strconv.ParseUint: parsing \"{version}\": invalid syntax");
        return Err(ApiError::plain(500, why));
    }
    Err(ApiError::modified(resource, &target.name))
}

/// What no writer can change.
fn keep_identity(live: &Value, object: &mut Value) {
    if meta(object, "uid").is_empty() {
        meta_mut(object).insert("uid".into(), meta(live, "uid").into());
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "resourceVersion",
        "deletionGracePeriodSeconds",
    ] {
        match at(live, &["metadata", field]) {
            Some(value) => drop(meta_mut(object).insert(field.into(), value.clone())),
            None => drop(meta_mut(object).remove(field)),
        }
    }
}

/// Whether two states differ in nothing but when managers last wrote.
fn same_but_for_times(live: &Value, object: &Value) -> bool {
    if live == object {
        return true;
    }
    let (old, new) = (
        items(live, &["metadata", "managedFields"]),
        items(object, &["metadata", "managedFields"]),
    );
    if old.len() != new.len() {
        return false;
    }
    same_but_for(live, object, "metadata")
        && same_but_for(&live["metadata"], &object["metadata"], "managedFields")
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| same_but_for(old, new, "time"))
}

/// Whether two objects differ in nothing but one field.
fn same_but_for(one: &Value, other: &Value, field: &str) -> bool {
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

/// Whether this change takes away the last thing that kept a deleted object.
fn goes_now(live: &Value, object: &Value) -> bool {
    crate::api::value::is_terminating(live)
        && items(object, &["metadata", "finalizers"]).is_empty()
        && items(object, &["spec", "finalizers"]).is_empty()
        && at(live, &["metadata", "deletionGracePeriodSeconds"])
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0
}
