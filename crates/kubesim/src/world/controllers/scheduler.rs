//! The scheduler: binds each pod to the node with the fewest pods that accepts it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{ControllerAction, WritableKind, WriteVerb};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// Number of pods that one reconcile places; the next one places the rest.
const MAX_PODS_PER_RECONCILE: usize = 500;
/// The label that stands for a node in anti-affinity.
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// The scheduler has one key, for all pods that wait.
#[derive(Debug)]
pub struct PodScheduler;

impl SimulatedController for PodScheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn enqueue_keys(
        &mut self,
        cache: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        let relevant = match change {
            CacheChange::Pod(shift) => shift
                .new
                .as_ref()
                .is_none_or(|pod| object_queries::node_of_pod(pod).is_none()),
            CacheChange::Node(shift) => makes_room(shift.old.as_deref(), shift.new.as_deref()),
            CacheChange::ReplicaSet(_)
            | CacheChange::DaemonSet(_)
            | CacheChange::Deployment(_)
            | CacheChange::Budget(_)
            | CacheChange::Attachment(_)
            | CacheChange::Claim(_)
            | CacheChange::NodeLease(_)
            | CacheChange::Power { .. } => false,
        };
        if relevant && cache.index.unbound_keys().next().is_some() {
            keys.insert(ObjectKey::cluster_scoped("waiting pods"));
        }
    }

    fn reconcile(
        &mut self,
        cache: &ControllerCache,
        _: &ObjectKey,
        now: Timestamp,
    ) -> ReconcileOutcome {
        let mut waiting: Vec<&Arc<Pod>> = cache
            .index
            .unbound_keys()
            .filter_map(|key| cache.pods.get(key))
            .filter(|pod| !object_queries::is_deleting(pod) && !object_queries::is_finished(pod))
            .collect();
        // Oldest first; the key breaks ties between pods created in the same second.
        waiting.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
        let mut plan = SchedulingPlan::new(cache);
        let mut bound = 0;
        let mut actions = Vec::new();
        for pod in waiting {
            if bound == MAX_PODS_PER_RECONCILE {
                break;
            }
            if let Some(node) = plan.place_pod(pod) {
                actions.push(bind_action(pod, node));
                bound += 1;
            } else {
                actions.extend(mark_unschedulable(
                    pod,
                    &plan.unschedulable_message(pod),
                    now,
                ));
            }
        }
        ReconcileOutcome::with_actions(actions)
    }
}

/// Whether a pod that did not fit should be tried again: heartbeats change nodes all the time.
fn makes_room(old: Option<&Node>, new: Option<&Node>) -> bool {
    match (old, new) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => {
            old.spec != new.spec || old.metadata.labels != new.metadata.labels
        }
    }
}

/// The placements of this reconcile, on top of the cache.
struct SchedulingPlan<'a> {
    cache: &'a ControllerCache,
    placed: BTreeMap<String, Vec<&'a Pod>>,
    /// The nodes in `placed`, ordered by their load including the placements.
    order: BTreeSet<(usize, String)>,
}

