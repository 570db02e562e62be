//! Reads the Deployment of a pod's ReplicaSet, and restarts it by rollout.

use dogwatch_core::drain::{
    DeploymentLookup, DeploymentRestart, ObservedDeployment, ReplicaSetRef, ReplicaShare,
    RestartAnswer, RolloutStrategy,
};
use dogwatch_core::name::is_dns_name;
use dogwatch_core::rollout::RESTARTED_AT_ANNOTATION;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, Patch};
use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::answer::is_not_found_of;
use crate::error::with_timeout;
use crate::field_manager::patch_params_for;
use crate::{ApiErrorKind, Error};

const FIELD_MANAGER: &str = "dogwatch-drain";
/// The label that the Deployment controller adds to the template of a ReplicaSet.
const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

/// Two reads: the ReplicaSet, then the Deployment that controls it.
pub(crate) async fn look_up_deployment(client: &Client, set: &ReplicaSetRef) -> DeploymentLookup {
    let found = read_deployment(client, set).await;
    found.unwrap_or_else(|lookup| lookup)
}

async fn read_deployment(
    client: &Client,
    set: &ReplicaSetRef,
) -> Result<DeploymentLookup, DeploymentLookup> {
    let none = |why: String| DeploymentLookup::None { why };
    let gone = || none(format!("ReplicaSet {} is gone", set.name));
    let replica_set = get_object(
        client,
        &ApiResource::erase::<ReplicaSet>(&()),
        set,
        &set.name,
    )
    .await?
    .filter(|object| object.uid().as_deref() == Some(&set.uid))
    .ok_or_else(gone)?;
    let Some(owner) = deployment_of(&replica_set) else {
        let why = "is controlled by no Deployment";
        return Ok(none(format!("ReplicaSet {} {why}", set.name)));
    };
    let kind = ApiResource::erase::<Deployment>(&());
    let deployment = get_object(client, &kind, set, &owner.name)
        .await?
        .filter(|object| object.uid().as_deref() == Some(&owner.uid))
        .ok_or_else(|| none(format!("Deployment {} is gone", owner.name)))?;
    let seen = observed_deployment(&deployment, &replica_set);
    Ok(DeploymentLookup::Found(Box::new(seen)))
}

/// `None`: it does not exist. Read as untyped JSON, so that the comparison of two templates sees
/// fields that this program does not know.
async fn get_object(
    client: &Client,
    kind: &ApiResource,
    set: &ReplicaSetRef,
    name: &str,
) -> Result<Option<DynamicObject>, DeploymentLookup> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &set.namespace, kind);
    match with_timeout(api.get(name)).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::Answer(status)) if is_not_found_of(name, &status) => Ok(None),
        Err(error) if error.is_denied() => Err(DeploymentLookup::Forbidden {
            why: error.error_chain(),
        }),
        Err(error) => Err(DeploymentLookup::Failed {
            why: error.error_chain(),
        }),
    }
}

/// The Deployment that controls a ReplicaSet. Its name becomes part of a request path.
fn deployment_of(set: &DynamicObject) -> Option<&OwnerReference> {
    let owners = set.owner_references().iter();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    owners.find(|owner| {
        owner.api_version == "apps/v1" && owner.kind == "Deployment" && is_dns_name(&owner.name)
    })
}

fn observed_deployment(deployment: &DynamicObject, set: &DynamicObject) -> ObservedDeployment {
    let spec = &deployment.data["spec"];
    ObservedDeployment {
        name: deployment.name_any(),
        uid: deployment.uid().unwrap_or_default(),
        resource_version: deployment.resource_version().unwrap_or_default(),
        deleting: deployment.metadata.deletion_timestamp.is_some(),
        paused: spec["paused"] == true,
        has_same_template: has_same_template(&spec["template"], &set.data["spec"]["template"]),
        replicas: spec["replicas"]
            .as_u64()
            .map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        strategy: parse_strategy(&spec["strategy"]),
        stuck: find_stuck_rollout(deployment),
    }
}

/// As the Deployment controller compares them: without the label that it adds.
fn has_same_template(of_deployment: &Value, of_set: &Value) -> bool {
    let without_hash = |template: &Value| {
        let mut template = template.clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove(TEMPLATE_HASH_LABEL);
        }
        template
    };
    without_hash(of_deployment) == without_hash(of_set)
}

/// The API server fills in what is absent: 25% of each.
fn parse_strategy(strategy: &Value) -> RolloutStrategy {
    if strategy["type"] == "Recreate" {
        return RolloutStrategy::Recreate;
    }
    let share = |field: &str| parse_share(&strategy["rollingUpdate"][field]);
    RolloutStrategy::RollingUpdate {
        max_surge: share("maxSurge"),
        max_unavailable: share("maxUnavailable"),
    }
}

fn parse_share(value: &Value) -> ReplicaShare {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    match (value.as_u64(), percent.and_then(|text| text.parse().ok())) {
        (Some(count), _) => ReplicaShare::Count(number(count)),
        (None, Some(percent)) => ReplicaShare::Percent(percent),
        (None, None) => ReplicaShare::Percent(25),
    }
}

