//! PodDisruptionBudgets: their status, counted exactly as the real disruption controller does.
//!
//! Source: the disruption controller of kube-controller-manager 1.36: which pods are expected,
//! which are healthy, how a percentage rounds, when an announced disruption expires, and the
//! message when the count is impossible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{ControllerAction, WritableKind, WriteVerb};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// An announced disruption expires after this time if the pod is not being deleted
/// (`DeletionTimeout` in the real controller).
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub struct DisruptionController;

impl SimulatedController for DisruptionController {
    fn name(&self) -> &'static str {
        "disruption"
    }

    fn enqueue_keys(
        &mut self,
        cache: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::Budget(shift) => {
                keys.extend(
                    shift
                        .known_states()
                        .map(|budget| ObjectKey::of_metadata(&budget.metadata)),
                );
            }
            CacheChange::Pod(shift) => shift
                .known_states()
                .for_each(|pod| enqueue_covering_budgets(cache, pod, keys)),
            // A new scale changes the expected number of pods.
            CacheChange::ReplicaSet(shift) => shift.known_states().for_each(|set| {
                let uid = set.uid().unwrap_or_default();
                cache
                    .pods_of_owner(&uid)
                    .for_each(|pod| enqueue_covering_budgets(cache, pod, keys));
            }),
            CacheChange::Node(_)
            | CacheChange::DaemonSet(_)
            | CacheChange::Deployment(_)
            | CacheChange::Attachment(_)
            | CacheChange::Claim(_)
            | CacheChange::NodeLease(_)
            | CacheChange::Power { .. } => {}
        }
    }

    fn reconcile(
        &mut self,
        cache: &ControllerCache,
        key: &ObjectKey,
        now: Timestamp,
    ) -> ReconcileOutcome {
        let Some(budget) = cache.budgets.get(key) else {
            return ReconcileOutcome::default();
        };
        let pods = pods_covered_by_budget(cache, budget);
        match count_disruptions(cache, budget, &pods, now) {
            Ok(count) => ReconcileOutcome {
                actions: count.status_action(budget, now).into_iter().collect(),
                requeue_after: count.recheck_in,
            },
            Err(why) => {
                ReconcileOutcome::with_actions(fail_safe(budget, &why, now).into_iter().collect())
            }
        }
    }
}

fn enqueue_covering_budgets(cache: &ControllerCache, pod: &Pod, keys: &mut BTreeSet<ObjectKey>) {
    let namespace = pod.namespace().unwrap_or_default();
    let labels = object_queries::object_labels(&pod.metadata);
    let budgets = cache.budgets.in_namespace(&namespace);
    keys.extend(
        budgets
            .filter(|budget| selects_labels(budget, labels))
            .map(|budget| ObjectKey::of_metadata(&budget.metadata)),
    );
}

fn selects_labels(budget: &PodDisruptionBudget, labels: &BTreeMap<String, String>) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| object_queries::selector_matches(selector, labels))
}

fn pods_covered_by_budget<'a>(
    cache: &'a ControllerCache,
    budget: &'a PodDisruptionBudget,
) -> Vec<&'a Arc<Pod>> {
    let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let exact = selector.and_then(|selector| selector.match_labels.as_ref()?.iter().next());
    let all: Box<dyn Iterator<Item = &Arc<Pod>>> = match exact {
        Some((label, value)) => Box::new(cache.pods_with_label(namespace, label, value)),
        None => Box::new(cache.pods.in_namespace(namespace)),
    };
    all.filter(|pod| selects_labels(budget, object_queries::object_labels(&pod.metadata)))
        .collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct DisruptionCount {
    expected: i32,
    healthy: i32,
    desired: i32,
    allowed: i32,
    disrupted: BTreeMap<String, Timestamp>,
    recheck_in: Option<Duration>,
}

fn count_disruptions(
    cache: &ControllerCache,
    budget: &PodDisruptionBudget,
    pods: &[&Arc<Pod>],
    now: Timestamp,
) -> Result<DisruptionCount, String> {
    let (expected, desired) = expected_and_desired(cache, budget, pods)?;
    let (disrupted, recheck_in) = pending_disruptions(budget, pods, now);
    let counts = |pod: &&&Arc<Pod>| {
        !object_queries::is_deleting(pod)
            && !disrupted.contains_key(&pod.name_any())
            && object_queries::is_ready(pod)
    };
    let healthy = to_i32(pods.iter().filter(counts).count());
    // Without an expected pod no disruption is allowed: otherwise the first pods could be evicted
    // before they are counted.
    let allowed = if expected <= 0 {
        0
    } else {
        (healthy - desired).max(0)
    };
    Ok(DisruptionCount {
        expected,
        healthy,
        desired,
        allowed,
        disrupted,
        recheck_in,
    })
}

