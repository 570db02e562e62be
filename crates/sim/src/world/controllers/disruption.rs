//! PodDisruptionBudgets: their status, exactly as the real disruption controller counts it.
//!
//! Source: kube-controller-manager's disruption controller, read in 1.36: which pods are expected,
//! which are healthy, how a percentage rounds, when an announced disruption is forgotten, and what
//! is said when the count is impossible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{Action, Kind, Verb};
use super::{Controller, Verdict, words};
use crate::world::cache::{Cache, Change, Key};

/// How long an announced disruption counts although the pod is not being deleted
/// (`DeletionTimeout` there).
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

/// The controller.
#[derive(Debug)]
pub struct Budgets;

impl Controller for Budgets {
    fn name(&self) -> &'static str {
        "disruption"
    }

    fn touched(&mut self, cache: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::Budget(shift) => {
                keys.extend(shift.states().map(|budget| Key::of(&budget.metadata)));
            }
            Change::Pod(shift) => shift.states().for_each(|pod| covering(cache, pod, keys)),
            // A new scale is a new expectation.
            Change::ReplicaSet(shift) => shift.states().for_each(|set| {
                let uid = set.uid().unwrap_or_default();
                cache
                    .pods_of(&uid)
                    .for_each(|pod| covering(cache, pod, keys));
            }),
            Change::Node(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, now: Timestamp) -> Verdict {
        let Some(budget) = cache.budgets.get(key) else {
            return Verdict::default();
        };
        let pods = covered(cache, budget);
        match count(cache, budget, &pods, now) {
            Ok(count) => Verdict {
                actions: count.action(budget, now).into_iter().collect(),
                again_in: count.recheck_in,
            },
            Err(why) => Verdict::act(fail_safe(budget, &why, now).into_iter().collect()),
        }
    }
}

fn covering(cache: &Cache, pod: &Pod, keys: &mut BTreeSet<Key>) {
    let namespace = pod.namespace().unwrap_or_default();
    let labels = words::labels(&pod.metadata);
    let budgets = cache.budgets.in_namespace(&namespace);
    keys.extend(
        budgets
            .filter(|budget| selects(budget, labels))
            .map(|budget| Key::of(&budget.metadata)),
    );
}

fn selects(budget: &PodDisruptionBudget, labels: &BTreeMap<String, String>) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| words::matches(selector, labels))
}

fn covered<'a>(cache: &'a Cache, budget: &'a PodDisruptionBudget) -> Vec<&'a Arc<Pod>> {
    let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let exact = selector.and_then(|selector| selector.match_labels.as_ref()?.iter().next());
    let all: Box<dyn Iterator<Item = &Arc<Pod>>> = match exact {
        Some((label, value)) => Box::new(cache.pods_labelled(namespace, label, value)),
        None => Box::new(cache.pods.in_namespace(namespace)),
    };
    all.filter(|pod| selects(budget, words::labels(&pod.metadata)))
        .collect()
}

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Count {
    expected: i32,
    healthy: i32,
    desired: i32,
    allowed: i32,
    disrupted: BTreeMap<String, Timestamp>,
    recheck_in: Option<Duration>,
}

fn count(
    cache: &Cache,
    budget: &PodDisruptionBudget,
    pods: &[&Arc<Pod>],
    now: Timestamp,
) -> Result<Count, String> {
    let (expected, desired) = expectation(cache, budget, pods)?;
    let (disrupted, recheck_in) = disrupted(budget, pods, now);
    let counts = |pod: &&&Arc<Pod>| {
        !words::is_deleting(pod) && !disrupted.contains_key(&pod.name_any()) && words::is_ready(pod)
    };
    let healthy = whole(pods.iter().filter(counts).count());
    // Without an expected pod nothing is allowed: the first ones could otherwise be evicted before
    // they are counted.
    let allowed = if expected <= 0 {
        0
    } else {
        (healthy - desired).max(0)
    };
    Ok(Count {
        expected,
        healthy,
        desired,
        allowed,
        disrupted,
        recheck_in,
    })
}

