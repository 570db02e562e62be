//! patch: JSON, merge, strategic merge and apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{drop_nulls, object_response, parse_body, set_request_namespace, to_stored_form};
use super::create::{reset_fields, store_new_object};
use super::update::{OwnerTracking, replace_object, uid_mismatch_error};
use crate::api::apply::applying::apply_configuration;
use crate::api::apply::managed_fields::FieldWriter;
use crate::api::field_validation::{
    DecodedFrom, check_applied_fields, decode_fields, fill_in_defaults,
};
use crate::api::patch::{json as json_patch, merge, strategic};
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::ApiRequestTarget;
use crate::api::schema::SchemaType;
use crate::api::status::{ApiError, ApiResult, FieldError};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::validate;
use crate::api::value::{meta_mut, meta_text, object_mut};

const JSON_PATCH_TYPE: &str = "application/json-patch+json";
const MERGE_PATCH_TYPE: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH_TYPE: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH_TYPE: &str = "application/apply-patch+yaml";

pub(crate) fn patch_object(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    if target.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let media = request
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let custom = target.resource.custom.is_some();
    check_patch_options(request, media)?;
    let live = store
        .find_object(&target.resource, &target.collection_key())
        .map(Arc::clone);
    match (media, live) {
        (APPLY_PATCH_TYPE, live) => apply_patch(store, request, target, live),
        (JSON_PATCH_TYPE | MERGE_PATCH_TYPE | STRATEGIC_MERGE_PATCH_TYPE, None) => {
            Err(ApiError::not_found(&target.resource, &target.name))
        }
        (JSON_PATCH_TYPE | MERGE_PATCH_TYPE, Some(live)) => {
            patch_existing(store, request, target, &live, media)
        }
        (STRATEGIC_MERGE_PATCH_TYPE, Some(live)) if !custom => {
            patch_existing(store, request, target, &live, media)
        }
        (_, _) if custom => {
            let mut refusal = ApiError::unsupported_media_type();
            refusal.message = format!(
                "the body of the request was in an unknown format - accepted media types include: {JSON_PATCH_TYPE}, {MERGE_PATCH_TYPE}, {APPLY_PATCH_TYPE}"
            );
            refusal.details = Value::Null;
            Err(refusal)
        }
        (_, _) => Err(ApiError::unsupported_media_type()),
    }
}

/// Checks the parameters that only patches have.
fn check_patch_options(request: &ApiRequest, media: &str) -> ApiResult<()> {
    let manager = request.query.get("fieldManager");
    let mut wrong = Vec::new();
    if media == APPLY_PATCH_TYPE && manager.is_empty() {
        wrong.push(FieldError::required(
            "fieldManager",
            "is required for apply patch",
        ));
    }
    if media != APPLY_PATCH_TYPE && request.query.has_parameter("force") {
        wrong.push(FieldError::forbidden(
            "force",
            "may not be specified for non-apply patch",
        ));
    }
    validate::validate_field_manager("PatchOptions", manager)
        .or_else(|error| if wrong.is_empty() { Err(error) } else { Ok(()) })?;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &wrong))
}

fn patch_existing(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
    live: &Arc<StoredObject>,
    media: &str,
) -> ApiResult<ApiResponse> {
    let resource = &target.resource;
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
    let mut object = live.value.clone();
    object["kind"] = resource.kind.as_str().into();
    object["apiVersion"] = resource.api_version().into();
    match media {
        JSON_PATCH_TYPE => {
            json_patch::apply_json_patch(&mut object, &body).map_err(|why| match why {
                json_patch::JsonPatchError::Malformed(why) => ApiError::bad_request(why),
                json_patch::JsonPatchError::Unfit => patch_rejected_error(),
            })?;
        }
        MERGE_PATCH_TYPE if body.is_object() => merge::apply_merge_patch(&mut object, &body),
        MERGE_PATCH_TYPE => {
            return Err(ApiError::bad_request(
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ));
        }
        _ => strategic::apply_strategic_patch(&mut object, &body)
            .map_err(|why| ApiError::without_reason(500, why))?,
    }
    if meta_text(&object, "name") != target.name {
        return Err(name_mismatch_error(
            meta_text(&object, "name"),
            &target.name,
        ));
    }
    decode_fields(store, request, resource, &mut object, DecodedFrom::Patch)?;
    let mut object = to_stored_form(&store.registry, object, resource)?;
    set_request_namespace(&mut object, resource, &target.namespace)?;
    if meta_text(&object, "resourceVersion").is_empty() {
        meta_mut(&mut object).insert(
            "resourceVersion".into(),
            meta_text(&live.value, "resourceVersion").into(),
        );
    }
    let stored = replace_object(store, request, target, live, object, OwnerTracking::Track)?;
    object_response(store, request, resource, &stored, 200)
}