impl<'a> SchedulingPlan<'a> {
    fn new(cache: &'a ControllerCache) -> Self {
        Self {
            cache,
            placed: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    fn place_pod(&mut self, pod: &'a Pod) -> Option<String> {
        let node = self
            .candidate_nodes()
            .find(|(load, node)| self.check_fit(pod, node, *load).is_ok())?;
        let (load, node) = (node.0, node.1.clone());
        self.placed.entry(node.clone()).or_default().push(pod);
        self.order.remove(&(load, node.clone()));
        self.order.insert((load + 1, node.clone()));
        Some(node)
    }

    /// All nodes, the least loaded first.
    fn candidate_nodes(&self) -> impl Iterator<Item = &(usize, String)> {
        let mut known = self
            .cache
            .index
            .nodes_by_load()
            .filter(|(_, node)| !self.placed.contains_key(node))
            .peekable();
        let mut planned = self.order.iter().peekable();
        std::iter::from_fn(move || match (known.peek(), planned.peek()) {
            (Some(a), Some(b)) if *a <= *b => known.next(),
            (Some(_), None) => known.next(),
            (_, _) => planned.next(),
        })
    }

    /// Returns why the pod does not fit on the node.
    fn check_fit(&self, pod: &Pod, name: &str, load: usize) -> Result<(), &'static str> {
        let node = self
            .cache
            .nodes
            .get(&ObjectKey::cluster_scoped(name))
            .ok_or("node(s) were gone")?;
        if object_queries::is_unschedulable(node) && !tolerates_cordon(pod) {
            return Err("node(s) were unschedulable");
        }
        if object_queries::find_untolerated_taint(
            node,
            object_queries::pod_tolerations(pod),
            &["NoSchedule", "NoExecute"],
        )
        .is_some()
        {
            return Err("node(s) had untolerated taint(s)");
        }
        if !matches_node_selector(pod, node) {
            return Err("node(s) didn't match Pod's node affinity/selector");
        }
        if load >= pod_capacity(node) {
            return Err("Too many pods");
        }
        let there = self.cache.pods_on_node(name).map(|pod| &**pod);
        let planned = self.placed.get(name).into_iter().flatten().copied();
        if there
            .chain(planned)
            .any(|other| has_anti_affinity(pod, other) || has_anti_affinity(other, pod))
        {
            return Err("node(s) didn't match pod anti-affinity rules");
        }
        Ok(())
    }

    /// The message in the real scheduler's words.
    fn unschedulable_message(&self, pod: &Pod) -> String {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (load, node) in self.candidate_nodes() {
            if let Err(why) = self.check_fit(pod, node, *load) {
                *reasons.entry(why).or_default() += 1;
            }
        }
        let all = self.cache.nodes.len();
        let reasons: Vec<_> = reasons
            .iter()
            .map(|(why, count)| format!("{count} {why}"))
            .collect();
        if reasons.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        format!("0/{all} nodes are available: {}.", reasons.join(", "))
    }
}

fn tolerates_cordon(pod: &Pod) -> bool {
    let cordon = k8s_openapi::api::core::v1::Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    };
    object_queries::pod_tolerations(pod)
        .iter()
        .any(|toleration| object_queries::tolerates_taint(toleration, &cordon))
}

fn matches_node_selector(pod: &Pod, node: &Node) -> bool {
    let labels = object_queries::object_labels(&node.metadata);
    let wanted = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_selector.as_ref());
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
}

fn pod_capacity(node: &Node) -> usize {
    let allocatable = node
        .status
        .as_ref()
        .and_then(|status| status.allocatable.as_ref());
    let pods = allocatable.and_then(|amounts| amounts.get("pods"));
    pods.and_then(|amount| amount.0.parse().ok())
        .unwrap_or(usize::MAX)
}

/// Whether `one` refuses to share a host with `other` (required anti-affinity within a namespace).
fn has_anti_affinity(one: &Pod, other: &Pod) -> bool {
    let affinity = one.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let terms = affinity
        .and_then(|affinity| affinity.pod_anti_affinity.as_ref())
        .and_then(|rules| {
            rules
                .required_during_scheduling_ignored_during_execution
                .as_deref()
        });
    one.namespace() == other.namespace()
        && !object_queries::is_finished(other)
        && terms.unwrap_or_default().iter().any(|term| {
            let selector = term.label_selector.as_ref();
            term.topology_key == HOSTNAME_LABEL
                && selector.is_some_and(|selector| {
                    object_queries::selector_matches(
                        selector,
                        object_queries::object_labels(&other.metadata),
                    )
                })
        })
}

fn bind_action(pod: &Pod, node: String) -> ControllerAction {
    let uid = pod.uid().unwrap_or_default();
    ControllerAction::new(
        WritableKind::Pod,
        ObjectKey::of_metadata(&pod.metadata),
        WriteVerb::Bind { uid, node },
    )
}

