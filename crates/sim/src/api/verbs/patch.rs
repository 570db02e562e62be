//! patch, in its four forms.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{drop_nulls, parse, settle_namespace, shown, stored_form};
use super::create::{make, reset_fields};
use super::update::{Owners, change, uid_of_nothing};
use crate::api::apply::applying::apply;
use crate::api::apply::managed::Writer;
use crate::api::patch::{json as json_patch, merge, strategic};
use crate::api::request::{Request, Response};
use crate::api::route::Target;
use crate::api::schema::Type;
use crate::api::status::{ApiError, FieldError, Result};
use crate::api::store::{Store, Stored};
use crate::api::validate;
use crate::api::value::{meta, meta_mut, object_mut};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Changes an object, or applies one.
pub(crate) fn patch(store: &mut Store, request: &Request, target: &Target) -> Result<Response> {
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
    options(request, media)?;
    let live = store.find(&target.resource, &target.key()).map(Arc::clone);
    match (media, live) {
        (APPLY, live) => apply_patch(store, request, target, live),
        (JSON | MERGE | STRATEGIC, None) => {
            Err(ApiError::not_found(&target.resource, &target.name))
        }
        (JSON | MERGE, Some(live)) => ordinary(store, request, target, &live, media),
        (STRATEGIC, Some(live)) if !custom => ordinary(store, request, target, &live, media),
        (_, _) if custom => {
            let mut refusal = ApiError::unsupported_media_type();
            refusal.message = format!(
                "the body of the request was in an unknown format - accepted media types include: {JSON}, {MERGE}, {APPLY}"
            );
            refusal.details = Value::Null;
            Err(refusal)
        }
        (_, _) => Err(ApiError::unsupported_media_type()),
    }
}

/// Checks the parameters that belong to patches only.
fn options(request: &Request, media: &str) -> Result<()> {
    let manager = request.query.get("fieldManager");
    let mut wrong = Vec::new();
    if media == APPLY && manager.is_empty() {
        wrong.push(FieldError::required(
            "fieldManager",
            "is required for apply patch",
        ));
    }
    if media != APPLY && request.query.has("force") {
        wrong.push(FieldError::forbidden(
            "force",
            "may not be specified for non-apply patch",
        ));
    }
    validate::manager("PatchOptions", manager)
        .or_else(|error| if wrong.is_empty() { Err(error) } else { Ok(()) })?;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &wrong))
}

fn ordinary(
    store: &mut Store,
    request: &Request,
    target: &Target,
    live: &Arc<Stored>,
    media: &str,
) -> Result<Response> {
    let resource = &target.resource;
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
    let mut object = live.value.clone();
    object["kind"] = resource.kind.as_str().into();
    object["apiVersion"] = resource.api_version().into();
    match media {
        JSON => json_patch::apply(&mut object, &body).map_err(|why| match why {
            json_patch::Refusal::Malformed(why) => ApiError::bad_request(why),
            json_patch::Refusal::Unfit => unfit(),
        })?,
        MERGE if body.is_object() => merge::apply(&mut object, &body),
        MERGE => {
            return Err(ApiError::bad_request(
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ));
        }
        _ => strategic::apply(&mut object, &body).map_err(|why| ApiError::plain(500, why))?,
    }
    if meta(&object, "name") != target.name {
        return Err(misnamed(meta(&object, "name"), &target.name));
    }
    let mut object = stored_form(&store.registry, object, resource)?;
    settle_namespace(&mut object, resource, &target.namespace)?;
    if meta(&object, "resourceVersion").is_empty() {
        meta_mut(&mut object).insert(
            "resourceVersion".into(),
            meta(&live.value, "resourceVersion").into(),
        );
    }
    let stored = change(store, request, target, live, object, Owners::Track)?;
    shown(store, request, resource, &stored, 200)
}

fn misnamed(said: &str, name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({said}) does not match the name on the URL ({name})"
    ))
}

/// The real server keeps to itself why a JSON patch does not fit.
fn unfit() -> ApiError {
    let message = "the server rejected our request due to an error in our request";
    ApiError {
        code: 422,
        reason: "Invalid",
        message: message.into(),
        details: json!({}),
    }
}

fn apply_patch(
    store: &mut Store,
    request: &Request,
    target: &Target,
    live: Option<Arc<Stored>>,
) -> Result<Response> {
    let resource = &target.resource;
    let mut config = parse(request, &resource.kind)?;
    check_applied(&config, target)?;
    config = bare(config);
    config["metadata"]["name"] = target.name.as_str().into();
    settle_namespace(&mut config, resource, &target.namespace)?;
    drop_nulls(&mut config);
    let now = store.now_text();
    let api_version = resource.api_version();
    let reset = reset_fields(resource, target.subresource);
    let writer = Writer {
        manager: request.query.get("fieldManager"),
        api_version: &api_version,
        subresource: target.subresource_name(),
        now: &now,
        reset: &reset,
    };
    let force = request.query.flag("force");
    let ty = Type::of(resource.custom.as_ref());
    let uid = meta(&config, "uid").to_owned();
    match live {
        Some(live) => {
            let mut object = apply(Some(&live.value), &config, &writer, force, ty)?;
            if meta(&object, "resourceVersion").is_empty() {
                meta_mut(&mut object).insert(
                    "resourceVersion".into(),
                    meta(&live.value, "resourceVersion").into(),
                );
            }
            let stored = change(store, request, target, &live, object, Owners::Settled)?;
            shown(store, request, resource, &stored, 200)
        }
        None if target.subresource.is_some() => Err(ApiError::not_found(resource, &target.name)),
        None if !uid.is_empty() => Err(uid_of_nothing(target, &uid)),
        None => {
            let object = apply(None, &config, &writer, force, ty)?;
            let stored = make(store, request, target, object, false)?;
            shown(store, request, resource, &stored, 201)
        }
    }
}

fn bare(mut object: Value) -> Value {
    let map = object_mut(&mut object);
    map.remove("kind");
    map.remove("apiVersion");
    object
}

/// An applied object says what it is.
fn check_applied(config: &Value, target: &Target) -> Result<()> {
    let resource = &target.resource;
    let kind = config["kind"].as_str().unwrap_or_default();
    let version = config["apiVersion"].as_str().unwrap_or_default();
    if version != resource.api_version() || kind != resource.kind {
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group}/{short}, Kind={kind}"
        )));
    }
    let name = meta(config, "name");
    if !name.is_empty() && name != target.name {
        return Err(misnamed(name, &target.name));
    }
    if config["metadata"]
        .get("managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
