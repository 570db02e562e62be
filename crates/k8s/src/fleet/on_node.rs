//! What is on one node: its pods, their DaemonSets, the budgets over them, its coordinator.

use std::collections::BTreeSet;

use dogwatch_api::COORDINATOR;
use dogwatch_core::drain::{DaemonSetRef, PodSeen};
use dogwatch_core::explain::{CoordinatorSeen, OnNode};
use dogwatch_core::name::{NodeName, is_dns_name};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::FleetClient;
use crate::Error;
use crate::drain::{budget_seen, pod_seen};
use crate::error::ask;

impl FleetClient {
    /// The node's pods and what decides about them: two lists, and one call for each DaemonSet.
    pub async fn on_node(&self, node: &NodeName) -> Result<OnNode, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = ask(pods.list(&here)).await?.items;
        let pods: Vec<PodSeen> = pods.into_iter().map(pod_seen).collect();
        let budgets: Api<PodDisruptionBudget> = Api::all(self.client.clone());
        let budgets = ask(budgets.list(&ListParams::default())).await?.items;
        Ok(OnNode {
            daemonsets: self.daemonsets_of(&pods).await?,
            budgets: budgets.into_iter().map(budget_seen).collect(),
            pods,
        })
    }

    pub(super) async fn daemonsets_of(
        &self,
        pods: &[PodSeen],
    ) -> Result<BTreeSet<DaemonSetRef>, Error> {
        let named: BTreeSet<DaemonSetRef> = pods.iter().filter_map(daemonset_of).collect();
        let mut there = BTreeSet::new();
        for set in named {
            let api: Api<DaemonSet> = Api::namespaced(self.client.clone(), &set.namespace);
            if ask(api.get_metadata_opt(&set.name)).await?.is_some() {
                there.insert(set);
            }
        }
        Ok(there)
    }

    /// The coordinator on this node, as its DaemonSet and pod show it.
    pub async fn coordinator(&self, node: &NodeName) -> Result<CoordinatorSeen, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let here = ListParams::default()
            .fields(&format!("spec.nodeName={node}"))
            .labels(&format!("app.kubernetes.io/name={COORDINATOR}"));
        if let Some(pod) = ask(pods.list(&here)).await?.items.into_iter().next() {
            return Ok(seen(&pod));
        }
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let set = ask(sets.get_metadata_opt(COORDINATOR)).await?;
        Ok(set.map_or(CoordinatorSeen::NoDaemonSet, |_| CoordinatorSeen::NoPod))
    }
}

fn daemonset_of(pod: &PodSeen) -> Option<DaemonSetRef> {
    let owner = pod.controller.as_ref()?;
    (owner.kind == "DaemonSet" && is_dns_name(&owner.name)).then(|| DaemonSetRef {
        namespace: pod.pod.namespace.clone(),
        name: owner.name.clone(),
    })
}

fn seen(pod: &Pod) -> CoordinatorSeen {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.as_deref().unwrap_or_default();
    CoordinatorSeen::Pod {
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        ready: conditions
            .iter()
            .any(|c| c.type_ == "Ready" && c.status == "True"),
        state: state(&status),
    }
}

/// What its container waits for, where it does (`CrashLoopBackOff`), else the pod's phase.
fn state(status: &PodStatus) -> String {
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

    fn pod(status: &serde_json::Value) -> CoordinatorSeen {
        let pod = json!({ "metadata": { "name": "c", "namespace": "dogwatch" }, "status": status });
        seen(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_container_that_cannot_start_says_why() {
        let waiting = json!({ "phase": "Running", "containerStatuses": [{
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 9,
            "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] });
        let expected = CoordinatorSeen::Pod {
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
        let expected = CoordinatorSeen::Pod {
            name: "dogwatch/c".into(),
            ready: true,
            state: "Running".into(),
        };
        assert_eq!(pod(&ready), expected);
    }
}
