//! pods/eviction: a deletion that first checks the pod's budget, in the order of the real registry
//! (`pkg/registry/core/pod/storage/eviction.go` of Kubernetes 1.36.1).
//!
//! One difference: the real server retries for ten seconds when an object changed meanwhile. Here
//! nothing can change meanwhile, and the answer comes at once.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::parse_body;
use super::create::{admit_to_namespace, reset_fields};
use super::delete::{DeleteOptions, delete_object};
use crate::api::admission::admit_eviction;
use crate::api::apply::managed_fields::{FieldWriter, track_update};
use crate::api::handle::success_status;
use crate::api::kinds::{ServedResource, Subresource};
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::{ApiRequestTarget, object_key};
use crate::api::schema::SchemaType;
use crate::api::selector::ApiLabelSelector;
use crate::api::status::{ApiError, ApiResult};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::value::{find_condition, is_terminating, meta_text, number_at, text_at, value_at};

/// Limit of names in `status.disruptedPods`; above it a budget refuses every eviction.
const MAX_DISRUPTED_PODS: usize = 2000;

pub(crate) fn evict_pod(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    let body = parse_body(request, "Eviction")?;
    let kind = text_at(&body, &["kind"]);
    if !matches!(kind, "" | "Eviction") {
        let version = text_at(&body, &["apiVersion"]);
        let why = format!("converting ({version}.{kind}) to (policy.Eviction): unknown conversion");
        let short = version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{short}\" cannot be handled as a Eviction: {why}"
        )));
    }
    if meta_text(&body, "name") != target.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let mut options = DeleteOptions::parse(&body["deleteOptions"]);
    options.dry_run |= request.is_dry_run();
    admit_to_namespace(store, &target.resource, &target.namespace, &target.name)?;
    admit_eviction(&store.eviction_policies, &target.resource, &target.name)?;
    let pod = find_pod(store, target)?;
    if !bypasses_budget(&pod.value) {
        spend_budget(store, target, &pod, &options)?;
    }
    delete_evicted(store, target, &options)?;
    Ok(success_status(201))
}

fn find_pod(store: &ObjectStore, target: &ApiRequestTarget) -> ApiResult<Arc<StoredObject>> {
    let found = store
        .find_object(&target.resource, &target.collection_key())
        .map(Arc::clone);
    found.ok_or_else(|| ApiError::not_found(&target.resource, &target.name))
}

/// Pods whose deletion is no disruption.
fn bypasses_budget(pod: &Value) -> bool {
    matches!(
        text_at(pod, &["status", "phase"]),
        "Succeeded" | "Failed" | "Pending"
    ) || is_terminating(pod)
}

/// Counts the disruption against the budget that covers the pod, if one does.
fn spend_budget(
    store: &mut ObjectStore,
    target: &ApiRequestTarget,
    pod: &StoredObject,
    options: &DeleteOptions,
) -> ApiResult<()> {
    let budgets = store
        .registry
        .expect_resource("policy/v1", "poddisruptionbudgets");
    let covers = |budget: &Value| {
        let selector = ApiLabelSelector::from_object(value_at(budget, &["spec", "selector"]));
        selector.is_some_and(|selector| selector.matches_object(&pod.value))
    };
    let found = store
        .collection_of_resource(&budgets)
        .in_namespace(&target.namespace);
    let found: Vec<Arc<StoredObject>> = found
        .map(|(_, budget)| budget)
        .filter(|budget| covers(&budget.value))
        .map(Arc::clone)
        .collect();
    match found.as_slice() {
        [] => Ok(()),
        [budget] if is_unhealthy_eviction_allowed(&pod.value, &budget.value) => Ok(()),
        [budget] => {
            let now = store.now_text();
            let mut spent = decrement_budget(&budget.value, &target.name, &now)?;
            if !options.dry_run {
                track_budget_update(&budgets, &budget.value, &mut spent, &now);
                let name = meta_text(&budget.value, "name").to_owned();
                store.put_object(&budgets, &object_key(&target.namespace, &name), spent);
            }
            Ok(())
        }
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            Err(ApiError::without_reason(500, why))
        }
    }
}

/// The server changes the budget under its own field manager.
fn track_budget_update(budgets: &ServedResource, old: &Value, spent: &mut Value, now: &str) {
    let reset = reset_fields(budgets, Some(Subresource::Status));
    let writer = FieldWriter {
        manager: "kube-apiserver",
        api_version: "policy/v1",
        subresource: "status",
        now,
        reset: &reset,
    };
    track_update(
        Some(old),
        spent,
        &writer,
        SchemaType::of_resource(None),
        false,
    );
}

