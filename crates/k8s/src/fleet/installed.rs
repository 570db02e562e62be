//! Reads which parts of Dogwatch are installed on a cluster, so that an update keeps them.

use std::collections::BTreeMap;

use dogwatch_api::bare_metal_host;
use dogwatch_core::drain::PodMark;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{
    Container as ContainerObject, Namespace, PodSpec, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use super::FleetClient;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::markers::MEDIK8S_LEASE_NAMESPACE;
use crate::policy;
use crate::remediation::{CLUSTER_API_MACHINE, MACHINE_DRAIN_RULE};

/// All objects of Dogwatch's manifests have this label.
const PART_OF_SELECTOR: &str = "app.kubernetes.io/part-of=dogwatch";
const PROGRAM_LABEL: &str = "app.kubernetes.io/name";

/// The installed parts of Dogwatch, and the other software it can work with.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the cluster"
)]
pub struct ClusterInstallation {
    /// Major and minor version of the API server; `None`: it reports none.
    pub kubernetes: Option<(u32, u32)>,
    /// Dogwatch's DaemonSets and Deployments in all namespaces.
    pub workloads: Vec<DogwatchWorkload>,
    /// The bindings of Dogwatch's admission policies by name, and whether each one denies.
    pub bindings: BTreeMap<String, bool>,
    /// A policy lets Dogwatch delete the pods that a drain has left at its deadline.
    pub deletes_pods: bool,
    /// A policy lets Dogwatch restart Deployments before their pods are drained.
    pub rolls_first: bool,
    /// A policy honours MachineDrainRules, and the cluster serves that kind.
    pub honors_machine_rules: bool,
    pub has_hosts: bool,
    pub has_cluster_api: bool,
    /// medik8s' namespace of Leases exists.
    pub has_medik8s: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DogwatchWorkload {
    pub namespace: String,
    pub name: String,
    /// The program, by its label: the workload's name in Dogwatch's own manifests.
    pub program: String,
    /// The ServiceAccount of its pods.
    pub account: String,
    /// Its first container requests no privileges.
    pub unprivileged: bool,
    pub volumes: Vec<String>,
    /// What its pods require of a node, one text for each requirement: `pool=workers`.
    pub node_requirements: Vec<String>,
    pub pull_secrets: Vec<String>,
    pub containers: Vec<WorkloadContainer>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkloadContainer {
    pub name: String,
    pub image: String,
    pub args: Vec<String>,
    /// Each environment variable as in the object.
    pub env: Vec<Value>,
}

impl FleetClient {
    /// # Errors
    /// When one of the reads fails.
    pub async fn read_installation(&self) -> Result<ClusterInstallation, Error> {
        let client = &self.client;
        let api = bare_metal_host::API_VERSION;
        let policies = none_if_absent(policy::list_policy_objects(client).await)?;
        let drains = policies.into_iter().flatten();
        let drains: Vec<Value> = drains.map(|mut it| it.spec["drain"].take()).collect();
        Ok(ClusterInstallation {
            kubernetes: read_server_version(client).await?,
            workloads: self.list_workloads().await?,
            bindings: self.list_policy_bindings().await?,
            deletes_pods: drains
                .iter()
                .any(|drain| drain["onTimeout"] == "delete" || has_rule(drain, "Delete")),
            rolls_first: drains.iter().any(|drain| has_rule(drain, "RollFirst")),
            honors_machine_rules: drains.iter().any(honors_cluster_api)
                && MACHINE_DRAIN_RULE
                    .find_served_version(client)
                    .await?
                    .is_some(),
            has_hosts: is_served(client, api, bare_metal_host::PLURAL).await?,
            has_cluster_api: CLUSTER_API_MACHINE
                .find_served_version(client)
                .await?
                .is_some(),
            has_medik8s: has_namespace(client, MEDIK8S_LEASE_NAMESPACE).await?,
        })
    }

    /// Dogwatch's DaemonSets and Deployments in all namespaces.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn list_workloads(&self) -> Result<Vec<DogwatchWorkload>, Error> {
        let ours = ListParams::default().labels(PART_OF_SELECTOR);
        let sets: Api<DaemonSet> = Api::all(self.client.clone());
        let sets = none_if_absent(with_timeout(sets.list(&ours)).await)?;
        let sets = sets.into_iter().flat_map(|list| list.items);
        let sets =
            sets.map(|set| convert_workload(set.metadata, set.spec.map(|spec| spec.template)));
        let deployments: Api<Deployment> = Api::all(self.client.clone());
        let deployments = none_if_absent(with_timeout(deployments.list(&ours)).await)?;
        let deployments = deployments.into_iter().flat_map(|list| list.items);
        let deployments =
            deployments.map(|it| convert_workload(it.metadata, it.spec.map(|spec| spec.template)));
        Ok(sets.chain(deployments).collect())
    }

    /// The bindings of Dogwatch's admission policies by name, and whether each one denies.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn list_policy_bindings(&self) -> Result<BTreeMap<String, bool>, Error> {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        let ours = ListParams::default().labels(PART_OF_SELECTOR);
        let bindings = none_if_absent(with_timeout(bindings.list(&ours)).await)?;
        let bindings = bindings.into_iter().flat_map(|list| list.items);
        Ok(bindings
            .map(|binding| {
                let refuses = binding
                    .spec
                    .validation_actions
                    .iter()
                    .any(|it| it == "Deny");
                (binding.metadata.name.unwrap_or_default(), refuses)
            })
            .collect())
    }
}

