//! Deployments: one ReplicaSet for the current template, and rollouts from the older ones to it.
//!
//! A rollout is the real controller's, without `minReadySeconds`, history and progress deadlines: new
//! pods come up to `maxSurge`, old ones go as new ones are ready, and `maxUnavailable` may be missing.
//! One round either adds new pods or removes old ones.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use serde_json::json;

use super::action::{self, ControllerAction, ControllerOwner, WritableKind, WriteVerb};
use super::{ReconcileOutcome, SimulatedController, object_queries};
use crate::seed;
use crate::world::cache::{CacheChange, ControllerCache, ObjectKey};

/// The label that tells the pods of different templates apart.
const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

#[derive(Debug)]
pub struct DeploymentController;

impl SimulatedController for DeploymentController {
    fn name(&self) -> &'static str {
        "deployment"
    }

    fn enqueue_keys(
        &mut self,
        _: &ControllerCache,
        change: &CacheChange,
        _: Timestamp,
        keys: &mut BTreeSet<ObjectKey>,
    ) {
        match change {
            CacheChange::Deployment(shift) => {
                keys.extend(
                    shift
                        .known_states()
                        .map(|deployment| ObjectKey::of_metadata(&deployment.metadata)),
                );
            }
            CacheChange::ReplicaSet(shift) => keys.extend(shift.known_states().filter_map(|set| {
                let owner = object_queries::controller_owner(&set.metadata)?;
                Some(ObjectKey::new(
                    set.namespace().unwrap_or_default(),
                    &owner.name,
                ))
            })),
            CacheChange::Pod(_)
            | CacheChange::Node(_)
            | CacheChange::DaemonSet(_)
            | CacheChange::Budget(_)
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
        _: Timestamp,
    ) -> ReconcileOutcome {
        let deployment = cache.deployments.get(key);
        let Some(deployment) = deployment.filter(|one| one.metadata.deletion_timestamp.is_none())
        else {
            return ReconcileOutcome::default();
        };
        let uid = deployment.uid().unwrap_or_default();
        let sets: Vec<&ReplicaSet> = cache
            .replica_sets
            .in_namespace(&key.namespace)
            .map(|set| &**set)
            .filter(|set| {
                object_queries::controller_owner(&set.metadata)
                    .is_some_and(|owner| owner.uid == uid)
            })
            .collect();
        let mut actions = reconcile_replica_sets(deployment, &uid, &sets);
        actions.extend(update_status(deployment, &sets));
        ReconcileOutcome::with_actions(actions)
    }
}

fn reconcile_replica_sets(
    deployment: &Deployment,
    uid: &str,
    sets: &[&ReplicaSet],
) -> Vec<ControllerAction> {
    let spec = deployment.spec.clone().unwrap_or_default();
    let replicas = spec.replicas.unwrap_or(1);
    let current = current_set_name(deployment);
    let (new, old): (Vec<&ReplicaSet>, Vec<&ReplicaSet>) =
        sets.iter().partition(|set| set.name_any() == current.name);
    if spec.paused == Some(true) {
        return scale_paused(sets, replicas);
    }
    let rollout = RolloutNumbers::of_sets(deployment, &new, &old);
    let wanted = rollout.wanted_new_replicas();
    match new.first() {
        None if wanted == 0 && old.iter().any(|set| wanted_pods(set) > 0) => {}
        None => {
            return vec![create_replica_set(deployment, uid, &current, wanted)];
        }
        Some(set) if wanted_pods(set) != wanted => return scale_set(set, wanted),
        Some(_) => {}
    }
    rollout.scale_down_old(&old)
}

/// The set of the present template.
struct CurrentSet {
    name: String,
    hash: String,
}

fn current_set_name(deployment: &Deployment) -> CurrentSet {
    let template = deployment.spec.as_ref().map(|spec| json!(spec.template));
    let hash = seed::short_hash(template.unwrap_or_default().to_string().as_bytes());
    CurrentSet {
        name: format!("{}-{hash}", deployment.name_any()),
        hash,
    }
}

/// The numbers of a rollout, as the real controller computes them.
struct RolloutNumbers {
    recreates: bool,
    replicas: i32,
    max_surge: i32,
    max_unavailable: i32,
    new: i32,
    new_ready: i32,
    old: i32,
    old_pods: i32,
}

impl RolloutNumbers {
    fn of_sets(deployment: &Deployment, new: &[&ReplicaSet], old: &[&ReplicaSet]) -> Self {
        let spec = deployment.spec.clone().unwrap_or_default();
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let max_surge = share_of(rolling.max_surge.as_ref(), replicas, true);
        let max_unavailable = share_of(rolling.max_unavailable.as_ref(), replicas, false);
        // The real controller lets one be missing when both are 0.
        let stalled = max_surge == 0 && max_unavailable == 0;
        Self {
            recreates: strategy.type_.as_deref() == Some("Recreate"),
            replicas,
            max_surge,
            max_unavailable: max_unavailable.max(i32::from(stalled)),
            new: new.iter().map(|set| wanted_pods(set)).sum(),
            new_ready: new.iter().map(|set| ready_pods(set)).sum(),
            old: old.iter().map(|set| wanted_pods(set)).sum(),
            old_pods: old.iter().map(|set| live_pods(set)).sum(),
        }
    }