fn mark_unschedulable(pod: &Pod, message: &str, now: Timestamp) -> Option<ControllerAction> {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let told = conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "PodScheduled" && condition.message.as_deref() == Some(message)
    });
    let patch = json!({
        "metadata": { "uid": pod.metadata.uid },
        "status": { "conditions": [{
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": format!("{now:.0}"),
        }] },
    });
    (!told).then(|| {
        ControllerAction::new(
            WritableKind::Pod,
            ObjectKey::of_metadata(&pod.metadata),
            WriteVerb::PatchConditions(patch),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn node(cache: &mut ControllerCache, name: &str, spec: &Value) {
        let node = json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": { "zone": name } },
            "spec": spec,
            "status": { "allocatable": { "pods": "3" } },
        });
        cache.observe_object::<Node>(serde_json::from_value(node).unwrap());
    }

    fn pod(cache: &mut ControllerCache, name: &str, node: Option<&str>, spec: &Value) {
        let mut spec = spec.clone();
        spec["containers"] = json!([]);
        spec["nodeName"] = json!(node);
        let pod = json!({
            "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "1", "labels": { "app": "a" } },
            "spec": spec,
        });
        cache.observe_object::<Pod>(serde_json::from_value(pod).unwrap());
    }

    /// The node of each waiting pod, or why the pod is unschedulable.
    fn placed(cache: &ControllerCache) -> Vec<String> {
        let verdict =
            PodScheduler.reconcile(cache, &ObjectKey::cluster_scoped(""), Timestamp::UNIX_EPOCH);
        verdict
            .actions
            .into_iter()
            .map(|action| {
                if let WriteVerb::Bind { node, .. } = action.verb {
                    return format!("{} to {node}", action.key.name);
                }
                let condition = &action.verb.patch_body()["status"]["conditions"][0];
                condition["message"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    #[test]
    fn pods_go_where_the_fewest_are_counting_those_just_placed() {
        let mut cache = ControllerCache::default();
        node(&mut cache, "n1", &json!({}));
        node(&mut cache, "n2", &json!({}));
        pod(&mut cache, "old", Some("n1"), &json!({}));
        for name in ["a", "b", "c"] {
            pod(&mut cache, name, None, &json!({}));
        }
        assert_eq!(placed(&cache), ["a to n2", "b to n1", "c to n2"]);
    }

    #[test]
    fn a_pod_goes_only_where_it_is_taken() {
        let cordon = json!({ "unschedulable": true });
        let tainted = json!({ "taints": [{ "key": "t", "effect": "NoExecute" }] });
        let mild = json!({ "taints": [{ "key": "t", "effect": "PreferNoSchedule" }] });
        let tolerant = json!({ "tolerations": [{ "operator": "Exists" }] });
        let picky = json!({ "nodeSelector": { "zone": "elsewhere" } });
        let table = [
            (
                &cordon,
                json!({}),
                "0/1 nodes are available: 1 node(s) were unschedulable.",
            ),
            (&cordon, tolerant.clone(), "a to n1"),
            (
                &tainted,
                json!({}),
                "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
            ),
            (&tainted, tolerant, "a to n1"),
            (&mild, json!({}), "a to n1"),
            (
                &mild,
                picky,
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            ),
        ];
        for (on, spec, expected) in table {
            let mut cache = ControllerCache::default();
            node(&mut cache, "n1", on);
            pod(&mut cache, "a", None, &spec);
            assert_eq!(placed(&cache), [expected]);
        }
    }

    #[test]
    fn pods_that_cannot_stand_each_other_do_not_share_a_host() {
        let averse = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": HOSTNAME_LABEL, "labelSelector": { "matchLabels": { "app": "a" } } }] } } });
        let mut cache = ControllerCache::default();
        node(&mut cache, "n1", &json!({}));
        node(&mut cache, "n2", &json!({}));
        pod(&mut cache, "there", Some("n1"), &averse);
        pod(&mut cache, "a", None, &json!({}));
        pod(&mut cache, "b", None, &averse);
        assert_eq!(
            placed(&cache),
            [
                "a to n2",
                "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
            ]
        );
    }

    #[test]
    fn a_full_node_takes_no_more() {
        let mut cache = ControllerCache::default();
        node(&mut cache, "n1", &json!({}));
        for name in ["a", "b", "c", "d"] {
            pod(&mut cache, name, None, &json!({}));
        }
        assert_eq!(
            placed(&cache)[3],
            "0/1 nodes are available: 1 Too many pods."
        );
    }
}
