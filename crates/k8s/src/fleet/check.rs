//! Reads what `dogwatch check` needs to know about one node. Each part is read separately: a
//! missing right costs only that part.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::check::PodFacts;
use dogwatch_core::drain::{DaemonSetRef, ObservedDisruptionBudget, ObservedPod};
use dogwatch_core::name::NodeName;
use dogwatch_core::selector::LabelSelector;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::FleetClient;
use crate::Error;
use crate::drain::{observed_budget, observed_pod};
use crate::error::with_timeout;
use crate::node::list_blocking_pods;
use crate::readable_dates::ReadableApi as _;

/// All namespaces.
#[derive(Debug, Clone, Default)]
pub struct NamespaceFacts {
    /// Those that are being deleted.
    pub terminating: BTreeSet<String>,
    pub labels: BTreeMap<String, BTreeMap<String, String>>,
}

impl FleetClient {
    pub async fn list_pods_on(&self, node: &NodeName) -> Result<Vec<PodFacts>, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = with_timeout(pods.list_readable(&here)).await?.items;
        Ok(pods.into_iter().map(pod_facts).collect())
    }

    pub async fn list_budgets(&self) -> Result<Vec<ObservedDisruptionBudget>, Error> {
        let budgets: Api<PodDisruptionBudget> = Api::all(self.client.clone());
        let budgets = with_timeout(budgets.list(&ListParams::default()))
            .await?
            .items;
        Ok(budgets.into_iter().map(observed_budget).collect())
    }

    /// The DaemonSets that these pods name as their controller, if they exist.
    pub async fn list_daemonsets(
        &self,
        pods: &[PodFacts],
    ) -> Result<BTreeSet<DaemonSetRef>, Error> {
        let seen: Vec<ObservedPod> = pods.iter().map(|pod| pod.observed.clone()).collect();
        self.list_daemonsets_of(&seen).await
    }

    pub async fn list_namespaces(&self) -> Result<NamespaceFacts, Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let all = with_timeout(namespaces.list_metadata(&ListParams::default())).await?;
        let mut facts = NamespaceFacts::default();
        for namespace in all.items {
            let name = namespace.name_any();
            if namespace.metadata.deletion_timestamp.is_some() {
                facts.terminating.insert(name.clone());
            }
            let labels = namespace.metadata.labels.unwrap_or_default();
            facts.labels.insert(name, labels);
        }
        Ok(facts)
    }

    /// The pods on the node that a policy's gate waits for, as text.
    pub async fn list_gate_pods(
        &self,
        node: &NodeName,
        selector: &LabelSelector,
    ) -> Result<Vec<String>, Error> {
        list_blocking_pods(&self.client, node.as_str(), selector).await
    }
}

fn pod_facts(pod: Pod) -> PodFacts {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let local = volumes.into_iter().flatten().filter(|volume| {
        let source = volume.empty_dir.as_ref();
        source.is_some_and(|source| source.medium.as_deref() != Some("Memory"))
    });
    PodFacts {
        empty_dirs: local.map(|volume| volume.name.clone()).collect(),
        observed: observed_pod(pod),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_on_the_node_is_named_and_memory_is_none() {
        let pod = json!({ "metadata": { "name": "p", "namespace": "shop", "uid": "u" }, "spec": {
            "containers": [],
            "volumes": [
                { "name": "scratch", "emptyDir": {} },
                { "name": "shm", "emptyDir": { "medium": "Memory" } },
                { "name": "config", "configMap": { "name": "c" } },
            ],
        }});
        let pod = pod_facts(serde_json::from_value(pod).unwrap());
        assert_eq!(pod.empty_dirs, ["scratch"]);
    }
}
