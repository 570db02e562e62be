//! The scheduler: each pod to the node with the fewest pods that takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{Action, Kind, Verb};
use super::{Controller, Verdict, words};
use crate::world::cache::{Cache, Change, Key};

/// So many pods are placed in one look; the rest follow in the next.
const BATCH: usize = 500;
/// The label that stands for a node in anti-affinity.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The controller. It has one key: all pods that wait.
#[derive(Debug)]
pub struct Scheduler;

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn touched(&mut self, cache: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        let relevant = match change {
            Change::Pod(shift) => shift
                .new
                .as_ref()
                .is_none_or(|pod| words::node_of(pod).is_none()),
            Change::Node(shift) => makes_room(shift.old.as_deref(), shift.new.as_deref()),
            Change::ReplicaSet(_)
            | Change::DaemonSet(_)
            | Change::Deployment(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => false,
        };
        if relevant && cache.index.unbound().next().is_some() {
            keys.insert(Key::cluster("waiting pods"));
        }
    }

    fn reconcile(&mut self, cache: &Cache, _: &Key, now: Timestamp) -> Verdict {
        let mut waiting: Vec<&Arc<Pod>> = cache
            .index
            .unbound()
            .filter_map(|key| cache.pods.get(key))
            .filter(|pod| !words::is_deleting(pod) && !words::is_finished(pod))
            .collect();
        // First come, first served; the key breaks ties, and so do pods made in the same second.
        waiting.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
        let mut plan = Plan::new(cache);
        let mut bound = 0;
        let mut actions = Vec::new();
        for pod in waiting {
            if bound == BATCH {
                break;
            }
            if let Some(node) = plan.place(pod) {
                actions.push(bind(pod, node));
                bound += 1;
            } else {
                actions.extend(unschedulable(pod, &plan.refusal(pod), now));
            }
        }
        Verdict::act(actions)
    }
}

/// Heartbeats change nodes all the time; only this makes it worth trying again.
fn makes_room(old: Option<&Node>, new: Option<&Node>) -> bool {
    match (old, new) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => {
            old.spec != new.spec || old.metadata.labels != new.metadata.labels
        }
    }
}

/// What is placed already in this look, on top of what the cache knows.
struct Plan<'a> {
    cache: &'a Cache,
    placed: BTreeMap<String, Vec<&'a Pod>>,
    /// The nodes in `placed`, by their load with what was placed.
    order: BTreeSet<(usize, String)>,
}

