//! Reads what runs on one node: its pods, their DaemonSets and PodDisruptionBudgets, and its
//! coordinator.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_api::COORDINATOR;
use dogwatch_core::drain::{
    DaemonSetRef, DeploymentLookup, MachineRulesLookup, ObservedPod, PodRules, ReplicaSetRef,
    need_namespace_labels,
};
use dogwatch_core::explain::{NodePods, ObservedCoordinator};
use dogwatch_core::name::{NodeName, is_dns_name};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::FleetClient;
use crate::Error;
use crate::drain::{look_up_deployment, look_up_machine_rules, observed_budget, observed_pod};
use crate::error::with_timeout;
use crate::readable_dates::ReadableApi as _;

impl FleetClient {
    /// The node's pods and everything that decides about their eviction by these rules. Two lists,
    /// one call per DaemonSet, two for each ReplicaSet whose Deployment a rule may restart, and one
    /// more list if a rule asks for labels of namespaces. Where the rules honour MachineDrainRules,
    /// these and what they depend on.
    pub async fn read_node_contents(
        &self,
        node: &NodeName,
        rules: &PodRules,
    ) -> Result<NodePods, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = with_timeout(pods.list_readable(&here)).await?.items;
        let pods: Vec<ObservedPod> = pods.into_iter().map(observed_pod).collect();
        let budgets: Api<PodDisruptionBudget> = Api::all(self.client.clone());
        let budgets = with_timeout(budgets.list_readable(&ListParams::default()))
            .await?
            .items;
        let machine_rules = self.read_machine_rules(node, rules).await;
        let namespaces = if rules.needs_namespaces() || match_namespaces(&machine_rules) {
            self.list_namespaces().await?.labels
        } else {
            BTreeMap::new()
        };
        Ok(NodePods {
            namespaces,
            machine_rules,
            deployments: self.read_deployments_of(&pods, rules).await,
            daemonsets: self.list_daemonsets_of(&pods).await?,
            budgets: budgets.into_iter().map(observed_budget).collect(),
            pods,
        })
    }

    /// The MachineDrainRules of the node's Machine, where the rules honour them.
    pub async fn read_machine_rules(
        &self,
        node: &NodeName,
        rules: &PodRules,
    ) -> MachineRulesLookup {
        if !rules.honors_machine_rules() {
            return MachineRulesLookup::default();
        }
        look_up_machine_rules(&self.client, node.as_str()).await
    }

    pub(super) async fn list_daemonsets_of(
        &self,
        pods: &[ObservedPod],
    ) -> Result<BTreeSet<DaemonSetRef>, Error> {
        let named: BTreeSet<DaemonSetRef> = pods.iter().filter_map(daemonset_of).collect();
        let mut there = BTreeSet::new();
        for set in named {
            let api: Api<DaemonSet> = Api::namespaced(self.client.clone(), &set.namespace);
            if with_timeout(api.get_metadata_opt(&set.name))
                .await?
                .is_some()
            {
                there.insert(set);
            }
        }
        Ok(there)
    }

    /// The Deployments that a rule may restart before their pods go. A right that is missing here
    /// says nothing about the coordinator's.
    pub async fn read_deployments_of(
        &self,
        pods: &[ObservedPod],
        rules: &PodRules,
    ) -> BTreeMap<ReplicaSetRef, DeploymentLookup> {
        let rolled = pods.iter().filter(|pod| rules.may_roll_first(&pod.labels));
        let sets: BTreeSet<ReplicaSetRef> = rolled.filter_map(ReplicaSetRef::of_pod).collect();
        let mut found = BTreeMap::new();
        for set in sets {
            let lookup = match look_up_deployment(&self.client, &set).await {
                DeploymentLookup::Forbidden { why } => DeploymentLookup::Failed { why },
                other @ (DeploymentLookup::Found(_)
                | DeploymentLookup::None { .. }
                | DeploymentLookup::Failed { .. }) => other,
            };
            found.insert(set, lookup);
        }
        found
    }

    /// The coordinator on this node, by its DaemonSet and its pod.
    pub async fn read_coordinator(&self, node: &NodeName) -> Result<ObservedCoordinator, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let here = ListParams::default()
            .fields(&format!("spec.nodeName={node}"))
            .labels(&format!("app.kubernetes.io/name={COORDINATOR}"));
        if let Some(pod) = with_timeout(pods.list_readable(&here))
            .await?
            .items
            .into_iter()
            .next()
        {
            return Ok(observed_coordinator(&pod));
        }
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let set = with_timeout(sets.get_metadata_opt(COORDINATOR)).await?;
        Ok(set.map_or(ObservedCoordinator::NoDaemonSet, |_| {
            ObservedCoordinator::NoPod
        }))
    }
}

fn match_namespaces(lookup: &MachineRulesLookup) -> bool {
    match lookup {
        MachineRulesLookup::Found(rules) => need_namespace_labels(rules),
        MachineRulesLookup::NoMachine
        | MachineRulesLookup::Elsewhere { .. }
        | MachineRulesLookup::Failed { .. } => false,
    }
}

fn daemonset_of(pod: &ObservedPod) -> Option<DaemonSetRef> {
    let owner = pod.controller.as_ref()?;
    (owner.kind == "DaemonSet" && is_dns_name(&owner.name)).then(|| DaemonSetRef {
        namespace: pod.pod.namespace.clone(),
        name: owner.name.clone(),
    })
}

fn observed_coordinator(pod: &Pod) -> ObservedCoordinator {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.as_deref().unwrap_or_default();
    ObservedCoordinator::Pod {
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        ready: conditions
            .iter()
            .any(|c| c.type_ == "Ready" && c.status == "True"),
        state: pod_state(&status),
    }
}

/// The reason why a container waits (`CrashLoopBackOff`), else the pod's phase.
fn pod_state(status: &PodStatus) -> String {
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    containers
        .iter()
        .find_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone())
        .or_else(|| status.phase.clone())
        .unwrap_or_else(|| "Unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &serde_json::Value) -> ObservedCoordinator {
        let pod = json!({ "metadata": { "name": "c", "namespace": "dogwatch" }, "status": status });
        observed_coordinator(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_container_that_cannot_start_says_why() {
        let waiting = json!({ "phase": "Running", "containerStatuses": [{
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 9,
            "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] });
        let expected = ObservedCoordinator::Pod {
            name: "dogwatch/c".into(),
            ready: false,
            state: "CrashLoopBackOff".into(),
        };
        assert_eq!(pod(&waiting), expected);
    }

    #[test]
    fn a_ready_pod_is_ready() {
        let ready =
            json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let expected = ObservedCoordinator::Pod {
            name: "dogwatch/c".into(),
            ready: true,
            state: "Running".into(),
        };
        assert_eq!(pod(&ready), expected);
    }
}