/// A pod that is not ready costs nothing, if the budget's policy or the health of the other pods
/// allows its eviction.
fn is_unhealthy_eviction_allowed(pod: &Value, budget: &Value) -> bool {
    let ready = find_condition(pod, "Ready")
        .is_some_and(|condition| text_at(condition, &["status"]) == "True");
    if ready {
        return false;
    }
    let desired = number_at(budget, &["status", "desiredHealthy"]);
    let healthy = number_at(budget, &["status", "currentHealthy"]) >= desired && desired > 0;
    text_at(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" || healthy
}

/// The budget after one more disruption, or the refusal.
fn decrement_budget(budget: &Value, pod: &str, now: &str) -> ApiResult<Value> {
    let name = meta_text(budget, "name");
    let status = |field: &str| number_at(budget, &["status", field]);
    if status("observedGeneration") < number_at(budget, &["metadata", "generation"]) {
        return Err(budget_refusal_error(
            10,
            &format!("The disruption budget {name} is still being processed by the server."),
        ));
    }
    let allowed = status("disruptionsAllowed");
    if allowed < 0 {
        return Err(ApiError::forbidden(
            "policy",
            "poddisruptionbudget",
            name,
            "pdb disruptions allowed is negative",
        ));
    }
    let disrupted = value_at(budget, &["status", "disruptedPods"])
        .and_then(Value::as_object)
        .map_or(0, serde_json::Map::len);
    if disrupted > MAX_DISRUPTED_PODS {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(
            "policy",
            "poddisruptionbudget",
            name,
            why,
        ));
    }
    if allowed == 0 {
        return Err(budget_refusal_error(0, &exhausted_message(budget)));
    }
    let mut spent = budget.clone();
    spent["status"]["disruptionsAllowed"] = (allowed - 1).into();
    spent["status"]["disruptedPods"][pod] = now.into();
    if allowed == 1 {
        set_insufficient_pods(&mut spent, now);
    }
    Ok(spent)
}

fn budget_refusal_error(retry_after: u32, message: &str) -> ApiError {
    let cause = json!({ "reason": "DisruptionBudget", "message": message });
    ApiError::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after,
        &[cause],
    )
}

/// Why the budget allows nothing, in the real server's words.
fn exhausted_message(budget: &Value) -> String {
    let name = meta_text(budget, "name");
    let (healthy, desired) = (
        number_at(budget, &["status", "currentHealthy"]),
        number_at(budget, &["status", "desiredHealthy"]),
    );
    let condition = find_condition(budget, "DisruptionAllowed")
        .filter(|condition| text_at(condition, &["status"]) == "False");
    let (reason, message) = condition.map_or(("", ""), |condition| {
        (
            text_at(condition, &["reason"]),
            text_at(condition, &["message"]),
        )
    });
    if reason == "SyncFailed" && !message.is_empty() {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if healthy <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        );
    }
    if !message.is_empty() {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        );
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}

fn set_insufficient_pods(budget: &mut Value, now: &str) {
    let observed = budget["status"]["observedGeneration"].clone();
    let old = find_condition(budget, "DisruptionAllowed")
        .cloned()
        .unwrap_or_else(|| json!({ "type": "DisruptionAllowed", "message": "" }));
    let mut new = old.clone();
    if old["status"] != "False" {
        new["lastTransitionTime"] = now.into();
    }
    new["status"] = "False".into();
    new["reason"] = "InsufficientPods".into();
    new["message"] = "".into();
    new["observedGeneration"] = observed;
    put_condition(budget, new);
}

/// Replaces the condition of the same type, or appends it.
fn put_condition(object: &mut Value, new: Value) {
    let conditions = &mut object["status"]["conditions"];
    let mut list = conditions.as_array().cloned().unwrap_or_default();
    match list.iter().position(|old| old["type"] == new["type"]) {
        Some(place) => list[place] = new,
        None => list.push(new),
    }
    *conditions = list.into();
}

/// Marks the pod as disrupted, then deletes it. The preconditions are checked only now, so an
/// eviction of a pod with another uid still costs budget.
fn delete_evicted(
    store: &mut ObjectStore,
    target: &ApiRequestTarget,
    options: &DeleteOptions,
) -> ApiResult<()> {
    let resource: &Arc<ServedResource> = &target.resource;
    let mut options = options.clone();
    if !options.dry_run {
        let pod = find_pod(store, target)?;
        options.check_preconditions(&pod.value, "", "Pod")?;
        let disrupted = with_disruption_target(&pod.value, &store.now_text());
        let marked = match disrupted {
            disrupted if disrupted == pod.value => pod,
            disrupted => store.put_object(resource, &target.collection_key(), disrupted),
        };
        if options.resource_version.is_some() {
            options.resource_version = Some(meta_text(&marked.value, "resourceVersion").to_owned());
        }
    }
    delete_object(
        store,
        resource,
        &target.collection_key(),
        &target.name,
        &options,
    )
    .map(drop)
}

fn with_disruption_target(pod: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    let since = find_condition(&pod, "DisruptionTarget").filter(|old| old["status"] == "True");
    let since = since.map_or_else(|| now.into(), |old| old["lastTransitionTime"].clone());
    let target = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    put_condition(&mut pod, target);
    pod
}
