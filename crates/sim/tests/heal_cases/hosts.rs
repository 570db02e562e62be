//! Kinds that a cluster may lack: policies, and the hosts that carry nodes.

use dogwatch_core::name::NodeName;
use dogwatch_testbed::fixtures;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;

use super::world::World;
use crate::support::objects::{self, CAPI, METAL3_MACHINE, OPENSHIFT};

impl World {
    /// Installs the kinds RebootPolicy and BareMetalHost.
    pub async fn install_kinds(&self) {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let host = json!({
            "metadata": { "name": "baremetalhosts.metal3.io" },
            "spec": {
                "group": "metal3.io", "scope": "Namespaced",
                "names": { "kind": "BareMetalHost", "plural": "baremetalhosts", "singular": "baremetalhost",
                    "listKind": "BareMetalHostList" },
                "versions": [{ "name": "v1alpha1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": any } }],
            },
        });
        let kinds = [host, dogwatch_api::reboot_policy::policy_crd()];
        objects::install(&self.client, kinds).await;
        self.until("the kinds are served", || async {
            let everything = ListParams::default();
            let policies = self.policies().list(&everything).await.is_ok();
            policies && self.hosts().list(&everything).await.is_ok()
        })
        .await;
    }

    /// A policy for this node that escalates.
    pub async fn escalating_policy_for(&self, short: &str) {
        let label = json!({ "heal": self.namespace });
        let name = self.node_name(short);
        let body = Patch::Merge(json!({ "metadata": { "labels": label } }));
        let params = PatchParams::default();
        self.nodes()
            .patch(name.as_str(), &params, &body)
            .await
            .unwrap();
        let policy = json!({
            "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
            "metadata": { "name": self.namespace },
            "spec": { "nodeSelector": { "matchLabels": label }, "reboot": { "escalate": true } },
        });
        let policy = serde_json::from_value(policy).unwrap();
        self.policies()
            .create(&PostParams::default(), &policy)
            .await
            .unwrap();
    }

    pub async fn make_host(&self, host: &str, node: &NodeName) {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": host, "annotations": { "dogwatch.dev/node": node.as_str() } },
            "spec": { "online": true },
        });
        let host = serde_json::from_value(host).unwrap();
        self.hosts()
            .create(&PostParams::default(), &host)
            .await
            .unwrap();
    }

    /// Installs the three kinds that link Machines to hosts.
    pub async fn install_machines(&self) {
        let kinds = [
            fixtures::openshift_machines(),
            fixtures::cluster_api_machines(),
            fixtures::metal3_machines(),
        ];
        objects::install(&self.client, kinds).await;
        for kind in [OPENSHIFT, CAPI, METAL3_MACHINE] {
            objects::until_served(&objects::objects(&self.client, &self.namespace, kind)).await;
        }
    }

    /// Removes them, because other cases test without.
    pub async fn remove_machines(&self) {
        for (group, _, _, plural) in [OPENSHIFT, CAPI, METAL3_MACHINE] {
            objects::take_out(&self.client, &format!("{plural}.{group}")).await;
        }
    }

    /// A host that names no Node, and a Machine linked to it and to this Node.
    pub async fn make_host_of_machine(&self, host: &str, machine: &str, node: &NodeName) {
        let consumer = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "namespace": self.namespace, "name": machine });
        let object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": host },
            "spec": { "online": true, "consumerRef": consumer },
        });
        let object = serde_json::from_value(object).unwrap();
        let made = self.hosts().create(&PostParams::default(), &object).await;
        made.unwrap();
        let link = format!("{}/{host}", self.namespace);
        let object = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": machine, "annotations": { "metal3.io/BareMetalHost": link } },
            "spec": {},
        });
        let machines = objects::objects(&self.client, &self.namespace, OPENSHIFT);
        objects::create(&machines, object).await;
        let status = json!({ "nodeRef": { "kind": "Node", "name": node.as_str() } });
        objects::change_status(&machines, machine, status).await;
    }

    pub async fn host_annotation(&self, host: &str, key: &str) -> Option<String> {
        let host = self.hosts().get(host).await.unwrap();
        host.metadata.annotations?.remove(key)
    }

    pub async fn remove_host_annotation(&self, host: &str, key: &str) {
        let body = Patch::Merge(json!({ "metadata": { "annotations": { key: null } } }));
        let params = PatchParams::default();
        self.hosts().patch(host, &params, &body).await.unwrap();
    }

    fn hosts(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
        let resource = ApiResource::from_gvk_with_plural(&kind, "baremetalhosts");
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    fn policies(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("dogwatch.dev", "v1alpha1", "RebootPolicy");
        let resource = ApiResource::from_gvk_with_plural(&kind, "rebootpolicies");
        Api::all_with(self.client.clone(), &resource)
    }
}