async fn read_server_version(client: &Client) -> Result<Option<(u32, u32)>, Error> {
    let version = none_if_absent(with_timeout(client.apiserver_version()).await)?;
    Ok(version.and_then(|info| {
        Some((
            parse_version_number(&info.major)?,
            parse_version_number(&info.minor)?,
        ))
    }))
}

/// Some vendors write `32+`.
fn parse_version_number(text: &str) -> Option<u32> {
    let end = text.find(|it: char| !it.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}

async fn is_served(client: &Client, version: &str, plural: &str) -> Result<bool, Error> {
    let kinds = none_if_absent(with_timeout(client.list_api_group_resources(version)).await)?;
    Ok(kinds.is_some_and(|kinds| kinds.resources.iter().any(|it| it.name == plural)))
}

fn has_rule(drain: &Value, action: &str) -> bool {
    let mut rules = drain["rules"].as_array().into_iter().flatten();
    rules.any(|rule| rule["do"] == action)
}

fn honors_cluster_api(drain: &Value) -> bool {
    let mut marks = drain["honor"].as_array().into_iter().flatten();
    marks.any(|mark| mark == PodMark::ClusterApiDrain.mark_key())
}

async fn has_namespace(client: &Client, name: &str) -> Result<bool, Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    Ok(with_timeout(namespaces.get_metadata_opt(name))
        .await?
        .is_some())
}

/// A kind that the API server does not serve counts as absent.
fn none_if_absent<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn convert_workload(metadata: ObjectMeta, template: Option<PodTemplateSpec>) -> DogwatchWorkload {
    let labels = metadata.labels.unwrap_or_default();
    let pod = template
        .and_then(|template| template.spec)
        .unwrap_or_default();
    let security = pod.containers.first();
    let security = security.and_then(|container| container.security_context.as_ref());
    let node_requirements = list_node_requirements(&pod);
    let volumes = pod.volumes.unwrap_or_default().into_iter();
    let pull_secrets = pod.image_pull_secrets.unwrap_or_default().into_iter();
    DogwatchWorkload {
        node_requirements,
        pull_secrets: pull_secrets.map(|secret| secret.name).collect(),
        unprivileged: security.and_then(|it| it.privileged) != Some(true),
        volumes: volumes.map(|volume| volume.name).collect(),
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        program: labels.get(PROGRAM_LABEL).cloned().unwrap_or_default(),
        account: pod.service_account_name.unwrap_or_default(),
        containers: pod.containers.into_iter().map(convert_container).collect(),
    }
}

fn list_node_requirements(pod: &PodSpec) -> Vec<String> {
    let selector = pod.node_selector.iter().flatten();
    let labels = selector.map(|(key, value)| format!("{key}={value}"));
    let affinity = pod.affinity.as_ref();
    let affinity = affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|nodes| {
            nodes
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    let affinity = affinity.map(|_| "a required nodeAffinity".to_owned());
    labels.chain(affinity).collect()
}

fn convert_container(container: ContainerObject) -> WorkloadContainer {
    let env = container.env.unwrap_or_default().into_iter();
    WorkloadContainer {
        name: container.name,
        image: container.image.unwrap_or_default(),
        args: container.args.unwrap_or_default(),
        env: env
            .filter_map(|variable| serde_json::to_value(variable).ok())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_workload_requires_of_its_nodes_is_read() {
        let read = |pod: Value| {
            let template = serde_json::from_value(json!({ "spec": pod })).unwrap();
            convert_workload(ObjectMeta::default(), Some(template))
        };
        let preferred = json!({ "containers": [], "affinity": { "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 1, "preference": { "matchExpressions": [{ "key": "a", "operator": "Exists" }] } }] } } });
        let free = read(preferred);
        assert_eq!(
            (free.node_requirements.len(), free.pull_secrets.len()),
            (0, 0)
        );
        let bound = read(
            json!({ "containers": [], "nodeSelector": { "pool": "workers" },
            "imagePullSecrets": [{ "name": "mine" }],
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "a", "operator": "Exists" }] }] } } } }),
        );
        assert_eq!(
            bound.node_requirements,
            ["pool=workers", "a required nodeAffinity"]
        );
        assert_eq!(bound.pull_secrets, ["mine"]);
    }

    #[test]
    fn a_version_is_read_as_vendors_write_it() {
        for (text, meant) in [("32", Some(32)), ("29+", Some(29)), ("", None), ("x", None)] {
            assert_eq!(parse_version_number(text), meant, "{text}");
        }
    }
}
