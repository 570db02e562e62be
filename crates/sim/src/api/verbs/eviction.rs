//! pods/eviction: deletion that asks the pod's budget first, in the order of the real registry
//! (`pkg/registry/core/pod/storage/eviction.go` of Kubernetes 1.36.1).
//!
//! One thing differs: where the real server tries again for ten seconds because an object changed
//! under it, nothing can change here, and the answer comes at once.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::parse;
use super::create::{admit, reset_fields};
use super::delete::{DeleteOptions, delete_object};
use crate::api::admission::admit_eviction;
use crate::api::apply::managed::{Writer, track_update};
use crate::api::handle::success;
use crate::api::kinds::{Resource, Subresource};
use crate::api::request::{Request, Response};
use crate::api::route::{Target, key};
use crate::api::schema::Type;
use crate::api::selector::LabelSelector;
use crate::api::status::{ApiError, Result};
use crate::api::store::{Store, Stored};
use crate::api::value::{at, condition, is_terminating, meta, number, text};

/// Names in `status.disruptedPods` beyond which a budget refuses everything.
const MAX_DISRUPTED_PODS: usize = 2000;

/// Evicts a pod.
pub(crate) fn evict(store: &mut Store, request: &Request, target: &Target) -> Result<Response> {
    let body = parse(request, "Eviction")?;
    let kind = text(&body, &["kind"]);
    if !matches!(kind, "" | "Eviction") {
        let version = text(&body, &["apiVersion"]);
        let why = format!("converting ({version}.{kind}) to (policy.Eviction): unknown conversion");
        let short = version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{short}\" cannot be handled as a Eviction: {why}"
        )));
    }
    if meta(&body, "name") != target.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let mut options = DeleteOptions::parse(&body["deleteOptions"]);
    options.dry_run |= request.dry_run();
    admit(store, &target.resource, &target.namespace, &target.name)?;
    admit_eviction(&store.eviction_policies, &target.resource, &target.name)?;
    let pod = find(store, target)?;
    if !is_unbudgeted(&pod.value) {
        spend(store, target, &pod, &options)?;
    }
    delete_evicted(store, target, &options)?;
    Ok(success(201))
}

fn find(store: &Store, target: &Target) -> Result<Arc<Stored>> {
    let found = store.find(&target.resource, &target.key()).map(Arc::clone);
    found.ok_or_else(|| ApiError::not_found(&target.resource, &target.name))
}

/// Pods that disrupt nothing when they go.
fn is_unbudgeted(pod: &Value) -> bool {
    matches!(
        text(pod, &["status", "phase"]),
        "Succeeded" | "Failed" | "Pending"
    ) || is_terminating(pod)
}

/// Takes the pod's disruption from its budget, if it has one and is counted in it.
fn spend(store: &mut Store, target: &Target, pod: &Stored, options: &DeleteOptions) -> Result<()> {
    let budgets = store.registry.expect("policy/v1", "poddisruptionbudgets");
    let covers = |budget: &Value| {
        let selector = LabelSelector::from_object(at(budget, &["spec", "selector"]));
        selector.is_some_and(|selector| selector.matches(&pod.value))
    };
    let found = store.collection(&budgets).in_namespace(&target.namespace);
    let found: Vec<Arc<Stored>> = found
        .map(|(_, budget)| budget)
        .filter(|budget| covers(&budget.value))
        .map(Arc::clone)
        .collect();
    match found.as_slice() {
        [] => Ok(()),
        [budget] if goes_unhealthy(&pod.value, &budget.value) => Ok(()),
        [budget] => {
            let now = store.now_text();
            let mut spent = decrement(&budget.value, &target.name, &now)?;
            if !options.dry_run {
                own(&budgets, &budget.value, &mut spent, &now);
                let name = meta(&budget.value, "name").to_owned();
                store.put(&budgets, &key(&target.namespace, &name), spent);
            }
            Ok(())
        }
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            Err(ApiError::plain(500, why))
        }
    }
}