/// The numbers of expected and of desired healthy pods.
fn expected_and_desired(
    cache: &ControllerCache,
    budget: &PodDisruptionBudget,
    pods: &[&Arc<Pod>],
) -> Result<(i32, i32), String> {
    let spec = budget.spec.clone().unwrap_or_default();
    match (spec.max_unavailable, spec.min_available) {
        (Some(limit), _) => {
            let expected = expected_scale(cache, pods)?;
            Ok((
                expected,
                (expected - resolve_int_or_percent(&limit, expected)?).max(0),
            ))
        }
        (None, Some(IntOrString::Int(least))) => Ok((to_i32(pods.len()), least)),
        (None, Some(share @ IntOrString::String(_))) => {
            let expected = expected_scale(cache, pods)?;
            Ok((expected, resolve_int_or_percent(&share, expected)?))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// The sum of the scales of the pods' controllers, each counted once. Pods without a controller do
/// not count; a controller without a scale makes the count impossible.
fn expected_scale(cache: &ControllerCache, pods: &[&Arc<Pod>]) -> Result<i32, String> {
    let mut scales = BTreeMap::new();
    for pod in pods {
        let Some(owner) = object_queries::controller_owner(&pod.metadata) else {
            continue;
        };
        if scales.contains_key(&owner.uid) {
            continue;
        }
        let key = ObjectKey::new(pod.namespace().unwrap_or_default(), &owner.name);
        let set = (owner.kind == "ReplicaSet")
            .then(|| cache.replica_sets.get(&key))
            .flatten();
        let set = set.filter(|set| set.metadata.uid.as_ref() == Some(&owner.uid));
        let Some(set) = set else {
            return Err(format!("found no controllers for pod {:?}", pod.name_any()));
        };
        scales.insert(owner.uid.clone(), scale_of_replica_set(cache, set));
    }
    Ok(scales.values().sum())
}

/// A ReplicaSet owned by a Deployment has the Deployment's scale: during a rollout its ReplicaSets
/// are one set of pods.
fn scale_of_replica_set(
    cache: &ControllerCache,
    set: &k8s_openapi::api::apps::v1::ReplicaSet,
) -> i32 {
    let own = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let deployment = object_queries::controller_owner(&set.metadata).and_then(|owner| {
        let key = ObjectKey::new(set.namespace().unwrap_or_default(), &owner.name);
        cache.deployments.get(&key)
    });
    deployment.map_or(own, |deployment| {
        deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1)
    })
}

/// A number as it is, or a percentage of `total` rounded up (both kinds of budget round up).
fn resolve_int_or_percent(value: &IntOrString, total: i32) -> Result<i32, String> {
    match value {
        IntOrString::Int(number) => Ok(*number),
        IntOrString::String(text) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|digits| digits.parse::<i32>().ok());
            let percent = percent.ok_or_else(|| {
                format!("invalid value for IntOrString: invalid type: string is not a percentage ({text:?})")
            })?;
            Ok((total * percent + 99).div_euclid(100))
        }
    }
}