impl<'a> Plan<'a> {
    fn new(cache: &'a Cache) -> Self {
        Self {
            cache,
            placed: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    fn place(&mut self, pod: &'a Pod) -> Option<String> {
        let node = self
            .candidates()
            .find(|(load, node)| self.fits(pod, node, *load).is_ok())?;
        let (load, node) = (node.0, node.1.clone());
        self.placed.entry(node.clone()).or_default().push(pod);
        self.order.remove(&(load, node.clone()));
        self.order.insert((load + 1, node.clone()));
        Some(node)
    }

    /// All nodes, the least loaded first.
    fn candidates(&self) -> impl Iterator<Item = &(usize, String)> {
        let mut known = self
            .cache
            .index
            .by_load()
            .filter(|(_, node)| !self.placed.contains_key(node))
            .peekable();
        let mut planned = self.order.iter().peekable();
        std::iter::from_fn(move || match (known.peek(), planned.peek()) {
            (Some(a), Some(b)) if *a <= *b => known.next(),
            (Some(_), None) => known.next(),
            (_, _) => planned.next(),
        })
    }

    /// Why the pod cannot go there.
    fn fits(&self, pod: &Pod, name: &str, load: usize) -> Result<(), &'static str> {
        let node = self
            .cache
            .nodes
            .get(&Key::cluster(name))
            .ok_or("node(s) were gone")?;
        if words::is_unschedulable(node) && !tolerates_cordon(pod) {
            return Err("node(s) were unschedulable");
        }
        if words::untolerated(node, words::tolerations(pod), &["NoSchedule", "NoExecute"]).is_some()
        {
            return Err("node(s) had untolerated taint(s)");
        }
        if !selected(pod, node) {
            return Err("node(s) didn't match Pod's node affinity/selector");
        }
        if load >= capacity(node) {
            return Err("Too many pods");
        }
        let there = self.cache.pods_on(name).map(|pod| &**pod);
        let planned = self.placed.get(name).into_iter().flatten().copied();
        if there
            .chain(planned)
            .any(|other| averse(pod, other) || averse(other, pod))
        {
            return Err("node(s) didn't match pod anti-affinity rules");
        }
        Ok(())
    }

    /// The sentence that the real scheduler writes.
    fn refusal(&self, pod: &Pod) -> String {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (load, node) in self.candidates() {
            if let Err(why) = self.fits(pod, node, *load) {
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
    words::tolerations(pod)
        .iter()
        .any(|toleration| words::covers(toleration, &cordon))
}

fn selected(pod: &Pod, node: &Node) -> bool {
    let labels = words::labels(&node.metadata);
    let wanted = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_selector.as_ref());
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
}

fn capacity(node: &Node) -> usize {
    let allocatable = node
        .status
        .as_ref()
        .and_then(|status| status.allocatable.as_ref());
    let pods = allocatable.and_then(|amounts| amounts.get("pods"));
    pods.and_then(|amount| amount.0.parse().ok())
        .unwrap_or(usize::MAX)
}

/// Whether `one` refuses to share a host with `other` (required anti-affinity within a namespace).
fn averse(one: &Pod, other: &Pod) -> bool {
    let affinity = one.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let terms = affinity
        .and_then(|affinity| affinity.pod_anti_affinity.as_ref())
        .and_then(|rules| {
            rules
                .required_during_scheduling_ignored_during_execution
                .as_deref()
        });
    one.namespace() == other.namespace()
        && !words::is_finished(other)
        && terms.unwrap_or_default().iter().any(|term| {
            let selector = term.label_selector.as_ref();
            term.topology_key == HOSTNAME
                && selector.is_some_and(|selector| {
                    words::matches(selector, words::labels(&other.metadata))
                })
        })
}

fn bind(pod: &Pod, node: String) -> Action {
    let uid = pod.uid().unwrap_or_default();
    Action::new(Kind::Pod, Key::of(&pod.metadata), Verb::Bind { uid, node })
}

fn unschedulable(pod: &Pod, message: &str, now: Timestamp) -> Option<Action> {
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
        Action::new(
            Kind::Pod,
            Key::of(&pod.metadata),
            Verb::PatchConditions(patch),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn node(cache: &mut Cache, name: &str, spec: &Value) {
        let node = json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": { "zone": name } },
            "spec": spec,
            "status": { "allocatable": { "pods": "3" } },
        });
        cache.seen::<Node>(serde_json::from_value(node).unwrap());
    }

    fn pod(cache: &mut Cache, name: &str, node: Option<&str>, spec: &Value) {
        let mut spec = spec.clone();
        spec["containers"] = json!([]);
        spec["nodeName"] = json!(node);
        let pod = json!({
            "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "1", "labels": { "app": "a" } },
            "spec": spec,
        });
        cache.seen::<Pod>(serde_json::from_value(pod).unwrap());
    }

    /// Where each waiting pod goes, or why it goes nowhere.
    fn placed(cache: &Cache) -> Vec<String> {
        let verdict = Scheduler.reconcile(cache, &Key::cluster(""), Timestamp::UNIX_EPOCH);
        verdict
            .actions
            .into_iter()
            .map(|action| {
                if let Verb::Bind { node, .. } = action.verb {
                    return format!("{} to {node}", action.key.name);
                }
                let condition = &action.verb.patch()["status"]["conditions"][0];
                condition["message"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    #[test]
    fn pods_go_where_the_fewest_are_counting_those_just_placed() {
        let mut cache = Cache::default();
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
            let mut cache = Cache::default();
            node(&mut cache, "n1", on);
            pod(&mut cache, "a", None, &spec);
            assert_eq!(placed(&cache), [expected]);
        }
    }

    #[test]
    fn pods_that_cannot_stand_each_other_do_not_share_a_host() {
        let averse = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": HOSTNAME, "labelSelector": { "matchLabels": { "app": "a" } } }] } } });
        let mut cache = Cache::default();
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
        let mut cache = Cache::default();
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
