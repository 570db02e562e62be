//! pods/binding: what a scheduler does.

use std::sync::Arc;

use serde_json::json;

use super::body::parse;
use crate::api::handle::success;
use crate::api::request::{Request, Response};
use crate::api::route::Target;
use crate::api::status::{ApiError, Result};
use crate::api::store::Store;
use crate::api::value::{is_terminating, text};

/// Puts a pod on a node.
pub(crate) fn bind(store: &mut Store, request: &Request, target: &Target) -> Result<Response> {
    let body = parse(request, "Binding")?;
    let node = text(&body, &["target", "name"]);
    if node.is_empty() {
        let field = crate::api::status::FieldError::required("target.name", "");
        return Err(ApiError::invalid("", "Binding", &target.name, &[field]));
    }
    let resource = &target.resource;
    let live = store
        .find(resource, &target.key())
        .map(Arc::clone)
        .ok_or_else(|| ApiError::not_found(resource, &target.name))?;
    let refuse = |why: String| Err(ApiError::conflict("", "pods/binding", &target.name, &why));
    if is_terminating(&live.value) {
        return refuse(format!(
            "pod {} is being deleted, cannot be assigned to a host",
            target.name
        ));
    }
    let current = text(&live.value, &["spec", "nodeName"]);
    if !current.is_empty() {
        return refuse(format!(
            "pod {} is already assigned to node \"{current}\"",
            target.name
        ));
    }
    let mut pod = live.value.clone();
    pod["spec"]["nodeName"] = node.into();
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": store.now_text() });
    let conditions = pod["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let others = conditions
        .into_iter()
        .filter(|condition| condition["type"] != "PodScheduled");
    pod["status"]["conditions"] = others.chain([scheduled]).collect();
    store.put(resource, &target.key(), pod);
    Ok(success(201))
}
