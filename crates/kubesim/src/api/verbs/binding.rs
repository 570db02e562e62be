//! pods/binding: a scheduler assigns a pod to a node.

use std::sync::Arc;

use serde_json::json;

use super::body::parse_body;
use crate::api::handle::success_status;
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::ApiRequestTarget;
use crate::api::status::{ApiError, ApiResult};
use crate::api::store::ObjectStore;
use crate::api::value::{is_terminating, text_at};

pub(crate) fn bind_pod(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    let body = parse_body(request, "Binding")?;
    let node = text_at(&body, &["target", "name"]);
    if node.is_empty() {
        let field = crate::api::status::FieldError::required("target.name", "");
        return Err(ApiError::invalid("", "Binding", &target.name, &[field]));
    }
    let resource = &target.resource;
    let live = store
        .find_object(resource, &target.collection_key())
        .map(Arc::clone)
        .ok_or_else(|| ApiError::not_found(resource, &target.name))?;
    let refuse = |why: String| Err(ApiError::conflict("", "pods/binding", &target.name, &why));
    if is_terminating(&live.value) {
        return refuse(format!(
            "pod {} is being deleted, cannot be assigned to a host",
            target.name
        ));
    }
    let current = text_at(&live.value, &["spec", "nodeName"]);
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
    store.put_object(resource, &target.collection_key(), pod);
    Ok(success_status(201))
}
