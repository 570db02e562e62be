//! Rounds of the Deployment controller.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::*;

fn cache_of(deployment: &Value) -> ControllerCache {
    let mut cache = ControllerCache::default();
    let mut whole = json!({ "metadata": { "name": "web", "namespace": "n", "uid": "d", "resourceVersion": "1" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [] } } } });
    let spec = whole["spec"].as_object_mut().unwrap();
    spec.extend(deployment.as_object().unwrap().clone());
    cache.observe_object::<Deployment>(serde_json::from_value(whole).unwrap());
    cache
}

/// A set of the Deployment: how many pods it wants, and how many are ready.
fn add_set(cache: &mut ControllerCache, name: &str, wanted: i32, ready: i32) {
    static VERSION: AtomicU32 = AtomicU32::new(2);
    let version = VERSION.fetch_add(1, Ordering::Relaxed).to_string();
    let set = json!({ "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": version,
        "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true }] },
        "spec": { "replicas": wanted, "selector": {} },
        "status": { "replicas": wanted, "readyReplicas": ready, "availableReplicas": ready } });
    cache.observe_object::<ReplicaSet>(serde_json::from_value(set).unwrap());
}

fn current_name(cache: &ControllerCache) -> String {
    let deployment = cache.deployments.get(&ObjectKey::new("n", "web")).unwrap();
    current_set_name(deployment).name
}

/// What one round does: `+3` is a set that is made, `old=2` one that is scaled.
fn round(cache: &ControllerCache) -> Vec<String> {
    let key = ObjectKey::new("n", "web");
    let current = current_name(cache);
    let verdict = DeploymentController.reconcile(cache, &key, Timestamp::UNIX_EPOCH);
    let said = verdict
        .actions
        .into_iter()
        .filter_map(|action| match action.verb {
            WriteVerb::Create(set) => Some(format!("+{}", set["spec"]["replicas"])),
            WriteVerb::Patch(patch) => {
                let name = if action.key.name == current {
                    "new"
                } else {
                    "old"
                };
                Some(format!("{name}={}", patch["spec"]["replicas"]))
            }
            WriteVerb::PatchStatus(_)
            | WriteVerb::PatchConditions(_)
            | WriteVerb::Delete { .. }
            | WriteVerb::Bind { .. } => None,
        });
    said.collect()
}

#[test]
fn a_deployment_has_one_set_for_its_template() {
    let mut cache = cache_of(&json!({ "replicas": 3 }));
    assert_eq!(round(&cache), ["+3"]);
    let name = current_name(&cache);
    add_set(&mut cache, &name, 3, 0);
    assert_eq!(round(&cache), [""; 0]);
}

#[test]
fn a_rollout_keeps_the_only_pod_until_the_new_one_is_ready() {
    let mut cache = cache_of(&json!({ "replicas": 1 }));
    add_set(&mut cache, "web-old", 1, 1);
    assert_eq!(round(&cache), ["+1"]);
    let name = current_name(&cache);
    add_set(&mut cache, &name, 1, 0);
    assert_eq!(round(&cache), [""; 0]);
    add_set(&mut cache, &name, 1, 1);
    assert_eq!(round(&cache), ["old=0"]);
}

#[test]
fn a_rollout_of_four_pods_adds_one_and_misses_one_at_a_time() {
    let mut cache = cache_of(&json!({ "replicas": 4 }));
    add_set(&mut cache, "web-old", 4, 4);
    assert_eq!(round(&cache), ["+1"]);
    let name = current_name(&cache);
    add_set(&mut cache, &name, 1, 0);
    assert_eq!(round(&cache), ["old=3"]);
    add_set(&mut cache, "web-old", 3, 3);
    assert_eq!(round(&cache), ["new=2"]);
    add_set(&mut cache, &name, 2, 2);
    assert_eq!(round(&cache), ["old=1"]);
}

#[test]
fn old_pods_that_are_not_ready_go_first() {
    let mut cache = cache_of(&json!({ "replicas": 1 }));
    add_set(&mut cache, "web-old", 1, 0);
    let name = current_name(&cache);
    add_set(&mut cache, &name, 1, 0);
    assert_eq!(round(&cache), [""; 0]);
    add_set(&mut cache, &name, 1, 1);
    assert_eq!(round(&cache), ["old=0"]);
}

#[test]
fn recreate_removes_the_old_pods_before_it_makes_new_ones() {
    let mut cache = cache_of(&json!({ "replicas": 2, "strategy": { "type": "Recreate" } }));
    add_set(&mut cache, "web-old", 2, 2);
    assert_eq!(round(&cache), ["old=0"]);
    add_set(&mut cache, "web-old", 0, 0);
    assert_eq!(round(&cache), ["+2"]);
}

#[test]
fn a_paused_deployment_is_scaled_and_not_rolled_out() {
    let mut cache = cache_of(&json!({ "replicas": 2, "paused": true }));
    add_set(&mut cache, "web-old", 1, 1);
    assert_eq!(round(&cache), ["old=2"]);
    add_set(&mut cache, "web-old", 2, 2);
    assert_eq!(round(&cache), [""; 0]);
}
