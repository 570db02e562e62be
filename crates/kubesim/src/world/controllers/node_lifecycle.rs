//! Node lifecycle: conditions and taints of silent nodes, and finally the eviction of their pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{ControllerAction, WritableKind, WriteVerb};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// A node without heartbeat for this long is not Ready (default of `--node-monitor-grace-period`
/// until 1.31; since then it is 50s).
const NODE_MONITOR_GRACE_PERIOD: Duration = Duration::from_secs(40);
/// A pod without a toleration of its own stays this long on a node that is not Ready (the admission
/// plugin DefaultTolerationSeconds writes this into pods).
const DEFAULT_TOLERATION: Duration = Duration::from_mins(5);

const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

#[derive(Debug, Default)]
pub struct NodeLifecycleController {
    /// By node: the Lease's renew time, and when it last changed by our own clock.
    heard: BTreeMap<String, (Option<Timestamp>, Timestamp)>,
    /// Nodes without heartbeats that are switched off, and since when.
    off: BTreeMap<String, Timestamp>,
}

impl SimulatedController for NodeLifecycleController {
    fn name(&self) -> &'static str {
        "node-lifecycle"
    }

    fn enqueue_keys(
        &mut self,
        _: &ControllerCache,
        change: &CacheChange,
        now: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::Node(shift) => keys.extend(
                shift
                    .known_states()
                    .map(|node| ObjectKey::of_metadata(&node.metadata)),
            ),
            CacheChange::NodeLease(shift) => {
                let Some(lease) = &shift.new else { return };
                let said = lease
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.renew_time.as_ref())
                    .map(|time| time.0);
                let known = self.heard.get(&lease.name_any());
                // Only the first heartbeat, and the first after a silence, need a reconcile.
                if known.is_none_or(|(_, at)| time_since(*at, now) >= NODE_MONITOR_GRACE_PERIOD) {
                    keys.insert(ObjectKey::cluster_scoped(lease.name_any()));
                }
                if known.is_none_or(|(old, _)| *old != said) {
                    self.heard.insert(lease.name_any(), (said, now));
                }
            }
            CacheChange::Power { node, on } => {
                if *on {
                    self.off.remove(node);
                } else {
                    self.off.entry(node.clone()).or_insert(now);
                }
                keys.insert(ObjectKey::cluster_scoped(node));
            }
            // A pod may arrive on a tainted node.
            CacheChange::Pod(shift) => {
                let arrived = shift.new.as_ref().filter(|_| {
                    shift
                        .old
                        .as_ref()
                        .and_then(|pod| object_queries::node_of_pod(pod))
                        .is_none()
                });
                keys.extend(
                    arrived
                        .and_then(|pod| object_queries::node_of_pod(pod))
                        .map(ObjectKey::cluster_scoped),
                );
            }
            CacheChange::ReplicaSet(_)
            | CacheChange::DaemonSet(_)
            | CacheChange::Deployment(_)
            | CacheChange::Budget(_)
            | CacheChange::Attachment(_)
            | CacheChange::Claim(_) => {}
        }
    }

    fn reconcile(
        &mut self,
        cache: &ControllerCache,
        key: &ObjectKey,
        now: Timestamp,
    ) -> ReconcileOutcome {
        let Some(node) = cache.nodes.get(key) else {
            self.heard.remove(&key.name);
            self.off.remove(&key.name);
            return ReconcileOutcome::default();
        };
        let since = self.silent_since(&key.name);
        let silent = since.map(|since| time_since(since, now));
        if silent.is_some_and(|silent| silent >= NODE_MONITOR_GRACE_PERIOD)
            && object_queries::node_ready_status(node) != "Unknown"
        {
            return ReconcileOutcome::with_actions(mark_node_unknown(cache, node, now));
        }
        let mut actions: Vec<ControllerAction> = update_taints(node, now).into_iter().collect();
        let (evictions, next) = due_evictions(cache, node, now);
        actions.extend(evictions);
        let left = silent
            .and_then(|silent| NODE_MONITOR_GRACE_PERIOD.checked_sub(silent))
            .filter(|left| !left.is_zero());
        ReconcileOutcome {
            actions,
            requeue_after: [left, next].into_iter().flatten().min(),
        }
    }
}

impl NodeLifecycleController {
    /// The start of the node's silence: its last heartbeat if it sends any, else the time it was
    /// switched off.
    fn silent_since(&self, node: &str) -> Option<Timestamp> {
        let heard = self.heard.get(node).map(|(_, at)| *at);
        self.off.get(node).copied().or(heard)
    }
}

fn time_since(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO)
}

