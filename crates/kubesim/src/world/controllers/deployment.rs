//! Deployments: one ReplicaSet for the current template, none for older ones.
//!
//! There is no rolling update: a new template replaces all pods at once. No test needs more.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt as _;
use serde_json::{Value, json};

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
    let template = json!(spec.template);
    let hash = seed::short_hash(template.to_string().as_bytes());
    let current = format!("{}-{hash}", deployment.name_any());
    let mut actions = Vec::new();
    if !sets.iter().any(|set| set.name_any() == current) {
        actions.push(create_replica_set(
            deployment, uid, &hash, &current, template,
        ));
    }
    for set in sets {
        let wanted = if set.name_any() == current {
            replicas
        } else {
            0
        };
        let has = set
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        if has != wanted {
            let patch = json!({ "spec": { "replicas": wanted } });
            actions.push(ControllerAction::new(
                WritableKind::ReplicaSet,
                ObjectKey::of_metadata(&set.metadata),
                WriteVerb::Patch(patch),
            ));
        }
    }
    actions
}

fn create_replica_set(
    deployment: &Deployment,
    uid: &str,
    hash: &str,
    name: &str,
    mut template: Value,
) -> ControllerAction {
    let namespace = deployment.namespace().unwrap_or_default();
    let owner_name = deployment.name_any();
    let owner = ControllerOwner {
        kind: "Deployment",
        name: &owner_name,
        uid,
    };
    template["metadata"]["labels"][TEMPLATE_HASH_LABEL] = json!(hash);
    let spec = deployment.spec.clone().unwrap_or_default();
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
        "spec": { "replicas": spec.replicas.unwrap_or(1), "selector": selector, "template": template },
    });
    ControllerAction::new(
        WritableKind::ReplicaSet,
        ObjectKey::new(namespace, name),
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
    let wanted = json!({
        "replicas": replicas,
        "updatedReplicas": replicas,
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
mod tests {
    use super::*;

    #[test]
    fn a_deployment_has_one_set_for_its_template_and_empties_the_others() {
        let mut cache = ControllerCache::default();
        let deployment = json!({ "metadata": { "name": "web", "namespace": "n", "uid": "d", "resourceVersion": "1" },
            "spec": { "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } } } });
        cache.observe_object::<Deployment>(serde_json::from_value(deployment).unwrap());
        let old = json!({ "metadata": { "name": "web-old", "namespace": "n", "uid": "o", "resourceVersion": "1",
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true }] },
            "spec": { "replicas": 3, "selector": {} } });
        cache.observe_object::<ReplicaSet>(serde_json::from_value(old).unwrap());
        let key = ObjectKey::new("n", "web");
        let actions = DeploymentController
            .reconcile(&cache, &key, Timestamp::UNIX_EPOCH)
            .actions;
        let WriteVerb::Create(set) = &actions[0].verb else {
            panic!("a set is made: {actions:?}")
        };
        assert_eq!(set["spec"]["replicas"], 3);
        assert!(set["spec"]["template"]["metadata"]["labels"][TEMPLATE_HASH_LABEL].is_string());
        assert_eq!(
            actions[1].verb,
            WriteVerb::Patch(json!({ "spec": { "replicas": 0 } }))
        );

        let mut made = set.clone();
        made["metadata"]["uid"] = json!("s");
        made["metadata"]["resourceVersion"] = json!("2");
        cache.observe_object::<ReplicaSet>(serde_json::from_value(made).unwrap());
        let actions = DeploymentController
            .reconcile(&cache, &key, Timestamp::UNIX_EPOCH)
            .actions;
        assert!(
            !actions
                .iter()
                .any(|action| matches!(action.verb, WriteVerb::Create(_)))
        );
    }
}