/// The announced disruptions that still count, and when the next one expires.
fn pending_disruptions(
    budget: &PodDisruptionBudget,
    pods: &[&Arc<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Timestamp>, Option<Duration>) {
    let announced = budget
        .status
        .as_ref()
        .and_then(|status| status.disrupted_pods.as_ref());
    let mut kept = BTreeMap::new();
    let mut recheck: Option<Duration> = None;
    for pod in pods.iter().filter(|pod| !object_queries::is_deleting(pod)) {
        let Some(since) = announced.and_then(|announced| announced.get(&pod.name_any())) else {
            continue;
        };
        let ends = since.0 + DELETION_TIMEOUT;
        let Ok(left) = Duration::try_from(ends.duration_since(now)) else {
            continue;
        };
        kept.insert(pod.name_any(), since.0);
        // One millisecond more than what is left: at its very end a disruption still counts.
        let left = left + Duration::from_millis(1);
        recheck = Some(recheck.map_or(left, |earlier| earlier.min(left)));
    }
    (kept, recheck)
}

impl DisruptionCount {
    fn status_action(
        &self,
        budget: &PodDisruptionBudget,
        now: Timestamp,
    ) -> Option<ControllerAction> {
        let generation = budget.metadata.generation.unwrap_or(0);
        let enough = self.allowed > 0;
        let (status, reason) = if enough {
            ("True", "SufficientPods")
        } else {
            ("False", "InsufficientPods")
        };
        let condition = disruption_condition(budget, status, reason, "", generation, now);
        (!self.is_status_current(budget, status, generation)).then(|| {
            let disrupted: BTreeMap<_, _> = self
                .disrupted
                .iter()
                .map(|(name, since)| (name, format!("{since:.0}")))
                .collect();
            patch_budget_status(
                budget,
                &json!({
                    "expectedPods": self.expected,
                    "currentHealthy": self.healthy,
                    "desiredHealthy": self.desired,
                    "disruptionsAllowed": self.allowed,
                    "disruptedPods": disrupted_pods_patch(budget, &disrupted),
                    "observedGeneration": generation,
                    "conditions": [condition],
                }),
            )
        })
    }

    fn is_status_current(
        &self,
        budget: &PodDisruptionBudget,
        allowed: &str,
        generation: i64,
    ) -> bool {
        let Some(status) = &budget.status else {
            return false;
        };
        let disrupted = status.disrupted_pods.iter().flatten().map(|(name, _)| name);
        let condition = status
            .conditions
            .iter()
            .flatten()
            .find(|one| one.type_ == "DisruptionAllowed");
        status.expected_pods == Some(self.expected)
            && status.current_healthy == Some(self.healthy)
            && status.desired_healthy == Some(self.desired)
            && status.disruptions_allowed == Some(self.allowed)
            && disrupted.eq(self.disrupted.keys())
            && status.observed_generation == Some(generation)
            && condition.is_some_and(|one| {
                one.status == allowed && one.observed_generation == Some(generation)
            })
    }
}

/// The map as a merge patch: null deletes a name.
fn disrupted_pods_patch(budget: &PodDisruptionBudget, kept: &BTreeMap<&String, String>) -> Value {
    let announced = budget
        .status
        .as_ref()
        .and_then(|status| status.disrupted_pods.as_ref());
    let names = announced.into_iter().flatten().map(|(name, _)| name);
    let gone = names
        .filter(|name| !kept.contains_key(name))
        .map(|name| (name.clone(), Value::Null));
    let kept = kept
        .iter()
        .map(|(name, since)| ((*name).clone(), json!(since)));
    Value::Object(gone.chain(kept).collect())
}

/// The status of a budget that cannot be counted: it allows nothing.
fn fail_safe(budget: &PodDisruptionBudget, why: &str, now: Timestamp) -> Option<ControllerAction> {
    let status = budget.status.clone().unwrap_or_default();
    let told = status.conditions.iter().flatten().any(|one| {
        one.type_ == "DisruptionAllowed" && one.reason == "SyncFailed" && one.message == why
    });
    if told && status.disruptions_allowed == Some(0) {
        return None;
    }
    let generation = status.observed_generation.unwrap_or(0);
    let condition = disruption_condition(budget, "False", "SyncFailed", why, generation, now);
    Some(patch_budget_status(
        budget,
        &json!({
            "disruptionsAllowed": 0,
            "currentHealthy": status.current_healthy,
            "desiredHealthy": status.desired_healthy,
            "expectedPods": status.expected_pods,
            "conditions": [condition],
        }),
    ))
}

fn disruption_condition(
    budget: &PodDisruptionBudget,
    status: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> Value {
    let conditions = budget
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let old = conditions
        .into_iter()
        .flatten()
        .find(|one| one.type_ == "DisruptionAllowed");
    let since = old
        .filter(|old| old.status == status)
        .map_or(now, |old| old.last_transition_time.0);
    json!({
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": format!("{since:.0}"),
    })
}

/// The patch carries the counted resourceVersion: the eviction of a pod changes the status too.
fn patch_budget_status(budget: &PodDisruptionBudget, status: &Value) -> ControllerAction {
    let patch = json!({
        "metadata": { "resourceVersion": budget.metadata.resource_version },
        "status": status,
    });
    ControllerAction::new(
        WritableKind::Budget,
        ObjectKey::of_metadata(&budget.metadata),
        WriteVerb::PatchStatus(patch),
    )
}

fn to_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "disruption_tests.rs"]
mod tests;
