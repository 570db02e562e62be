//! What `dogwatch check` reads of one node. Each part is read by itself: a right that is missing
//! costs that part only.

use std::collections::BTreeSet;

use dogwatch_core::check::PodFacts;
use dogwatch_core::drain::{BudgetSeen, DaemonSetRef, PodSeen};
use dogwatch_core::name::NodeName;
use dogwatch_core::selector::LabelSelector;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::FleetClient;
use crate::Error;
use crate::drain::{budget_seen, pod_seen};
use crate::error::ask;
use crate::node::blocking_pods;

impl FleetClient {
    /// The pods on the node.
    pub async fn pods_on(&self, node: &NodeName) -> Result<Vec<PodFacts>, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = ask(pods.list(&here)).await?.items;
        Ok(pods.into_iter().map(facts).collect())
    }

    /// All PodDisruptionBudgets.
    pub async fn budgets(&self) -> Result<Vec<BudgetSeen>, Error> {
        let budgets: Api<PodDisruptionBudget> = Api::all(self.client.clone());
        let budgets = ask(budgets.list(&ListParams::default())).await?.items;
        Ok(budgets.into_iter().map(budget_seen).collect())
    }

    /// The DaemonSets that exist, of those that these pods name as their controller.
    pub async fn daemonsets(&self, pods: &[PodFacts]) -> Result<BTreeSet<DaemonSetRef>, Error> {
        let seen: Vec<PodSeen> = pods.iter().map(|pod| pod.seen.clone()).collect();
        self.daemonsets_of(&seen).await
    }

    /// Namespaces that are being deleted.
    pub async fn terminating(&self) -> Result<BTreeSet<String>, Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let all = ask(namespaces.list_metadata(&ListParams::default())).await?;
        let ending = all
            .items
            .iter()
            .filter(|namespace| namespace.metadata.deletion_timestamp.is_some());
        Ok(ending.map(ResourceExt::name_any).collect())
    }

    /// The pods on the node that a policy's gate waits for, in words.
    pub async fn gate_pods(
        &self,
        node: &NodeName,
        selector: &LabelSelector,
    ) -> Result<Vec<String>, Error> {
        blocking_pods(&self.client, node.as_str(), selector).await
    }
}

fn facts(pod: Pod) -> PodFacts {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let local = volumes.into_iter().flatten().filter(|volume| {
        let source = volume.empty_dir.as_ref();
        source.is_some_and(|source| source.medium.as_deref() != Some("Memory"))
    });
    PodFacts {
        local: local.map(|volume| volume.name.clone()).collect(),
        seen: pod_seen(pod),
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
        let pod = facts(serde_json::from_value(pod).unwrap());
        assert_eq!(pod.local, ["scratch"]);
    }
}