/// Sets the Node's condition to Unknown and its pods to not ready, once.
fn mark_node_unknown(
    cache: &ControllerCache,
    node: &Node,
    now: Timestamp,
) -> Vec<ControllerAction> {
    let now = format!("{now:.0}");
    let patch = json!({ "status": { "conditions": [{
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": now,
    }] } });
    let name = node.name_any();
    let pods = cache
        .pods_on_node(&name)
        .filter(|pod| object_queries::is_ready(pod));
    let unready = pods.map(|pod| {
        let patch = json!({
            "metadata": { "uid": pod.metadata.uid },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": now }] },
        });
        ControllerAction::new(WritableKind::Pod, ObjectKey::of_metadata(&pod.metadata), WriteVerb::PatchConditions(patch))
    });
    let node = ControllerAction::new(
        WritableKind::Node,
        ObjectKey::cluster_scoped(&name),
        WriteVerb::PatchConditions(patch),
    );
    std::iter::once(node).chain(unready).collect()
}

/// Updates the taints that follow from cordon and conditions; all other taints stay.
fn update_taints(node: &Node, now: Timestamp) -> Option<ControllerAction> {
    let mut wanted: Vec<(&str, &str)> = match object_queries::node_ready_status(node) {
        "True" => Vec::new(),
        "False" => vec![
            (NOT_READY_TAINT, "NoSchedule"),
            (NOT_READY_TAINT, "NoExecute"),
        ],
        _ => vec![
            (UNREACHABLE_TAINT, "NoSchedule"),
            (UNREACHABLE_TAINT, "NoExecute"),
        ],
    };
    if object_queries::is_unschedulable(node) {
        wanted.push((UNSCHEDULABLE_TAINT, "NoSchedule"));
    }
    let is_ours = |taint: &&Taint| {
        [NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT].contains(&taint.key.as_str())
    };
    let present: BTreeSet<(&str, &str)> = object_queries::node_taints(node)
        .iter()
        .filter(is_ours)
        .map(|taint| (taint.key.as_str(), taint.effect.as_str()))
        .collect();
    if present == wanted.iter().copied().collect() {
        return None;
    }
    let kept = object_queries::node_taints(node)
        .iter()
        .filter(|taint| {
            !is_ours(taint) || wanted.contains(&(taint.key.as_str(), taint.effect.as_str()))
        })
        .map(|taint| json!(taint));
    let added = wanted
        .iter()
        .filter(|taint| !present.contains(taint))
        .map(|(key, effect)| match *effect {
            "NoExecute" => {
                json!({ "key": key, "effect": effect, "timeAdded": format!("{now:.0}") })
            }
            _ => json!({ "key": key, "effect": effect }),
        });
    let patch = json!({
        "metadata": { "resourceVersion": node.metadata.resource_version },
        "spec": { "taints": kept.chain(added).collect::<Vec<Value>>() },
    });
    Some(ControllerAction::new(
        WritableKind::Node,
        ObjectKey::of_metadata(&node.metadata),
        WriteVerb::Patch(patch),
    ))
}

/// Pods whose toleration of the Node's NoExecute taints has expired, and when the next one expires.
fn due_evictions(
    cache: &ControllerCache,
    node: &Node,
    now: Timestamp,
) -> (Vec<ControllerAction>, Option<Duration>) {
    let taints: Vec<&Taint> = object_queries::node_taints(node)
        .iter()
        .filter(|taint| taint.effect == "NoExecute")
        .collect();
    let mut actions = Vec::new();
    let mut next: Option<Duration> = None;
    if taints.is_empty() {
        return (actions, next);
    }
    let name = node.name_any();
    for pod in cache
        .pods_on_node(&name)
        .filter(|pod| !object_queries::is_deleting(pod))
    {
        let left = taints
            .iter()
            .filter_map(|taint| remaining_toleration(pod, taint, now))
            .min();
        match left {
            Some(Duration::ZERO) => actions.push(ControllerAction::delete_pod(pod)),
            Some(left) => next = Some(next.map_or(left, |earlier| earlier.min(left))),
            None => {}
        }
    }
    (actions, next)
}

/// Time for which the pod still tolerates this taint; `None` means forever.
fn remaining_toleration(pod: &Pod, taint: &Taint, now: Timestamp) -> Option<Duration> {
    let bearing: Vec<_> = object_queries::pod_tolerations(pod)
        .iter()
        .filter(|one| object_queries::tolerates_taint(one, taint))
        .collect();
    let by_default = [NOT_READY_TAINT, UNREACHABLE_TAINT].contains(&taint.key.as_str());
    let bears = if bearing.is_empty() {
        if by_default {
            DEFAULT_TOLERATION
        } else {
            Duration::ZERO
        }
    } else {
        let limits = bearing.iter().map(|one| one.toleration_seconds);
        let shortest = limits.flatten().min()?;
        Duration::from_secs(u64::try_from(shortest).unwrap_or(0))
    };
    let since = taint.time_added.as_ref().map_or(now, |time| time.0);
    Some(bears.saturating_sub(time_since(since, now)))
}

#[cfg(test)]
#[path = "node_lifecycle_tests.rs"]
mod tests;
