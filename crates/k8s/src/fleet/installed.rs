//! What of Dogwatch is installed on a cluster, so that an update keeps it.

use std::collections::BTreeMap;

use dogwatch_api::bare_metal_host;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Container as ContainerObject, Namespace, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use super::FleetClient;
use crate::error::{Error, Kind, ask};
use crate::handshake::LEASE_NAMESPACE;
use crate::policy;
use crate::remedy::CLUSTER_API;

/// What all objects of Dogwatch's manifests carry.
const OURS: &str = "app.kubernetes.io/part-of=dogwatch";
const PROGRAM: &str = "app.kubernetes.io/name";

/// What of Dogwatch is installed, and what else is there that it can work with.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the cluster"
)]
pub struct Installed {
    /// Major and minor version of the API server; `None`: it names none.
    pub kubernetes: Option<(u32, u32)>,
    /// Dogwatch's DaemonSets and Deployments, in all namespaces.
    pub workloads: Vec<Workload>,
    /// The bindings of Dogwatch's admission policies, by name, and whether each refuses.
    pub bindings: BTreeMap<String, bool>,
    /// A policy deletes what a drain has left past its deadline.
    pub deletes_pods: bool,
    /// The kind BareMetalHost is there.
    pub has_hosts: bool,
    /// Cluster API's Machines are there.
    pub has_cluster_api: bool,
    /// medik8s' namespace of Leases is there.
    pub has_medik8s: bool,
}

/// A DaemonSet or a Deployment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// Where it is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Which program it is, by its label: this is the name in Dogwatch's own manifests.
    pub program: String,
    /// What its pods may do is what this account may.
    pub account: String,
    /// Its first container asks for no privileges.
    pub unprivileged: bool,
    /// The names of its volumes.
    pub volumes: Vec<String>,
    /// Its containers.
    pub containers: Vec<Container>,
}

/// What of a container somebody may have chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// The image that it runs.
    pub image: String,
    /// Its command line.
    pub args: Vec<String>,
    /// Its environment, each variable as it stands in the object.
    pub env: Vec<Value>,
}

impl FleetClient {
    /// Reads it.
    ///
    /// # Errors
    /// When one of the reads fails.
    pub async fn installed(&self) -> Result<Installed, Error> {
        let client = &self.client;
        let api = bare_metal_host::API_VERSION;
        Ok(Installed {
            kubernetes: version(client).await?,
            workloads: self.workloads().await?,
            bindings: self.policy_bindings().await?,
            deletes_pods: deletes_pods(client).await?,
            has_hosts: is_served(client, api, bare_metal_host::PLURAL).await?,
            has_cluster_api: CLUSTER_API.served(client).await?.is_some(),
            has_medik8s: has_namespace(client, LEASE_NAMESPACE).await?,
        })
    }

    /// Dogwatch's DaemonSets and Deployments, in all namespaces.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn workloads(&self) -> Result<Vec<Workload>, Error> {
        let ours = ListParams::default().labels(OURS);
        let sets: Api<DaemonSet> = Api::all(self.client.clone());
        let sets = absent_is_none(ask(sets.list(&ours)).await)?;
        let sets = sets.into_iter().flat_map(|list| list.items);
        let sets = sets.map(|set| workload(set.metadata, set.spec.map(|spec| spec.template)));
        let deployments: Api<Deployment> = Api::all(self.client.clone());
        let deployments = absent_is_none(ask(deployments.list(&ours)).await)?;
        let deployments = deployments.into_iter().flat_map(|list| list.items);
        let deployments =
            deployments.map(|it| workload(it.metadata, it.spec.map(|spec| spec.template)));
        Ok(sets.chain(deployments).collect())
    }

    /// The bindings of Dogwatch's admission policies, by name, and whether each refuses.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn policy_bindings(&self) -> Result<BTreeMap<String, bool>, Error> {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        let ours = ListParams::default().labels(OURS);
        let bindings = absent_is_none(ask(bindings.list(&ours)).await)?;
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

async fn version(client: &Client) -> Result<Option<(u32, u32)>, Error> {
    let version = absent_is_none(ask(client.apiserver_version()).await)?;
    Ok(version.and_then(|info| Some((number(&info.major)?, number(&info.minor)?))))
}

/// Some vendors write `32+`.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|it: char| !it.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}

async fn is_served(client: &Client, version: &str, plural: &str) -> Result<bool, Error> {
    let kinds = absent_is_none(ask(client.list_api_group_resources(version)).await)?;
    Ok(kinds.is_some_and(|kinds| kinds.resources.iter().any(|it| it.name == plural)))
}

async fn deletes_pods(client: &Client) -> Result<bool, Error> {
    let policies = absent_is_none(policy::objects(client).await)?;
    let mut policies = policies.into_iter().flatten();
    Ok(policies.any(|policy| policy.spec["drain"]["onTimeout"] == "delete"))
}

async fn has_namespace(client: &Client, name: &str) -> Result<bool, Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    Ok(ask(namespaces.get_metadata_opt(name)).await?.is_some())
}

/// What an API server does not serve is not there.
fn absent_is_none<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn workload(metadata: ObjectMeta, template: Option<PodTemplateSpec>) -> Workload {
    let labels = metadata.labels.unwrap_or_default();
    let pod = template
        .and_then(|template| template.spec)
        .unwrap_or_default();
    let security = pod.containers.first();
    let security = security.and_then(|container| container.security_context.as_ref());
    let volumes = pod.volumes.unwrap_or_default().into_iter();
    Workload {
        unprivileged: security.and_then(|it| it.privileged) != Some(true),
        volumes: volumes.map(|volume| volume.name).collect(),
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        program: labels.get(PROGRAM).cloned().unwrap_or_default(),
        account: pod.service_account_name.unwrap_or_default(),
        containers: pod.containers.into_iter().map(container).collect(),
    }
}

fn container(container: ContainerObject) -> Container {
    let env = container.env.unwrap_or_default().into_iter();
    Container {
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

    #[test]
    fn a_version_is_read_as_vendors_write_it() {
        for (text, meant) in [("32", Some(32)), ("29+", Some(29)), ("", None), ("x", None)] {
            assert_eq!(number(text), meant, "{text}");
        }
    }
}