/// A status of an older generation tells about an older rollout.
fn find_stuck_rollout(deployment: &DynamicObject) -> Option<String> {
    let status = &deployment.data["status"];
    if status["observedGeneration"].as_i64() < deployment.metadata.generation {
        return None;
    }
    let conditions = status["conditions"].as_array()?;
    let failed = conditions
        .iter()
        .find(|it| it["type"] == "Progressing" && it["status"] == "False")?;
    let text = |field: &str| failed[field].as_str().unwrap_or_default().to_owned();
    Some(format!("{}: {}", text("reason"), text("message")))
}

/// Restarts the Deployment as `kubectl rollout restart` does, on the version that was read.
pub(super) async fn restart_deployment(
    client: &Client,
    restart: &DeploymentRestart,
) -> RestartAnswer {
    let api: Api<Deployment> = Api::namespaced(client.clone(), &restart.replica_set.namespace);
    let annotations = json!({ RESTARTED_AT_ANNOTATION: restart.at.to_string() });
    let patch = Patch::Merge(json!({
        "metadata": { "uid": restart.uid, "resourceVersion": restart.resource_version },
        "spec": { "template": { "metadata": { "annotations": annotations } } },
    }));
    let params = patch_params_for(FIELD_MANAGER);
    match with_timeout(api.patch_metadata(&restart.deployment, &params, &patch)).await {
        Ok(_) => RestartAnswer::Restarted,
        Err(error) => {
            let why = error.error_chain();
            match error.kind() {
                ApiErrorKind::Forbidden if error.is_denied() => RestartAnswer::Refused { why },
                ApiErrorKind::Refused => RestartAnswer::Refused { why },
                ApiErrorKind::Forbidden
                | ApiErrorKind::NotFound
                | ApiErrorKind::AlreadyExists
                | ApiErrorKind::Conflict
                | ApiErrorKind::Gone
                | ApiErrorKind::Throttled { .. }
                | ApiErrorKind::Transient => RestartAnswer::ReadAgain { why },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn template(image: &str, hash: Option<&str>, at: Option<&str>) -> Value {
        let mut template = json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": image, "newField": 1 }] },
        });
        if let Some(hash) = hash {
            template["metadata"]["labels"][TEMPLATE_HASH_LABEL] = json!(hash);
        }
        if let Some(at) = at {
            template["metadata"]["annotations"] = json!({ RESTARTED_AT_ANNOTATION: at });
        }
        template
    }

    #[test]
    fn a_template_is_compared_without_the_hash_and_with_everything_else() {
        let set = template("web:1", Some("abc"), None);
        for (deployment, same) in [
            (template("web:1", None, None), true),
            (template("web:2", None, None), false),
            (template("web:1", None, Some("2026-01-01T00:00:00Z")), false),
        ] {
            assert_eq!(has_same_template(&deployment, &set), same, "{deployment}");
        }
        let mut newer = template("web:1", None, None);
        newer["spec"]["containers"][0]["newField"] = json!(2);
        assert!(!has_same_template(&newer, &set));
    }

    #[test]
    fn everything_that_decides_about_a_restart_is_read_from_the_deployment() {
        let set = object(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web-abc" },
            "spec": { "template": template("web:1", Some("abc"), None) },
        }));
        let mut deployment = object(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "uid": "u", "resourceVersion": "9", "generation": 3,
                "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": {
                "replicas": 2, "paused": true, "template": template("web:1", None, None),
                "strategy": { "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": "30%", "maxUnavailable": 1 } },
            },
            "status": { "observedGeneration": 3, "conditions": [
                { "type": "Available", "status": "False", "reason": "R", "message": "m" },
                { "type": "Progressing", "status": "False",
                    "reason": "ProgressDeadlineExceeded", "message": "has timed out" },
            ] },
        }));
        let expected = ObservedDeployment {
            name: "web".into(),
            uid: "u".into(),
            resource_version: "9".into(),
            deleting: true,
            paused: true,
            has_same_template: true,
            replicas: 2,
            strategy: RolloutStrategy::RollingUpdate {
                max_surge: ReplicaShare::Percent(30),
                max_unavailable: ReplicaShare::Count(1),
            },
            stuck: Some("ProgressDeadlineExceeded: has timed out".into()),
        };
        assert_eq!(observed_deployment(&deployment, &set), expected);
        deployment.metadata.generation = Some(4);
        assert_eq!(observed_deployment(&deployment, &set).stuck, None);
        deployment.data["spec"]["strategy"] = json!({ "type": "Recreate" });
        let strategy = observed_deployment(&deployment, &set).strategy;
        assert_eq!(strategy, RolloutStrategy::Recreate);
    }

    #[test]
    fn only_a_deployment_of_the_apps_group_is_restarted() {
        let owned_by = |api: &str, kind: &str, name: &str| {
            let owner = json!({ "apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": true });
            object(json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": { "name": "s", "ownerReferences": [owner] } }))
        };
        assert!(deployment_of(&owned_by("apps/v1", "Deployment", "web")).is_some());
        for (api, kind, name) in [
            ("argoproj.io/v1alpha1", "Rollout", "web"),
            ("example.com/v1", "Deployment", "web"),
            ("apps/v1", "Deployment", "../secrets/x"),
        ] {
            assert_eq!(
                deployment_of(&owned_by(api, kind, name)),
                None,
                "{kind} {name}"
            );
        }
    }
}
