//! Bodies: decoded on the way in, presented on the way out.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::events;
use crate::api::kinds::{Registry, Resource};
use crate::api::present::{Presenter, View};
use crate::api::request::{Request, Response};
use crate::api::status::{ApiError, Result};
use crate::api::store::{Store, Stored};
use crate::api::value::{meta, object_mut, text};

/// The object in a request, in the stored spelling and without kind and apiVersion.
pub(crate) fn object(registry: &Registry, request: &Request, resource: &Resource) -> Result<Value> {
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
    let value = parse(request, &resource.kind)?;
    if resource.custom.is_some() {
        says_what_it_is(&value, request, resource)?;
    }
    stored_form(registry, value, resource)
}

/// A custom resource cannot leave out its kind and version.
fn says_what_it_is(value: &Value, request: &Request, resource: &Resource) -> Result<()> {
    let missing = match (text(value, &["kind"]), text(value, &["apiVersion"])) {
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

/// Any JSON object.
pub(crate) fn parse(request: &Request, kind: &str) -> Result<Value> {
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

/// Checks that an object says what it should be, and takes it into the stored form.
pub(crate) fn stored_form(
    registry: &Registry,
    mut value: Value,
    resource: &Resource,
) -> Result<Value> {
    let expected = resource.api_version();
    let or = |said: &str, default: &str| {
        if said.is_empty() {
            default.to_owned()
        } else {
            said.to_owned()
        }
    };
    let kind = or(text(&value, &["kind"]), &resource.kind);
    let version = or(text(&value, &["apiVersion"]), &expected);
    if kind != resource.kind || version != expected {
        return Err(mistaken(registry, resource, &kind, &version));
    }
    let map = object_mut(&mut value);
    map.remove("kind");
    map.remove("apiVersion");
    if !map.get("metadata").is_some_and(Value::is_object) {
        map.insert("metadata".into(), Value::Object(Map::new()));
    }
    if resource.is("events.k8s.io", "events") {
        value = events::inward(&value);
    }
    drop_nulls(&mut value);
    Ok(value)
}

/// The refusal of an object of another kind or version.
fn mistaken(registry: &Registry, resource: &Resource, kind: &str, version: &str) -> ApiError {
    let known = registry.knows(version, kind);
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

/// Takes away what is null: absent, in Kubernetes.
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

/// Takes away the parts of `metadata` that are empty, which the real server never shows.
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

/// The object's namespace must be that of the path, or be left out.
pub(crate) fn settle_namespace(
    value: &mut Value,
    resource: &Resource,
    namespace: &str,
) -> Result<()> {
    let said = meta(value, "namespace");
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

/// What the request wants to see.
pub(crate) fn presenter(
    store: &Store,
    request: &Request,
    resource: &Arc<Resource>,
) -> Result<Presenter> {
    let view =
        View::negotiate(&request.accept, request.query.get("includeObject")).ok_or_else(|| {
            let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
            ApiError {
                code: 406,
                reason: "NotAcceptable",
                message: message.into(),
                details: Value::Null,
            }
        })?;
    Ok(Presenter::new(Arc::clone(resource), view, store.now()))
}

/// An answer that shows one object.
pub(crate) fn shown(
    store: &Store,
    request: &Request,
    resource: &Arc<Resource>,
    stored: &Stored,
    code: u16,
) -> Result<Response> {
    let presenter = presenter(store, request, resource)?;
    Ok(Response::with_code(code, presenter.one(stored)))
}