/// The server changes the budget under its own name.
fn own(budgets: &Resource, old: &Value, spent: &mut Value, now: &str) {
    let reset = reset_fields(budgets, Some(Subresource::Status));
    let writer = Writer {
        manager: "kube-apiserver",
        api_version: "policy/v1",
        subresource: "status",
        now,
        reset: &reset,
    };
    track_update(Some(old), spent, &writer, Type::of(None), false);
}

/// A pod that is not ready counts for nothing, so that its going costs nothing, where policy or
/// the health of the others allows it.
fn goes_unhealthy(pod: &Value, budget: &Value) -> bool {
    let ready =
        condition(pod, "Ready").is_some_and(|condition| text(condition, &["status"]) == "True");
    if ready {
        return false;
    }
    let desired = number(budget, &["status", "desiredHealthy"]);
    let healthy = number(budget, &["status", "currentHealthy"]) >= desired && desired > 0;
    text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" || healthy
}

/// The budget after one more disruption; or the refusal.
fn decrement(budget: &Value, pod: &str, now: &str) -> Result<Value> {
    let name = meta(budget, "name");
    let status = |field: &str| number(budget, &["status", field]);
    if status("observedGeneration") < number(budget, &["metadata", "generation"]) {
        return Err(refuse(
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
    let disrupted = at(budget, &["status", "disruptedPods"])
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
        return Err(refuse(0, &exhausted(budget)));
    }
    let mut spent = budget.clone();
    spent["status"]["disruptionsAllowed"] = (allowed - 1).into();
    spent["status"]["disruptedPods"][pod] = now.into();
    if allowed == 1 {
        set_insufficient(&mut spent, now);
    }
    Ok(spent)
}

fn refuse(retry_after: u32, message: &str) -> ApiError {
    let cause = json!({ "reason": "DisruptionBudget", "message": message });
    ApiError::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after,
        &[cause],
    )
}

/// Why the budget allows nothing, in the real server's words.
fn exhausted(budget: &Value) -> String {
    let name = meta(budget, "name");
    let (healthy, desired) = (
        number(budget, &["status", "currentHealthy"]),
        number(budget, &["status", "desiredHealthy"]),
    );
    let condition = condition(budget, "DisruptionAllowed")
        .filter(|condition| text(condition, &["status"]) == "False");
    let (reason, message) = condition.map_or(("", ""), |condition| {
        (text(condition, &["reason"]), text(condition, &["message"]))
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

fn set_insufficient(budget: &mut Value, now: &str) {
    let observed = budget["status"]["observedGeneration"].clone();
    let old = condition(budget, "DisruptionAllowed")
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

/// Puts a condition in the place of the one of its type, or at the end.
fn put_condition(object: &mut Value, new: Value) {
    let conditions = &mut object["status"]["conditions"];
    let mut list = conditions.as_array().cloned().unwrap_or_default();
    match list.iter().position(|old| old["type"] == new["type"]) {
        Some(place) => list[place] = new,
        None => list.push(new),
    }
    *conditions = list.into();
}

/// Marks the pod as disrupted, then deletes it. The preconditions are looked at only now, which is
/// why a budget is spent on a pod that turns out to be another one.
fn delete_evicted(store: &mut Store, target: &Target, options: &DeleteOptions) -> Result<()> {
    let resource: &Arc<Resource> = &target.resource;
    let mut options = options.clone();
    if !options.dry_run {
        let pod = find(store, target)?;
        options.check(&pod.value, "", "Pod")?;
        let disrupted = disrupted(&pod.value, &store.now_text());
        let marked = match disrupted {
            disrupted if disrupted == pod.value => pod,
            disrupted => store.put(resource, &target.key(), disrupted),
        };
        if options.resource_version.is_some() {
            options.resource_version = Some(meta(&marked.value, "resourceVersion").to_owned());
        }
    }
    delete_object(store, resource, &target.key(), &target.name, &options).map(drop)
}

fn disrupted(pod: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    let since = condition(&pod, "DisruptionTarget").filter(|old| old["status"] == "True");
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
