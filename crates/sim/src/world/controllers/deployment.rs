//! Deployments: one ReplicaSet for the present template, none for older ones.
//!
//! There is no rolling update: a new template replaces all pods at once. Nothing here needs more.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::{self, Action, Kind, Owner, Verb};
use super::{Controller, Verdict, words};
use crate::seed;
use crate::world::cache::{Cache, Change, Key};

/// The label that tells the pods of one template from those of another.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// The controller.
#[derive(Debug)]
pub struct Deployments;

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment"
    }

    fn touched(&mut self, _: &Cache, change: &Change, _: Timestamp, keys: &mut BTreeSet<Key>) {
        match change {
            Change::Deployment(shift) => {
                keys.extend(
                    shift
                        .states()
                        .map(|deployment| Key::of(&deployment.metadata)),
                );
            }
            Change::ReplicaSet(shift) => keys.extend(shift.states().filter_map(|set| {
                let owner = words::controller(&set.metadata)?;
                Some(Key::new(set.namespace().unwrap_or_default(), &owner.name))
            })),
            Change::Pod(_)
            | Change::Node(_)
            | Change::DaemonSet(_)
            | Change::Budget(_)
            | Change::Attachment(_)
            | Change::Claim(_)
            | Change::NodeLease(_)
            | Change::Power { .. } => {}
        }
    }

    fn reconcile(&mut self, cache: &Cache, key: &Key, _: Timestamp) -> Verdict {
        let deployment = cache.deployments.get(key);
        let Some(deployment) = deployment.filter(|one| one.metadata.deletion_timestamp.is_none())
        else {
            return Verdict::default();
        };
        let uid = deployment.uid().unwrap_or_default();
        let sets: Vec<&ReplicaSet> = cache
            .replica_sets
            .in_namespace(&key.namespace)
            .map(|set| &**set)
            .filter(|set| words::controller(&set.metadata).is_some_and(|owner| owner.uid == uid))
            .collect();
        let mut actions = replica_sets(deployment, &uid, &sets);
        actions.extend(status(deployment, &sets));
        Verdict::act(actions)
    }
}

fn replica_sets(deployment: &Deployment, uid: &str, sets: &[&ReplicaSet]) -> Vec<Action> {
    let spec = deployment.spec.clone().unwrap_or_default();
    let replicas = spec.replicas.unwrap_or(1);
    let template = json!(spec.template);
    let hash = seed::short_hash(template.to_string().as_bytes());
    let current = format!("{}-{hash}", deployment.name_any());
    let mut actions = Vec::new();
    if !sets.iter().any(|set| set.name_any() == current) {
        actions.push(create(deployment, uid, &hash, &current, template));
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
            actions.push(Action::new(
                Kind::ReplicaSet,
                Key::of(&set.metadata),
                Verb::Patch(patch),
            ));
        }
    }
    actions
}

fn create(
    deployment: &Deployment,
    uid: &str,
    hash: &str,
    name: &str,
    mut template: Value,
) -> Action {
    let namespace = deployment.namespace().unwrap_or_default();
    let owner_name = deployment.name_any();
    let owner = Owner {
        kind: "Deployment",
        name: &owner_name,
        uid,
    };
    template["metadata"]["labels"][TEMPLATE_HASH] = json!(hash);
    let spec = deployment.spec.clone().unwrap_or_default();
    let mut selector = json!(spec.selector);
    selector["matchLabels"][TEMPLATE_HASH] = json!(hash);
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner.reference()],
        },
        "spec": { "replicas": spec.replicas.unwrap_or(1), "selector": selector, "template": template },
    });
    Action::new(
        Kind::ReplicaSet,
        Key::new(namespace, name),
        Verb::Create(set),
    )
}

fn status(deployment: &Deployment, sets: &[&ReplicaSet]) -> Option<Action> {
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
    action::status(
        Kind::Deployment,
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
        let mut cache = Cache::default();
        let deployment = json!({ "metadata": { "name": "web", "namespace": "n", "uid": "d", "resourceVersion": "1" },
            "spec": { "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } } } });
        cache.seen::<Deployment>(serde_json::from_value(deployment).unwrap());
        let old = json!({ "metadata": { "name": "web-old", "namespace": "n", "uid": "o", "resourceVersion": "1",
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true }] },
            "spec": { "replicas": 3, "selector": {} } });
        cache.seen::<ReplicaSet>(serde_json::from_value(old).unwrap());
        let key = Key::new("n", "web");
        let actions = Deployments
            .reconcile(&cache, &key, Timestamp::UNIX_EPOCH)
            .actions;
        let Verb::Create(set) = &actions[0].verb else {
            panic!("a set is made: {actions:?}")
        };
        assert_eq!(set["spec"]["replicas"], 3);
        assert!(set["spec"]["template"]["metadata"]["labels"][TEMPLATE_HASH].is_string());
        assert_eq!(
            actions[1].verb,
            Verb::Patch(json!({ "spec": { "replicas": 0 } }))
        );

        let mut made = set.clone();
        made["metadata"]["uid"] = json!("s");
        made["metadata"]["resourceVersion"] = json!("2");
        cache.seen::<ReplicaSet>(serde_json::from_value(made).unwrap());
        let actions = Deployments
            .reconcile(&cache, &key, Timestamp::UNIX_EPOCH)
            .actions;
        assert!(
            !actions
                .iter()
                .any(|action| matches!(action.verb, Verb::Create(_)))
        );
    }
}
