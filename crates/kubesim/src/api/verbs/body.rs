//! Request bodies to stored objects, and stored objects to response bodies.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::events;
use crate::api::field_validation::{DecodedFrom, decode_fields};
use crate::api::kinds::{ResourceRegistry, ServedResource};
use crate::api::presentation::{ObjectPresenter, ResponseView};
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::status::{ApiError, ApiResult};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::value::{meta_text, object_mut, text_at};

/// The object of a request, in the stored spelling and without kind and apiVersion.
pub(crate) fn parse_object(
    store: &mut ObjectStore,
    request: &ApiRequest,
    resource: &ServedResource,
) -> ApiResult<Value> {
    let media = request
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if !matches!(media, "" | "application/json") {
        let mut refusal = ApiError::unsupported_media_type();
        refusal.message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf".into();
        refusal.details = Value::Null;
        return Err(refusal);
    }
    let mut value = parse_body(request, &resource.kind)?;
    if resource.custom.is_some() {
        require_kind_and_version(&value, request, resource)?;
    }
    check_kind_and_version(&store.registry, &value, resource)?;
    decode_fields(store, request, resource, &mut value, DecodedFrom::Body)?;
    to_stored_form(&store.registry, value, resource)
}

/// A custom resource must state its kind and version.
fn require_kind_and_version(
    value: &Value,
    request: &ApiRequest,
    resource: &ServedResource,
) -> ApiResult<()> {
    let missing = match (text_at(value, &["kind"]), text_at(value, &["apiVersion"])) {
        ("", _) => "Object 'Kind' is missing",
        (_, "") => "Object 'apiVersion' is missing",
        (_, _) => return Ok(()),
    };
    let body = String::from_utf8_lossy(&request.body);
    let kind = &resource.kind;
    let why = format!(
        "the object provided is unrecognized (must be of type {kind}): {missing} in '{body}' ({body})"
    );
    Err(ApiError::bad_request(why))
}

/// Parses any JSON object.
pub(crate) fn parse_body(request: &ApiRequest, kind: &str) -> ApiResult<Value> {
    let value: std::result::Result<Value, _> = serde_json::from_slice(&request.body);
    match value {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) | Err(_) => {
            let why = format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error"
            );
            Err(ApiError::bad_request(why))
        }
    }
}

/// Checks an object's kind and version, and converts it to the stored form.
pub(crate) fn to_stored_form(
    registry: &ResourceRegistry,
    mut value: Value,
    resource: &ServedResource,
) -> ApiResult<Value> {
    check_kind_and_version(registry, &value, resource)?;
    let map = object_mut(&mut value);
    map.remove("kind");
    map.remove("apiVersion");
    if !map.get("metadata").is_some_and(Value::is_object) {
        map.insert("metadata".into(), Value::Object(Map::new()));
    }
    if resource.is_built_in_kind("events.k8s.io", "events") {
        value = events::from_events_group(&value);
    }
    drop_nulls(&mut value);
    Ok(value)
}

/// An absent kind or version is that of the path.
fn check_kind_and_version(
    registry: &ResourceRegistry,
    value: &Value,
    resource: &ServedResource,
) -> ApiResult<()> {
    let expected = resource.api_version();
    let or = |said: &str, default: &str| {
        if said.is_empty() {
            default.to_owned()
        } else {
            said.to_owned()
        }
    };
    let kind = or(text_at(value, &["kind"]), &resource.kind);
    let version = or(text_at(value, &["apiVersion"]), &expected);
    if kind != resource.kind || version != expected {
        return Err(wrong_kind_error(registry, resource, &kind, &version));
    }
    Ok(())
}

fn wrong_kind_error(
    registry: &ResourceRegistry,
    resource: &ServedResource,
    kind: &str,
    version: &str,
) -> ApiError {
    let known = registry.has_kind(version, kind);
    if known && kind == resource.kind {
        let expected = resource.api_version();
        let why = format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        );
        return ApiError::bad_request(why);
    }
    let short = version.rsplit('/').next().unwrap_or_default();
    let why = if known {
        format!(
            "converting ({kind}) to ({}): unknown conversion",
            resource.kind
        )
    } else {
        format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    ApiError::bad_request(format!(
        "{kind} in version \"{short}\" cannot be handled as a {}: {why}",
        resource.kind
    ))
}

/// Removes null fields: Kubernetes treats them as absent.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes the empty parts of `metadata`, which the real server never shows.
pub(crate) fn drop_empty_metadata(value: &mut Value) {
    let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
    };
    meta.retain(|_, value| !empty(value));
}

/// Sets the namespace to that of the path; a different one is an error.
pub(crate) fn set_request_namespace(
    value: &mut Value,
    resource: &ServedResource,
    namespace: &str,
) -> ApiResult<()> {
    let said = meta_text(value, "namespace");
    if resource.namespaced {
        if !said.is_empty() && said != namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(why));
        }
        value["metadata"]["namespace"] = namespace.into();
    } else {
        object_mut(&mut value["metadata"]).remove("namespace");
    }
    Ok(())
}

/// The form of the answer that the request asks for.
pub(crate) fn build_presenter(
    store: &ObjectStore,
    request: &ApiRequest,
    resource: &Arc<ServedResource>,
) -> ApiResult<ObjectPresenter> {
    let view =
        ResponseView::negotiate_view(&request.accept, request.query.get("includeObject")).ok_or_else(|| {
            let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
            ApiError {
                code: 406,
                reason: "NotAcceptable",
                message: message.into(),
                details: Value::Null,
            }
        })?;
    Ok(ObjectPresenter::new(
        Arc::clone(resource),
        view,
        store.now(),
    ))
}

/// A response with one object.
pub(crate) fn object_response(
    store: &ObjectStore,
    request: &ApiRequest,
    resource: &Arc<ServedResource>,
    stored: &StoredObject,
    code: u16,
) -> ApiResult<ApiResponse> {
    let presenter = build_presenter(store, request, resource)?;
    Ok(ApiResponse::with_code(
        code,
        presenter.render_object(stored),
    ))
}