fn name_mismatch_error(said: &str, name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({said}) does not match the name on the URL ({name})"
    ))
}

/// The real server does not say why a JSON patch does not fit.
fn patch_rejected_error() -> ApiError {
    let message = "the server rejected our request due to an error in our request";
    ApiError {
        code: 422,
        reason: "Invalid",
        message: message.into(),
        details: json!({}),
    }
}

fn apply_patch(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
    live: Option<Arc<StoredObject>>,
) -> ApiResult<ApiResponse> {
    let resource = &target.resource;
    let mut config = parse_body(request, &resource.kind)?;
    check_applied_config(&config, target)?;
    check_applied_fields(request, resource, target, &config)?;
    config = strip_kind_and_version(config);
    config["metadata"]["name"] = target.name.as_str().into();
    set_request_namespace(&mut config, resource, &target.namespace)?;
    drop_nulls(&mut config);
    let now = store.now_text();
    let api_version = resource.api_version();
    let reset = reset_fields(resource, target.subresource);
    let writer = FieldWriter {
        manager: request.query.get("fieldManager"),
        api_version: &api_version,
        subresource: target.subresource_name(),
        now: &now,
        reset: &reset,
    };
    let force = request.query.is_true("force");
    let ty = SchemaType::of_resource(resource.custom.as_ref());
    let uid = meta_text(&config, "uid").to_owned();
    match live {
        Some(live) => {
            let mut object = apply_configuration(Some(&live.value), &config, &writer, force, ty)?;
            fill_in_defaults(resource, &mut object);
            if meta_text(&object, "resourceVersion").is_empty() {
                meta_mut(&mut object).insert(
                    "resourceVersion".into(),
                    meta_text(&live.value, "resourceVersion").into(),
                );
            }
            let stored = replace_object(
                store,
                request,
                target,
                &live,
                object,
                OwnerTracking::Settled,
            )?;
            object_response(store, request, resource, &stored, 200)
        }
        None if target.subresource.is_some() => Err(ApiError::not_found(resource, &target.name)),
        None if !uid.is_empty() => Err(uid_mismatch_error(target, &uid)),
        None => {
            let mut object = apply_configuration(None, &config, &writer, force, ty)?;
            fill_in_defaults(resource, &mut object);
            let stored = store_new_object(store, request, target, object, false)?;
            object_response(store, request, resource, &stored, 201)
        }
    }
}

fn strip_kind_and_version(mut object: Value) -> Value {
    let map = object_mut(&mut object);
    map.remove("kind");
    map.remove("apiVersion");
    object
}

/// An applied object's kind, version and name must match the request; `managedFields` must be
/// unset.
fn check_applied_config(config: &Value, target: &ApiRequestTarget) -> ApiResult<()> {
    let resource = &target.resource;
    let kind = config["kind"].as_str().unwrap_or_default();
    let version = config["apiVersion"].as_str().unwrap_or_default();
    if version != resource.api_version() || kind != resource.kind {
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group}/{short}, Kind={kind}"
        )));
    }
    let name = meta_text(config, "name");
    if !name.is_empty() && name != target.name {
        return Err(name_mismatch_error(name, &target.name));
    }
    if config["metadata"]
        .get("managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