    fn wanted_new_replicas(&self) -> i32 {
        if self.old == 0 && !(self.recreates && self.old_pods > 0) {
            return self.replicas;
        }
        if self.recreates {
            return self.new;
        }
        let room = self.replicas + self.max_surge - self.old - self.new;
        self.new + room.clamp(0, (self.replicas - self.new).max(0))
    }

    /// First the old pods that are not ready, then as many ready ones as may be missing.
    fn scale_down_old(&self, old: &[&ReplicaSet]) -> Vec<ControllerAction> {
        if self.recreates {
            return old.iter().flat_map(|set| scale_set(set, 0)).collect();
        }
        let least = self.replicas - self.max_unavailable;
        let unready_new = self.new - self.new_ready;
        let mut spare = self.old + self.new - least - unready_new;
        let old_ready: i32 = old.iter().map(|set| ready_pods(set)).sum();
        let mut spare_ready = old_ready + self.new_ready - least;
        let mut actions = Vec::new();
        for set in old {
            let ready = ready_pods(set).min(wanted_pods(set));
            let unready = (wanted_pods(set) - ready).min(spare).max(0);
            let going = ready.min(spare_ready).min(spare - unready).max(0);
            spare -= unready + going;
            spare_ready -= going;
            actions.extend(scale_set(set, wanted_pods(set) - unready - going));
        }
        actions
    }
}

fn share_of(share: Option<&IntOrString>, replicas: i32, round_up: bool) -> i32 {
    let percent = match share {
        Some(IntOrString::Int(number)) => return *number,
        Some(IntOrString::String(text)) => text.trim_end_matches('%').parse().unwrap_or(25),
        None => 25,
    };
    let rounding = if round_up { 99 } else { 0 };
    (replicas * percent + rounding) / 100
}

fn wanted_pods(set: &ReplicaSet) -> i32 {
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas);
    wanted.unwrap_or(1)
}

fn ready_pods(set: &ReplicaSet) -> i32 {
    let status = set.status.as_ref();
    status
        .and_then(|status| status.available_replicas)
        .unwrap_or_default()
}

fn live_pods(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// A paused Deployment is scaled and not rolled out.
fn scale_paused(sets: &[&ReplicaSet], replicas: i32) -> Vec<ControllerAction> {
    let active: Vec<_> = sets.iter().filter(|set| wanted_pods(set) > 0).collect();
    match active[..] {
        [one] => scale_set(one, replicas),
        _ => Vec::new(),
    }
}

fn scale_set(set: &ReplicaSet, wanted: i32) -> Vec<ControllerAction> {
    if wanted_pods(set) == wanted {
        return Vec::new();
    }
    let patch = json!({ "spec": { "replicas": wanted } });
    vec![ControllerAction::new(
        WritableKind::ReplicaSet,
        ObjectKey::of_metadata(&set.metadata),
        WriteVerb::Patch(patch),
    )]
}

fn create_replica_set(
    deployment: &Deployment,
    uid: &str,
    current: &CurrentSet,
    replicas: i32,
) -> ControllerAction {
    let CurrentSet { name, hash } = current;
    let namespace = deployment.namespace().unwrap_or_default();
    let owner_name = deployment.name_any();
    let owner = ControllerOwner {
        kind: "Deployment",
        name: &owner_name,
        uid,
    };
    let spec = deployment.spec.clone().unwrap_or_default();
    let mut template = json!(spec.template);
    template["metadata"]["labels"][TEMPLATE_HASH_LABEL] = json!(hash);
    let mut selector = json!(spec.selector);
    selector["matchLabels"][TEMPLATE_HASH_LABEL] = json!(hash);
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner.owner_reference()],
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    });
    ControllerAction::new(
        WritableKind::ReplicaSet,
        ObjectKey::new(namespace, name.as_str()),
        WriteVerb::Create(set),
    )
}

fn update_status(deployment: &Deployment, sets: &[&ReplicaSet]) -> Option<ControllerAction> {
    let replicas: i32 = sets
        .iter()
        .filter_map(|set| Some(set.status.as_ref()?.replicas))
        .sum();
    let ready: i32 = sets
        .iter()
        .filter_map(|set| set.status.as_ref()?.ready_replicas)
        .sum();
    let current = current_set_name(deployment).name;
    let updated = sets.iter().find(|set| set.name_any() == current);
    let wanted = json!({
        "replicas": replicas,
        "updatedReplicas": updated.map_or(0, |set| live_pods(set)),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": (replicas - ready).max(0),
        "observedGeneration": deployment.metadata.generation.unwrap_or(0),
    });
    action::patch_status_if_changed(
        WritableKind::Deployment,
        &deployment.metadata,
        &deployment.status,
        &wanted,
    )
}

#[cfg(test)]
#[path = "deployment_tests.rs"]
mod tests;
