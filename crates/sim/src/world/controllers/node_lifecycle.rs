//! What the cluster makes of its nodes' silence: conditions, taints, and in the end evictions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{Action, Kind, Verb};
use super::{Controller, Verdict, words};
use crate::world::cache::{Cache, Change, Key};

/// A node that says nothing for so long is not Ready (`--node-monitor-grace-period`'s default
/// until 1.31; it is 50s since).
const GRACE: Duration = Duration::from_secs(40);
/// A pod that says nothing of it stays so long on a node that is not Ready (what the admission
/// plugin DefaultTolerationSeconds writes into pods).
const DEFAULT_TOLERATION: Duration = Duration::from_mins(5);

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The controller.
#[derive(Debug, Default)]
pub struct NodeLifecycle {
    /// When the node's Lease was last seen to change, by our own clock, and what it said.
    heard: BTreeMap<String, (Option<Timestamp>, Timestamp)>,
    /// Nodes without heartbeats that were switched off, since when.
    off: BTreeMap<String, Timestamp>,
}

impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node-lifecycle"
    }

    fn touched(&mut self, _: &Cache, change: &Change, now: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::Node(shift) => keys.extend(shift.states().map(|node| Key::of(&node.metadata))),
            Change::NodeLease(shift) => {
                let Some(lease) = &shift.new else { return };
                let said = lease
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.renew_time.as_ref())
                    .map(|time| time.0);
                let known = self.heard.get(&lease.name_any());
                // Only the first word and the first after a silence need a look.
                if known.is_none_or(|(_, at)| silence(*at, now) >= GRACE) {
                    keys.insert(Key::cluster(lease.name_any()));
                }
                if known.is_none_or(|(old, _)| *old != said) {
                    self.heard.insert(lease.name_any(), (said, now));
                }
            }
            Change::Power { node, on } => {
                if *on {
                    self.off.remove(node);
                } else {
                    self.off.entry(node.clone()).or_insert(now);
                }
                keys.insert(Key::cluster(node));
            }
            // A pod that arrives on a tainted node.
            Change::Pod(shift) => {
                let arrived = shift.new.as_ref().filter(|_| {
                    shift
                        .old
                        .as_ref()
                        .and_then(|pod| words::node_of(pod))
                        .is_none()
                });
                keys.extend(
                    arrived
                        .and_then(|pod| words::node_of(pod))
                        .map(Key::cluster),
                );
            }
            Change::ReplicaSet(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_) => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, now: Timestamp) -> Verdict {
        let Some(node) = cache.nodes.get(key) else {
            self.heard.remove(&key.name);
            self.off.remove(&key.name);
            return Verdict::default();
        };
        let since = self.silent_since(&key.name);
        let silent = since.map(|since| silence(since, now));
        if silent.is_some_and(|silent| silent >= GRACE) && words::node_ready(node) != "Unknown" {
            return Verdict::act(write_off(cache, node, now));
        }
        let mut actions: Vec<Action> = retaint(node, now).into_iter().collect();
        let (evictions, next) = evictions(cache, node, now);
        actions.extend(evictions);
        let left = silent
            .and_then(|silent| GRACE.checked_sub(silent))
            .filter(|left| !left.is_zero());
        Verdict {
            actions,
            again_in: [left, next].into_iter().flatten().min(),
        }
    }
}

impl NodeLifecycle {
    /// Since when nothing was heard: from the last heartbeat on where there are any, else from when
    /// it was switched off.
    fn silent_since(&self, node: &str) -> Option<Timestamp> {
        let heard = self.heard.get(node).map(|(_, at)| *at);
        self.off.get(node).copied().or(heard)
    }
}

fn silence(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO)
}

/// The Node's condition is unknown, and its pods are not ready any more, once.
fn write_off(cache: &Cache, node: &Node, now: Timestamp) -> Vec<Action> {
    let now = format!("{now:.0}");
    let patch = json!({ "status": { "conditions": [{
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": now,
    }] } });
    let name = node.name_any();
    let pods = cache.pods_on(&name).filter(|pod| words::is_ready(pod));
    let unready = pods.map(|pod| {
        let patch = json!({
            "metadata": { "uid": pod.metadata.uid },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": now }] },
        });
        Action::new(Kind::Pod, Key::of(&pod.metadata), Verb::PatchConditions(patch))
    });
    let node = Action::new(
        Kind::Node,
        Key::cluster(&name),
        Verb::PatchConditions(patch),
    );
    std::iter::once(node).chain(unready).collect()
}

/// The taints that follow from cordon and condition; everybody else's stay as they are.
fn retaint(node: &Node, now: Timestamp) -> Option<Action> {
    let mut wanted: Vec<(&str, &str)> = match words::node_ready(node) {
        "True" => Vec::new(),
        "False" => vec![(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")],
        _ => vec![(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
    };
    if words::is_unschedulable(node) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let is_ours =
        |taint: &&Taint| [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str());
    let present: BTreeSet<(&str, &str)> = words::taints(node)
        .iter()
        .filter(is_ours)
        .map(|taint| (taint.key.as_str(), taint.effect.as_str()))
        .collect();
    if present == wanted.iter().copied().collect() {
        return None;
    }
    let kept = words::taints(node)
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
    Some(Action::new(
        Kind::Node,
        Key::of(&node.metadata),
        Verb::Patch(patch),
    ))
}

/// Pods whose tolerance for the Node's NoExecute taints is used up, and when the next one's is.
fn evictions(cache: &Cache, node: &Node, now: Timestamp) -> (Vec<Action>, Option<Duration>) {
    let taints: Vec<&Taint> = words::taints(node)
        .iter()
        .filter(|taint| taint.effect == "NoExecute")
        .collect();
    let mut actions = Vec::new();
    let mut next: Option<Duration> = None;
    if taints.is_empty() {
        return (actions, next);
    }
    let name = node.name_any();
    for pod in cache.pods_on(&name).filter(|pod| !words::is_deleting(pod)) {
        let left = taints
            .iter()
            .filter_map(|taint| patience(pod, taint, now))
            .min();
        match left {
            Some(Duration::ZERO) => actions.push(Action::delete_pod(pod)),
            Some(left) => next = Some(next.map_or(left, |earlier| earlier.min(left))),
            None => {}
        }
    }
    (actions, next)
}

/// How long the pod bears this taint from now on; `None` is for ever.
fn patience(pod: &Pod, taint: &Taint, now: Timestamp) -> Option<Duration> {
    let bearing: Vec<_> = words::tolerations(pod)
        .iter()
        .filter(|one| words::covers(one, taint))
        .collect();
    let by_default = [NOT_READY, UNREACHABLE].contains(&taint.key.as_str());
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
    Some(bears.saturating_sub(silence(since, now)))
}

#[cfg(test)]
#[path = "node_lifecycle_tests.rs"]
mod tests;