/// Expected pods and desired healthy ones.
fn expectation(
    cache: &Cache,
    budget: &PodDisruptionBudget,
    pods: &[&Arc<Pod>],
) -> Result<(i32, i32), String> {
    let spec = budget.spec.clone().unwrap_or_default();
    match (spec.max_unavailable, spec.min_available) {
        (Some(limit), _) => {
            let expected = expected_scale(cache, pods)?;
            Ok((expected, (expected - scaled(&limit, expected)?).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Ok((whole(pods.len()), least)),
        (None, Some(share @ IntOrString::String(_))) => {
            let expected = expected_scale(cache, pods)?;
            Ok((expected, scaled(&share, expected)?))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// The sum of what the pods' controllers ask for, each counted once. Pods without a controller do
/// not count; one whose controller has no scale makes the count impossible.
fn expected_scale(cache: &Cache, pods: &[&Arc<Pod>]) -> Result<i32, String> {
    let mut scales = BTreeMap::new();
    for pod in pods {
        let Some(owner) = words::controller(&pod.metadata) else {
            continue;
        };
        if scales.contains_key(&owner.uid) {
            continue;
        }
        let key = Key::new(pod.namespace().unwrap_or_default(), &owner.name);
        let set = (owner.kind == "ReplicaSet")
            .then(|| cache.replica_sets.get(&key))
            .flatten();
        let set = set.filter(|set| set.metadata.uid.as_ref() == Some(&owner.uid));
        let Some(set) = set else {
            return Err(format!("found no controllers for pod {:?}", pod.name_any()));
        };
        scales.insert(owner.uid.clone(), scale(cache, set));
    }
    Ok(scales.values().sum())
}

/// A ReplicaSet's scale is its Deployment's where it has one: during a rollout both its ReplicaSets
/// are one set of pods.
fn scale(cache: &Cache, set: &k8s_openapi::api::apps::v1::ReplicaSet) -> i32 {
    let own = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let deployment = words::controller(&set.metadata).and_then(|owner| {
        let key = Key::new(set.namespace().unwrap_or_default(), &owner.name);
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

/// A number as it is, a percentage of `total` rounded up (both kinds of budget round up).
fn scaled(value: &IntOrString, total: i32) -> Result<i32, String> {
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

/// The announced disruptions that still count, and when the next one will not.
fn disrupted(
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
    for pod in pods.iter().filter(|pod| !words::is_deleting(pod)) {
        let Some(since) = announced.and_then(|announced| announced.get(&pod.name_any())) else {
            continue;
        };
        let ends = since.0 + DELETION_TIMEOUT;
        let Ok(left) = Duration::try_from(ends.duration_since(now)) else {
            continue;
        };
        kept.insert(pod.name_any(), since.0);
        // One more than what is left: at its very end it still counts.
        let left = left + Duration::from_millis(1);
        recheck = Some(recheck.map_or(left, |earlier| earlier.min(left)));
    }
    (kept, recheck)
}

impl Count {
    fn action(&self, budget: &PodDisruptionBudget, now: Timestamp) -> Option<Action> {
        let generation = budget.metadata.generation.unwrap_or(0);
        let enough = self.allowed > 0;
        let (status, reason) = if enough {
            ("True", "SufficientPods")
        } else {
            ("False", "InsufficientPods")
        };
        let condition = condition(budget, status, reason, "", generation, now);
        (!self.is_told(budget, status, generation)).then(|| {
            let disrupted: BTreeMap<_, _> = self
                .disrupted
                .iter()
                .map(|(name, since)| (name, format!("{since:.0}")))
                .collect();
            tell(
                budget,
                &json!({
                    "expectedPods": self.expected,
                    "currentHealthy": self.healthy,
                    "desiredHealthy": self.desired,
                    "disruptionsAllowed": self.allowed,
                    "disruptedPods": forgetting(budget, &disrupted),
                    "observedGeneration": generation,
                    "conditions": [condition],
                }),
            )
        })
    }

    fn is_told(&self, budget: &PodDisruptionBudget, allowed: &str, generation: i64) -> bool {
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

/// The map as a merge patch sets it: what is to go is named as null.
fn forgetting(budget: &PodDisruptionBudget, kept: &BTreeMap<&String, String>) -> Value {
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

/// What cannot be counted allows nothing.
fn fail_safe(budget: &PodDisruptionBudget, why: &str, now: Timestamp) -> Option<Action> {
    let status = budget.status.clone().unwrap_or_default();
    let told = status.conditions.iter().flatten().any(|one| {
        one.type_ == "DisruptionAllowed" && one.reason == "SyncFailed" && one.message == why
    });
    if told && status.disruptions_allowed == Some(0) {
        return None;
    }
    let generation = status.observed_generation.unwrap_or(0);
    let condition = condition(budget, "False", "SyncFailed", why, generation, now);
    Some(tell(
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

fn condition(
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

/// A status is written for the state that was counted only: the eviction of a pod changes it too.
fn tell(budget: &PodDisruptionBudget, status: &Value) -> Action {
    let patch = json!({
        "metadata": { "resourceVersion": budget.metadata.resource_version },
        "status": status,
    });
    Action::new(
        Kind::Budget,
        Key::of(&budget.metadata),
        Verb::PatchStatus(patch),
    )
}

fn whole(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "disruption_tests.rs"]
mod tests;
